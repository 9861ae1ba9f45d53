// Sorting.
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

// Sorts along `axis` by the first operand, ascending (or descending), and carries the others along. Stable.
std::vector<Tensor> sort(const std::vector<Tensor>& operands, int64_t axis, bool descending = false);
// The k largest of the last axis, largest first, ties by lower index: {values, indices int32}.
std::pair<Tensor, Tensor> top_k(Tensor x, int64_t k);

}  // namespace t5x::ops
