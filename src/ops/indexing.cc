#include "ops/indexing.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/basic.h"
#include "graph/emitter.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

// [b..., n, rest...] at [b..., i...]: the shape [b..., i..., rest...].
Shape rows_shape(const TensorType& table, const TensorType& indices, size_t batch) {
  if (indices.dtype != DType::kInt32 && indices.dtype != DType::kInt64 && indices.dtype != DType::kUInt32)
    throw_error<ShapeError>("expected integer indices of 32 or 64 bits, got {}", indices.describe());
  if (table.shape.rank() <= batch || indices.shape.rank() < batch)
    throw_error<ShapeError>(
        "expected a table of rank {} or more and indices of rank {} or more, got {} and {}", batch + 1, batch,
        table.describe(), indices.describe());
  for (size_t i = 0; i < batch; ++i) {
    if (table.shape[i] != indices.shape[i])
      throw_error<ShapeError>("batch axis {} has size {} in the table and {} in the indices", i,
                              table.shape[i], indices.shape[i]);
  }
  Dims dims = indices.shape.dims();
  dims.insert(dims.end(), table.shape.begin() + static_cast<int64_t>(batch) + 1, table.shape.end());
  return Shape(dims);
}

const Primitive kTake{
    .name = "stablehlo.gather",
    .infer =
        [](const InferContext& c) {
          const auto batch = std::any_cast<size_t>(c.extra);
          const Shape shape = rows_shape(c.inputs[0], c.inputs[1], batch);
          if (c.inputs[0].shape[batch] == 0 && shape.size() > 0)
            throw_error<ShapeError>("expected a table with rows, got {}", c.inputs[0].describe());
          return std::vector<TensorType>{{c.inputs[0].dtype, shape}};
        },
    .vjp =
        [](const VjpContext& c) {
          // Many rows may meet: half precision would lose most of what is added.
          const TensorType table = c.inputs[0].type();
          const DType dtype = byte_size(table.dtype) < 4 ? DType::kFloat32 : table.dtype;
          const Tensor sum = scatter_add(zeros({dtype, table.shape}), c.inputs[1],
                                         convert(c.cotangent(), dtype), std::any_cast<size_t>(c.node.extra));
          return Tensors{convert(sum, table.dtype)};
        }};

void emit_scatter_add(Emitter& emitter, const Node& node) {
  const auto batch = std::any_cast<size_t>(node.extra);
  std::vector<TensorType> types;
  for (ValueId id : node.inputs) types.push_back(emitter.type(id));
  const TensorType scalar{types[0].dtype, {}};
  const size_t indices_rank = types[1].shape.rank();
  const std::string name = emitter.begin_op("stablehlo.scatter", emitter.names(node.inputs), 1);
  const std::vector<std::string> args = emitter.begin_block({scalar, scalar});
  emitter.end_block({emitter.op("stablehlo.add", args, {scalar, scalar}, "", scalar)}, {scalar});
  const Dims window = axes_of(types[2].shape.rank() - indices_rank, indices_rank);
  const std::string batches = fmt::format("{}", fmt::join(axes_of(batch), ", "));
  emitter.end_op(
      fmt::format("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], "
                  "inserted_window_dims = [{}], input_batching_dims = [{}], scatter_indices_batching_dims = "
                  "[{}], scatter_dims_to_operand_dims = [{}], index_vector_dim = {}>, indices_are_sorted = "
                  "false, unique_indices = false",
                  fmt::join(window, ", "), batch, batches, batches, batch, indices_rank),
      types, {types[0]});
  emitter.bind(node.results[0], name);
}

const Primitive kScatterAdd{
    .name = "scatter_add",
    .infer =
        [](const InferContext& c) {
          const TensorType &table = c.inputs[0], &updates = c.inputs[2];
          const TensorType expected{table.dtype,
                                    rows_shape(table, c.inputs[1], std::any_cast<size_t>(c.extra))};
          if (updates != expected)
            throw_error<ShapeError>("expected updates {}, got {}", expected.describe(), updates.describe());
          if (table.dtype == DType::kBool)
            throw_error<ShapeError>("expected numbers, got {}", table.describe());
          return std::vector<TensorType>{table};
        },
    .vjp =
        [](const VjpContext& c) {
          Tensors gradients{c.cotangent(), {}, {}};
          if (c.wanted[2])
            gradients[2] = take(c.cotangent(), c.inputs[1], std::any_cast<size_t>(c.node.extra));
          return gradients;
        },
    .emit = emit_scatter_add};

}  // namespace

Tensor take(Tensor table, Tensor indices, size_t num_batch_axes) {
  const size_t indices_rank = indices.rank();
  const size_t rest = table.rank() > num_batch_axes ? table.rank() - num_batch_axes - 1 : 0;
  Dims sizes = table.shape().dims();
  for (size_t i = 0; i <= num_batch_axes && i < sizes.size(); ++i) sizes[i] = 1;
  const std::string batches = fmt::format("{}", fmt::join(axes_of(num_batch_axes), ", "));
  const std::string numbers = fmt::format(
      "#stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], operand_batching_dims = [{}], "
      "start_indices_batching_dims = [{}], start_index_map = [{}], index_vector_dim = {}>",
      fmt::join(axes_of(rest, indices_rank), ", "), num_batch_axes, batches, batches, num_batch_axes,
      indices_rank);
  return apply({.primitive = kTake,
                .inputs = {table, indices},
                .attributes = {{"dimension_numbers", MlirText{numbers}},
                               {"slice_sizes", sizes},
                               {"indices_are_sorted", false}},
                .extra = num_batch_axes});
}

Tensor scatter_add(Tensor table, Tensor indices, Tensor updates, size_t num_batch_axes) {
  return apply({.primitive = kScatterAdd, .inputs = {table, indices, updates}, .extra = num_batch_axes});
}

Tensor take_along_axis(Tensor x, Tensor indices, int64_t axis) {
  return in_operation("take_along_axis", [&] {
    const size_t at = x.shape().normalize_axis(axis);
    bool fits = indices.rank() == x.rank();
    for (size_t i = 0; fits && i < x.rank(); ++i) fits = i == at || indices.shape()[i] == x.shape()[i];
    if (!fits)
      throw_error<ShapeError>("expected indices of the shape {} but for axis {}, got {}",
                              x.shape().to_string(), at, indices.shape().to_string());
    // The other axes are batches; a swap of two axes is its own inverse.
    Dims swapped = axes_of(x.rank());
    std::swap(swapped[at], swapped.back());
    return transpose(take(transpose(x, swapped), transpose(indices, swapped), x.rank() - 1), swapped);
  });
}

Tensor one_hot(Tensor indices, int64_t depth, DType dtype) {
  if (!is_integer(indices.dtype())) {
    in_operation("one_hot", [&] {
      throw_error<ShapeError>("expected integer indices, got {}", indices.type().describe());
    });
  }
  const DType index_dtype = indices.dtype();
  return convert(expand_dims(indices, -1) == iota(index_dtype, {depth}, 0), dtype);
}

Tensor gather_batched(Tensor x, Tensor indices) { return take(x, indices, 1); }

}  // namespace t5x::ops
