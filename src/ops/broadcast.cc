#include "ops/broadcast.h"

#include <algorithm>
#include <cmath>

#include "graph/basic.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

DType signed_of_size(size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

// Whether an integer or bool of this dtype can have the value.
bool holds(DType dtype, double value) {
  if (dtype == DType::kBool) return value == 0.0 || value == 1.0;
  if (value != std::trunc(value)) return false;  // also infinities' and NaN's case, with the bounds below
  const int bits = 8 * static_cast<int>(byte_size(dtype));
  if (is_unsigned_integer(dtype)) return value >= 0.0 && value < std::ldexp(1.0, bits);
  return value >= -std::ldexp(1.0, bits - 1) && value < std::ldexp(1.0, bits - 1);
}

unsigned kind_of(DType dtype) {
  if (dtype == DType::kBool) return kBools;
  return is_float(dtype) ? kFloats : kIntegers;
}

const char* describe_kinds(unsigned accepts) {
  switch (accepts) {
    case kBools:
      return "bool";
    case kIntegers:
      return "integer";
    case kFloats:
      return "float";
    case kNumbers:
      return "integer or float";
    case kBools | kIntegers:
      return "bool or integer";
    default:
      return "bool, integer or float";
  }
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  const size_t size_a = byte_size(a), size_b = byte_size(b);
  if (is_float(a)) {
    // bfloat16 and float16 hold different values: float32 holds both.
    if (size_a == size_b) return DType::kFloat32;
    return size_a > size_b ? a : b;
  }
  if (is_signed_integer(a) == is_signed_integer(b)) return size_a > size_b ? a : b;
  const size_t size_signed = is_signed_integer(a) ? size_a : size_b;
  const size_t size_unsigned = is_signed_integer(a) ? size_b : size_a;
  if (size_unsigned == 8)
    throw_error<ShapeError>("{} and {} have no common integer type; convert one of them", name(a), name(b));
  return signed_of_size(std::max(size_signed, 2 * size_unsigned));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  std::vector<int64_t> dims = longer.dims();
  const size_t offset = longer.rank() - shorter.rank();
  for (size_t i = 0; i < shorter.rank(); ++i) {
    int64_t& dim = dims[offset + i];
    if (dim != shorter[i] && dim != 1 && shorter[i] != 1) {
      throw_error<ShapeError>(
          "shapes {} and {} do not broadcast: axis {} from the end has sizes {} and {}; they must be equal, "
          "or "
          "one of them 1",
          a.to_string(), b.to_string(), shorter.rank() - i, longer[offset + i], shorter[i]);
    }
    if (dim == 1) dim = shorter[i];
  }
  return Shape(std::move(dims));
}

std::pair<Tensor, Tensor> promoted(Tensor a, Tensor b) {
  const DType dtype = promote(a.dtype(), b.dtype());
  const Shape shape = broadcast_shapes(a.shape(), b.shape());
  return {broadcast_to(convert(a, dtype), shape), broadcast_to(convert(b, dtype), shape)};
}

Tensor number_like(Tensor x, double value) {
  if (!is_float(x.dtype()) && !holds(x.dtype(), value)) {
    in_operation("number", [&] {
      throw_error<ShapeError>(
          "the number {} stands beside {}, whose dtype does not hold it; convert the tensor "
          "first",
          value, x.type().describe());
    });
  }
  return full(x.type(), value);
}

TensorType check_elementwise(const InferContext& context, unsigned accepts) {
  const TensorType& first = context.inputs[0];
  for (const TensorType& type : context.inputs) {
    if (type != first)
      throw_error<ShapeError>("expected operands of one type, got {} and {}", first.describe(),
                              type.describe());
  }
  if ((kind_of(first.dtype) & accepts) == 0)
    throw_error<ShapeError>("expected {} operands, got {}", describe_kinds(accepts), first.describe());
  return first;
}

Tensor apply_binary(const Primitive& primitive, Tensor a, Tensor b) {
  return in_operation(primitive.name, [&] {
    const auto [x, y] = promoted(a, b);
    return apply({.primitive = primitive, .inputs = {x, y}});
  });
}

std::vector<int64_t> axes_of(size_t rank, size_t first) {
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(first + i);
  return axes;
}

std::vector<int64_t> normalize_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) out.push_back(static_cast<int64_t>(shape.normalize_axis(axis)));
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice != out.end()) throw_error<ShapeError>("axis {} of {} is named twice", *twice, shape.to_string());
  return out;
}

}  // namespace t5x::ops
