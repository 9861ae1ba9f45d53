// The few operations that differentiation itself needs. Everything else is in ops/.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace t5x {

// A literal.
Tensor constant(const Array& value);
// A tensor filled with one value, converted to `type`'s dtype.
Tensor full(const TensorType& type, double value);
inline Tensor zeros(const TensorType& type) { return full(type, 0.0); }
// Elementwise sum of two tensors of one type.
Tensor add_any(Tensor a, Tensor b);
// The same tensors; the compiler neither moves computation across nor merges what is behind with what is
// before.
std::vector<Tensor> optimization_barrier(std::vector<Tensor> tensors);
Tensor optimization_barrier(Tensor tensor);

}  // namespace t5x
