// Slices at computed positions.
#include "graph/basic.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

void check_starts(std::span<const TensorType> starts, const Shape& shape) {
  if (starts.size() != shape.rank())
    throw_error<ShapeError>("expected a start index for each axis of {}, got {}", shape.to_string(),
                            starts.size());
  for (const TensorType& start : starts) {
    if (start.shape.rank() != 0 || !is_integer(start.dtype))
      throw_error<ShapeError>("expected integer scalars as start indices, got {}", start.describe());
  }
}

const Primitive kDynamicSlice{
    .name = "stablehlo.dynamic_slice",
    .infer =
        [](const InferContext& c) {
          const Dims& sizes = c.attributes.get<Dims>("slice_sizes");
          const Shape& from = c.inputs[0].shape;
          check_starts(c.inputs.subspan(1), from);
          if (sizes.size() != from.rank())
            throw_error<ShapeError>("expected a size for each axis of {}, got {}", from.to_string(),
                                    sizes.size());
          for (size_t i = 0; i < sizes.size(); ++i) {
            if (sizes[i] < 0 || sizes[i] > from[i])
              throw_error<ShapeError>("expected a slice of size 0 to {} on axis {}, got {}", from[i], i,
                                      sizes[i]);
          }
          return std::vector<TensorType>{{c.inputs[0].dtype, Shape(sizes)}};
        },
    .vjp =
        [](const VjpContext& c) {
          const Tensors starts(c.inputs.begin() + 1, c.inputs.end());
          return Tensors{dynamic_update_slice(zeros(c.inputs[0].type()), c.cotangent(), starts)};
        }};

const Primitive kDynamicUpdateSlice{
    .name = "stablehlo.dynamic_update_slice",
    .infer =
        [](const InferContext& c) {
          const TensorType &x = c.inputs[0], &update = c.inputs[1];
          check_starts(c.inputs.subspan(2), x.shape);
          if (update.dtype != x.dtype || update.shape.rank() != x.shape.rank())
            throw_error<ShapeError>("expected an update of dtype {} and rank {}, got {}", name(x.dtype),
                                    x.shape.rank(), update.describe());
          for (size_t i = 0; i < x.shape.rank(); ++i) {
            if (update.shape[i] > x.shape[i])
              throw_error<ShapeError>("the update has size {} on axis {}, more than the {} there are",
                                      update.shape[i], i, x.shape[i]);
          }
          return std::vector<TensorType>{x};
        },
    .vjp =
        [](const VjpContext& c) {
          const Tensors starts(c.inputs.begin() + 2, c.inputs.end());
          const TensorType update = c.inputs[1].type();
          const Tensor g = c.cotangent();
          Tensors gradients(2);
          if (c.wanted[0]) gradients[0] = dynamic_update_slice(g, zeros(update), starts);
          if (c.wanted[1]) gradients[1] = dynamic_slice(g, starts, update.shape.dims());
          return gradients;
        }};

// StableHLO wants start indices of one dtype.
Tensors same_index_type(const std::vector<Tensor>& starts) {
  Tensors out;
  bool same = true;
  for (const Tensor& start : starts) same = same && start.dtype() == starts[0].dtype();
  for (const Tensor& start : starts)
    out.push_back(same || !is_integer(start.dtype()) ? start : convert(start, DType::kInt32));
  return out;
}

Tensors starts_along(Tensor x, Tensor start, int64_t axis) {
  const size_t at = in_operation("dynamic_slice_in_dim", [&] { return x.shape().normalize_axis(axis); });
  const Tensor zero = full({start.dtype(), {}}, 0.0);
  Tensors starts(x.rank(), zero);
  starts[at] = start;
  return starts;
}

}  // namespace

Tensor dynamic_slice(Tensor x, const std::vector<Tensor>& starts, const std::vector<int64_t>& sizes) {
  Tensors inputs = same_index_type(starts);
  inputs.insert(inputs.begin(), x);
  return apply(
      {.primitive = kDynamicSlice, .inputs = std::move(inputs), .attributes = {{"slice_sizes", sizes}}});
}

Tensor dynamic_update_slice(Tensor x, Tensor update, const std::vector<Tensor>& starts) {
  Tensors inputs = same_index_type(starts);
  inputs.insert(inputs.begin(), {x, update});
  return apply({.primitive = kDynamicUpdateSlice, .inputs = std::move(inputs)});
}

Tensor dynamic_slice_in_dim(Tensor x, Tensor start, int64_t size, int64_t axis) {
  const Tensors starts = starts_along(x, start, axis);
  Dims sizes = x.shape().dims();
  sizes[x.shape().normalize_axis(axis)] = size;
  return dynamic_slice(x, starts, sizes);
}

Tensor dynamic_update_slice_in_dim(Tensor x, Tensor update, Tensor start, int64_t axis) {
  return dynamic_update_slice(x, update, starts_along(x, start, axis));
}

}  // namespace t5x::ops
