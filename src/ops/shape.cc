#include "ops/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/basic.h"
#include "ops/broadcast.h"
#include "ops/reduce.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

const Dims& dims_attribute(const InferContext& c, const char* key) { return c.attributes.get<Dims>(key); }

void check_count(const Dims& values, const Shape& shape, const char* what) {
  if (values.size() != shape.rank())
    throw_error<ShapeError>("expected {} of each axis of {}, got {} values", what, shape.to_string(),
                            values.size());
}

const Primitive kReshape{
    .name = "stablehlo.reshape",
    .infer =
        [](const InferContext& c) {
          const auto& shape = std::any_cast<const Shape&>(c.extra);
          if (shape.size() != c.inputs[0].shape.size())
            throw_error<ShapeError>("expected a shape of {} elements, got {} of {}", c.inputs[0].shape.size(),
                                    shape.to_string(), shape.size());
          return std::vector<TensorType>{{c.inputs[0].dtype, shape}};
        },
    .vjp = [](const VjpContext& c) { return Tensors{reshape(c.cotangent(), c.inputs[0].shape().dims())}; }};

std::vector<TensorType> infer_broadcast(const InferContext& c) {
  const auto& shape = std::any_cast<const Shape&>(c.extra);
  const Dims& dims = dims_attribute(c, "broadcast_dimensions");
  const Shape& from = c.inputs[0].shape;
  check_count(dims, from, "the result axis");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= static_cast<int64_t>(shape.rank()) || (i > 0 && dims[i] <= dims[i - 1]))
      throw_error<ShapeError>("expected ascending axes of {}, got [{}]", shape.to_string(),
                              fmt::join(dims, ", "));
    const int64_t to = shape[static_cast<size_t>(dims[i])];
    if (from[i] != 1 && from[i] != to)
      throw_error<ShapeError>("axis {} of size {} cannot stretch to axis {} of size {}: only size 1 can", i,
                              from[i], dims[i], to);
  }
  return {{c.inputs[0].dtype, shape}};
}

Tensors vjp_broadcast(const VjpContext& c) {
  const Dims& dims = c.node.attributes.get<Dims>("broadcast_dimensions");
  const Shape from = c.inputs[0].shape(), to = c.outputs[0].shape();
  Dims summed;
  for (size_t axis = 0; axis < to.rank(); ++axis) {
    const auto found = std::find(dims.begin(), dims.end(), static_cast<int64_t>(axis));
    if (found == dims.end() || from[static_cast<size_t>(found - dims.begin())] != to[axis])
      summed.push_back(static_cast<int64_t>(axis));
  }
  const Tensor g = c.cotangent();
  return {reshape(summed.empty() ? g : reduce_sum(g, summed), from.dims())};
}

const Primitive kBroadcastInDim{
    .name = "stablehlo.broadcast_in_dim", .infer = infer_broadcast, .vjp = vjp_broadcast};

const Primitive kTranspose{.name = "stablehlo.transpose",
                           .infer =
                               [](const InferContext& c) {
                                 const Dims& permutation = dims_attribute(c, "permutation");
                                 const Shape& from = c.inputs[0].shape;
                                 Dims sorted = permutation;
                                 std::sort(sorted.begin(), sorted.end());
                                 if (sorted != axes_of(from.rank()))
                                   throw_error<ShapeError>("expected a permutation of the {} axes, got [{}]",
                                                           from.rank(), fmt::join(permutation, ", "));
                                 Dims dims;
                                 for (int64_t axis : permutation)
                                   dims.push_back(from[static_cast<size_t>(axis)]);
                                 return std::vector<TensorType>{{c.inputs[0].dtype, Shape(dims)}};
                               },
                           .vjp =
                               [](const VjpContext& c) {
                                 const Dims& permutation = c.node.attributes.get<Dims>("permutation");
                                 Dims inverse(permutation.size());
                                 for (size_t i = 0; i < permutation.size(); ++i)
                                   inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
                                 return Tensors{transpose(c.cotangent(), inverse)};
                               }};

std::vector<TensorType> infer_slice(const InferContext& c) {
  const Dims &starts = dims_attribute(c, "start_indices"), &limits = dims_attribute(c, "limit_indices"),
             &strides = dims_attribute(c, "strides");
  const Shape& from = c.inputs[0].shape;
  check_count(starts, from, "the start");
  check_count(limits, from, "the limit");
  check_count(strides, from, "the stride");
  Dims dims;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (starts[i] < 0 || limits[i] < starts[i] || limits[i] > from[i])
      throw_error<ShapeError>("expected 0 <= start <= limit <= {} on axis {}, got start {} and limit {}",
                              from[i], i, starts[i], limits[i]);
    if (strides[i] < 1)
      throw_error<ShapeError>("expected a stride of 1 or more on axis {}, got {}", i, strides[i]);
    dims.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  return {{c.inputs[0].dtype, Shape(dims)}};
}

Tensors vjp_slice(const VjpContext& c) {
  const Dims& starts = c.node.attributes.get<Dims>("start_indices");
  const Dims& strides = c.node.attributes.get<Dims>("strides");
  const Shape from = c.inputs[0].shape(), to = c.outputs[0].shape();
  if (to.size() == 0) return {};
  Dims high, interior;
  for (size_t i = 0; i < from.rank(); ++i) {
    high.push_back(from[i] - starts[i] - (1 + (to[i] - 1) * strides[i]));
    interior.push_back(strides[i] - 1);
  }
  return {pad(c.cotangent(), 0.0, starts, high, interior)};
}

const Primitive kSlice{.name = "stablehlo.slice", .infer = infer_slice, .vjp = vjp_slice};

std::vector<TensorType> infer_pad(const InferContext& c) {
  const Dims &low = dims_attribute(c, "edge_padding_low"), &high = dims_attribute(c, "edge_padding_high"),
             &interior = dims_attribute(c, "interior_padding");
  const Shape& from = c.inputs[0].shape;
  check_count(low, from, "the low padding");
  check_count(high, from, "the high padding");
  check_count(interior, from, "the interior padding");
  Dims dims;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (interior[i] < 0)
      throw_error<ShapeError>("expected interior padding of 0 or more on axis {}, got {}", i, interior[i]);
    dims.push_back(low[i] + high[i] + from[i] + std::max<int64_t>(from[i] - 1, 0) * interior[i]);
    if (dims.back() < 0)
      throw_error<ShapeError>("padding {} and {} removes more than axis {} of size {} has", low[i], high[i],
                              i, from[i]);
  }
  return {{c.inputs[0].dtype, Shape(dims)}};
}

Tensors vjp_pad(const VjpContext& c) {
  Dims low = c.node.attributes.get<Dims>("edge_padding_low");
  Dims high = c.node.attributes.get<Dims>("edge_padding_high");
  Dims strides = c.node.attributes.get<Dims>("interior_padding");
  for (int64_t& value : low) value = -value;
  for (int64_t& value : high) value = -value;
  for (int64_t& value : strides) ++value;
  const Tensor cut = pad(c.cotangent(), 0.0, low, high);
  return {slice(cut, Dims(cut.rank(), 0), Dims(cut.shape().dims()), strides)};
}

const Primitive kPad{.name = "stablehlo.pad", .infer = infer_pad, .vjp = vjp_pad};

}  // namespace

Tensor reshape(Tensor x, const std::vector<int64_t>& dims) {
  Dims wanted = dims;
  const auto open = std::find(wanted.begin(), wanted.end(), -1);
  if (open != wanted.end()) {
    in_operation("stablehlo.reshape", [&] {
      *open = 1;
      const int64_t rest = Shape(wanted).size();
      if (std::count(wanted.begin(), wanted.end(), -1) > 0 || rest == 0 || x.shape().size() % rest != 0)
        throw_error<ShapeError>("cannot tell the -1 in [{}] for {}", fmt::join(dims, ", "),
                                x.type().describe());
      *open = x.shape().size() / rest;
    });
  }
  if (wanted == x.shape().dims()) return x;
  return apply({.primitive = kReshape, .inputs = {x}, .extra = Shape(std::move(wanted))});
}

Tensor broadcast_in_dim(Tensor x, const Shape& shape, const std::vector<int64_t>& dims) {
  return apply({.primitive = kBroadcastInDim,
                .inputs = {x},
                .attributes = {{"broadcast_dimensions", dims}},
                .extra = shape});
}

Tensor broadcast_to(Tensor x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.rank() > shape.rank()) {
    in_operation("broadcast_to", [&] {
      throw_error<ShapeError>("{} has more axes than {}", x.type().describe(), shape.to_string());
    });
  }
  return broadcast_in_dim(x, shape, axes_of(x.rank(), shape.rank() - x.rank()));
}

Tensor transpose(Tensor x, const std::vector<int64_t>& permutation) {
  if (permutation == axes_of(x.rank())) return x;
  return apply({.primitive = kTranspose, .inputs = {x}, .attributes = {{"permutation", permutation}}});
}

Tensor expand_dims(Tensor x, int64_t axis) {
  Dims dims = x.shape().dims();
  const auto rank = static_cast<int64_t>(dims.size());
  in_operation("expand_dims", [&] {
    if (axis < -rank - 1 || axis > rank)
      throw_error<ShapeError>("expected a new axis between {} and {}, got {}", -rank - 1, rank, axis);
  });
  dims.insert(dims.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return reshape(x, dims);
}

Tensor squeeze(Tensor x, int64_t axis) {
  return in_operation("squeeze", [&] {
    Dims dims = x.shape().dims();
    const size_t at = x.shape().normalize_axis(axis);
    if (dims[at] != 1) throw_error<ShapeError>("axis {} of {} is not of size 1", axis, x.type().describe());
    dims.erase(dims.begin() + static_cast<int64_t>(at));
    return reshape(x, dims);
  });
}

Tensor slice(Tensor x, const std::vector<int64_t>& starts, const std::vector<int64_t>& limits,
             const std::vector<int64_t>& strides) {
  const Dims steps = strides.empty() ? Dims(x.rank(), 1) : strides;
  const bool whole = starts == Dims(x.rank(), 0) && limits == x.shape().dims() && steps == Dims(x.rank(), 1);
  if (whole) return x;
  return apply({.primitive = kSlice,
                .inputs = {x},
                .attributes = {{"start_indices", starts}, {"limit_indices", limits}, {"strides", steps}}});
}

Tensor slice_in_dim(Tensor x, int64_t start, int64_t limit, int64_t axis) {
  const size_t at = in_operation("slice_in_dim", [&] { return x.shape().normalize_axis(axis); });
  Dims starts(x.rank(), 0), limits = x.shape().dims();
  starts[at] = start;
  limits[at] = limit;
  return slice(x, starts, limits);
}

Tensor pad(Tensor x, double value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
           const std::vector<int64_t>& interior) {
  const Dims zero(x.rank(), 0);
  const Dims& inside = interior.empty() ? zero : interior;
  if (low == zero && high == zero && inside == zero) return x;
  const Tensor filler = full({x.dtype(), {}}, value);
  return apply(
      {.primitive = kPad,
       .inputs = {x, filler},
       .attributes = {{"edge_padding_low", low}, {"edge_padding_high", high}, {"interior_padding", inside}}});
}

}  // namespace t5x::ops
