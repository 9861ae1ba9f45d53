// Products of matrices and tensors.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

struct DotDims {
  std::vector<int64_t> lhs_batch, rhs_batch;
  std::vector<int64_t> lhs_contracting, rhs_contracting;
};
// StableHLO's dot_general: result axes are batch, then lhs free, then rhs free. `result`: dtype of the
// result, the operands' own unless given. Gradients are computed in the operands' dtype.
Tensor dot_general(Tensor lhs, Tensor rhs, const DotDims& dims, std::optional<DType> result = std::nullopt);
// Whether a node is a product without batch axes (whose result RematPolicy::kDots keeps).
bool is_unbatched_dot(const Node& node);
// x [..., k] times w [k, n]: the product of a dense layer. Leading axes are flattened, so that the compiler
// sees one matrix product; its gradients are built in the row-major form that runs at peak.
Tensor matmul(Tensor x, Tensor w);
// Two operands, every index at most once in each, such as "bqhd,bkhd->bhqk"; an index that only one operand
// has and the result has not is summed. Throws ShapeError that names the index.
Tensor einsum(std::string_view equation, Tensor a, Tensor b);

}  // namespace t5x::ops
