// Private to this folder: promotion, broadcasting, and the shape rule that elementwise primitives share.
// Promotion follows JAX (jax.numpy's type lattice), broadcasting NumPy.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/primitive.h"
#include "graph/trace.h"

namespace t5x::ops {

using Tensors = std::vector<Tensor>;

// The dtype that operands of two dtypes are converted to. Throws ShapeError for int64 with uint64.
DType promote(DType a, DType b);
// Throws ShapeError that names the axis whose sizes differ.
Shape broadcast_shapes(const Shape& a, const Shape& b);
// Both of one dtype and shape.
std::pair<Tensor, Tensor> promoted(Tensor a, Tensor b);
// A tensor of x's type filled with `value`. Throws ShapeError if x's dtype cannot hold it, such as 0.5 in an
// int32.
Tensor number_like(Tensor x, double value);

enum Accepts : unsigned { kBools = 1, kIntegers = 2, kFloats = 4, kNumbers = 6, kAny = 7 };
// The type that all operands have. Throws ShapeError if they differ or are of a kind not in `accepts`.
TensorType check_elementwise(const InferContext& context, unsigned accepts);
template <unsigned kAccepts>
std::vector<TensorType> infer_elementwise(const InferContext& context) {
  return {check_elementwise(context, kAccepts)};
}

// Applies a primitive of two operands after promotion and broadcasting.
Tensor apply_binary(const Primitive& primitive, Tensor a, Tensor b);
inline Tensor apply_binary(const Primitive& primitive, Tensor a, double b) {
  return apply({.primitive = primitive, .inputs = {a, number_like(a, b)}});
}
inline Tensor apply_binary(const Primitive& primitive, double a, Tensor b) {
  return apply({.primitive = primitive, .inputs = {number_like(b, a), b}});
}

// Runs checks that come before the primitive is applied: their errors name the operation and the module, too.
template <class F>
decltype(auto) in_operation(std::string_view operation, F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (Error& e) {
    e.add_context(std::string(operation));
    if (!current_scope().empty()) e.add_context(current_scope());
    throw;
  }
}
// first, first + 1, ..., first + rank - 1.
std::vector<int64_t> axes_of(size_t rank, size_t first = 0);
// Axes counted from the start, ascending. Throws ShapeError if one is out of range or comes twice.
std::vector<int64_t> normalize_axes(const Shape& shape, const std::vector<int64_t>& axes);

}  // namespace t5x::ops
