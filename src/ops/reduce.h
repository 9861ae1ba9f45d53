// Reductions over axes. `keepdims` leaves reduced axes with size 1; no axes given means all.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

Tensor reduce_sum(Tensor x, const std::vector<int64_t>& axes, bool keepdims = false);
Tensor reduce_max(Tensor x, const std::vector<int64_t>& axes,
                  bool keepdims = false);  // gradient: shared among ties, as jax's
Tensor reduce_min(Tensor x, const std::vector<int64_t>& axes, bool keepdims = false);
Tensor reduce_mean(Tensor x, const std::vector<int64_t>& axes, bool keepdims = false);
Tensor reduce_and(Tensor x, const std::vector<int64_t>& axes, bool keepdims = false);
Tensor reduce_or(Tensor x, const std::vector<int64_t>& axes, bool keepdims = false);
// Every element.
Tensor sum(Tensor x);
Tensor mean(Tensor x);
Tensor all(Tensor x);
Tensor any(Tensor x);
// Index of the largest element along `axis`, the first on ties; int32.
Tensor argmax(Tensor x, int64_t axis);
// Running sums along `axis`, inclusive.
Tensor cumsum(Tensor x, int64_t axis);
// Stable: the maximum is subtracted, and no gradient passes through it. Computed in x's dtype.
Tensor softmax(Tensor x, int64_t axis);
Tensor log_softmax(Tensor x, int64_t axis);
Tensor logsumexp(Tensor x, int64_t axis, bool keepdims = false);

}  // namespace t5x::ops
