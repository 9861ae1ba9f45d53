// Products of matrices and tensors.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

struct DotDims {
  std::vector<int64_t> lhs_batch, rhs_batch;
  std::vector<int64_t> lhs_contracting, rhs_contracting;
};
// StableHLO's dot_general: result axes are batch, then lhs free, then rhs free. `accumulate`: dtype of the
// result.
Tensor dot_general(Tensor lhs, Tensor rhs, const DotDims& dims);
// x [..., k] times w [k, n]: the product of a dense layer. Leading axes are flattened, so that the compiler
// sees one matrix product; its gradients are built in the row-major form that runs at peak.
Tensor matmul(Tensor x, Tensor w);
// Two operands, every index once per operand, such as "bqhd,bkhd->bhqk". Throws ShapeError that names the
// index.
Tensor einsum(std::string_view equation, Tensor a, Tensor b);

}  // namespace t5x::ops
