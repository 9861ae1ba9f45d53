// Joining, reversing and counting along an axis.
#include "ops/broadcast.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

std::vector<TensorType> infer_concatenate(const InferContext& c) {
  const auto axis = static_cast<size_t>(c.attributes.get<int64_t>("dimension"));
  const TensorType& first = c.inputs[0];
  Dims dims = first.shape.dims();
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    const TensorType& part = c.inputs[i];
    bool fits = part.dtype == first.dtype && part.shape.rank() == first.shape.rank();
    for (size_t k = 0; fits && k < dims.size(); ++k) fits = k == axis || part.shape[k] == dims[k];
    if (!fits)
      throw_error<ShapeError>("expected parts of one dtype that differ along axis {} only, got {} and {}",
                              axis, first.describe(), part.describe());
    dims[axis] += part.shape[axis];
  }
  return {{first.dtype, Shape(dims)}};
}

Tensors vjp_concatenate(const VjpContext& c) {
  const int64_t axis = c.node.attributes.get<int64_t>("dimension");
  Tensors gradients;
  int64_t start = 0;
  for (const Tensor& part : c.inputs) {
    gradients.push_back(slice_in_dim(c.cotangent(), start, start + part.dim(axis), axis));
    start += part.dim(axis);
  }
  return gradients;
}

const Primitive kConcatenate{
    .name = "stablehlo.concatenate", .infer = infer_concatenate, .vjp = vjp_concatenate};

const Primitive kReverse{
    .name = "stablehlo.reverse",
    .infer = [](const InferContext& c) { return std::vector<TensorType>{c.inputs[0]}; },
    .vjp =
        [](const VjpContext& c) {
          return Tensors{reverse(c.cotangent(), c.node.attributes.get<Dims>("dimensions"))};
        }};

const Primitive kIota{.name = "stablehlo.iota",
                      .infer =
                          [](const InferContext& c) {
                            const auto& type = std::any_cast<const TensorType&>(c.extra);
                            if (type.dtype == DType::kBool)
                              throw_error<ShapeError>("expected an integer or float dtype, got bool");
                            return std::vector<TensorType>{type};
                          },
                      .vjp = no_gradient};

}  // namespace

Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis) {
  return in_operation("concatenate", [&] {
    if (parts.empty()) throw_error<ShapeError>("expected one part or more, got none");
    if (parts.size() == 1) return parts[0];
    const auto at = static_cast<int64_t>(parts[0].shape().normalize_axis(axis));
    return apply({.primitive = kConcatenate, .inputs = parts, .attributes = {{"dimension", at}}});
  });
}

Tensor reverse(Tensor x, const std::vector<int64_t>& axes) {
  const Dims dims = in_operation("reverse", [&] { return normalize_axes(x.shape(), axes); });
  return apply({.primitive = kReverse, .inputs = {x}, .attributes = {{"dimensions", dims}}});
}

Tensor iota(DType dtype, const Shape& shape, int64_t axis) {
  const auto at = in_operation("iota", [&] { return static_cast<int64_t>(shape.normalize_axis(axis)); });
  return apply({.primitive = kIota,
                .inputs = {},
                .attributes = {{"iota_dimension", at}},
                .extra = TensorType{dtype, shape}});
}

}  // namespace t5x::ops
