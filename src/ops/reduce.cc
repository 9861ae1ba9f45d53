#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/basic.h"
#include "graph/emitter.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

// The value that never wins a maximum (or, with `highest`, a minimum).
Array extreme(DType dtype, bool highest) {
  if (is_float(dtype)) return Array::scalar<double>(highest ? INFINITY : -INFINITY).cast(dtype);
  Array value = Array::uninitialized(dtype, {});
  uint64_t bits = highest ? ~uint64_t{0} : 0;
  if (is_signed_integer(dtype)) bits = (uint64_t{1} << (8 * byte_size(dtype) - 1)) - (highest ? 1 : 0);
  if (dtype == DType::kBool) bits = highest ? 1 : 0;
  std::memcpy(value.bytes(), &bits, byte_size(dtype));
  return value;
}

Shape reduced_shape(const Shape& shape, const Dims& axes) {
  Dims dims;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) dims.push_back(shape[i]);
  }
  return Shape(dims);
}

// Axes are normalised before the primitive is applied.
template <unsigned kAccepts>
std::vector<TensorType> infer_reduce(const InferContext& c) {
  const TensorType type = check_elementwise(c, kAccepts);
  return {{type.dtype, reduced_shape(type.shape, c.attributes.get<Dims>("dimensions"))}};
}

std::string literal(Emitter& emitter, const Array& value) {
  return emitter.op("stablehlo.constant", {}, {}, "value = " + to_mlir(value), {value.dtype(), {}});
}

void emit_reduce(Emitter& emitter, const Node& node, const char* operation, const Array& init) {
  const TensorType in = emitter.type(node.inputs[0]), scalar{in.dtype, {}};
  const std::string start = literal(emitter, init);
  const std::string name = emitter.begin_op("stablehlo.reduce", {emitter.name(node.inputs[0]), start}, 1);
  const std::vector<std::string> args = emitter.begin_block({scalar, scalar});
  emitter.end_block({emitter.op(operation, args, {scalar, scalar}, "", scalar)}, {scalar});
  emitter.end_op("dimensions = " + to_mlir(node.attributes.get<Dims>("dimensions")), {in, scalar},
                 {emitter.type(node.results[0])});
  emitter.bind(node.results[0], name);
}

DType input_dtype(Emitter& emitter, const Node& node) { return emitter.type(node.inputs[0]).dtype; }

// Spreads a reduced tensor over the axes it was reduced along.
Tensor spread(Tensor reduced, const Shape& shape, const Dims& axes) {
  Dims kept;
  for (int64_t axis : axes_of(shape.rank())) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) kept.push_back(axis);
  }
  return broadcast_in_dim(reduced, shape, kept);
}

const Primitive kReduceSum{
    .name = "reduce_sum",
    .infer = infer_reduce<kNumbers>,
    .vjp =
        [](const VjpContext& c) {
          const Shape shape = c.inputs[0].shape();
          return Tensors{spread(c.cotangent(), shape, c.node.attributes.get<Dims>("dimensions"))};
        },
    .emit =
        [](Emitter& emitter, const Node& node) {
          emit_reduce(emitter, node, "stablehlo.add", Array(input_dtype(emitter, node), {}));
        }};

// Shared equally among the elements that attain the extremum.
Tensors vjp_extremum(const VjpContext& c) {
  const Dims& axes = c.node.attributes.get<Dims>("dimensions");
  const Tensor x = c.inputs[0];
  const Shape shape = x.shape();
  const Tensor attained = x == spread(c.outputs[0], shape, axes);
  const Tensor share = c.cotangent() / reduce_sum(convert(attained, x.dtype()), axes);
  return {select(attained, spread(share, shape, axes), 0.0)};
}

const Primitive kReduceMax{.name = "reduce_max",
                           .infer = infer_reduce<kAny>,
                           .vjp = vjp_extremum,
                           .emit = [](Emitter& emitter, const Node& node) {
                             emit_reduce(emitter, node, "stablehlo.maximum",
                                         extreme(input_dtype(emitter, node), false));
                           }};
const Primitive kReduceMin{.name = "reduce_min",
                           .infer = infer_reduce<kAny>,
                           .vjp = vjp_extremum,
                           .emit = [](Emitter& emitter, const Node& node) {
                             emit_reduce(emitter, node, "stablehlo.minimum",
                                         extreme(input_dtype(emitter, node), true));
                           }};
const Primitive kReduceAnd{.name = "reduce_and",
                           .infer = infer_reduce<kBools>,
                           .vjp = no_gradient,
                           .emit = [](Emitter& emitter, const Node& node) {
                             emit_reduce(emitter, node, "stablehlo.and", Array::scalar<bool>(true));
                           }};
const Primitive kReduceOr{.name = "reduce_or",
                          .infer = infer_reduce<kBools>,
                          .vjp = no_gradient,
                          .emit = [](Emitter& emitter, const Node& node) {
                            emit_reduce(emitter, node, "stablehlo.or", Array::scalar<bool>(false));
                          }};

// A reduction of (value, position) pairs: the larger value wins, then the lower position; NaN beats all.
void emit_argmax(Emitter& emitter, const Node& node) {
  const TensorType in = emitter.type(node.inputs[0]), value{in.dtype, {}}, position{DType::kInt32, {}};
  const TensorType positions{DType::kInt32, in.shape}, flag{DType::kBool, {}};
  const auto axis = node.attributes.get<Dims>("dimensions")[0];
  const TensorType out = emitter.type(node.results[0]);
  const std::string iota =
      emitter.op("stablehlo.iota", {}, {}, fmt::format("iota_dimension = {} : i64", axis), positions);
  const std::string least = literal(emitter, extreme(in.dtype, false));
  const std::string zero = literal(emitter, Array(DType::kInt32, {}));
  const std::string result =
      emitter.begin_op("stablehlo.reduce", {emitter.name(node.inputs[0]), iota, least, zero}, 2);
  const std::vector<std::string> args = emitter.begin_block({value, position, value, position});
  const std::string &x = args[0], &at_x = args[1], &y = args[2], &at_y = args[3];
  auto compare = [&](const char* direction, const std::string& a, const std::string& b,
                     const TensorType& type) {
    const char* kind = is_float(type.dtype) ? "FLOAT" : is_signed_integer(type.dtype) ? "SIGNED" : "UNSIGNED";
    return emitter.op(
        "stablehlo.compare", {a, b}, {type, type},
        fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = "
                    "#stablehlo<comparison_type {}>",
                    direction, kind),
        flag);
  };
  auto combine = [&](const char* operation, const std::string& a, const std::string& b) {
    return emitter.op(operation, {a, b}, {flag, flag}, "", flag);
  };
  auto choose = [&](const std::string& which, const std::string& a, const std::string& b,
                    const TensorType& type) {
    return emitter.op("stablehlo.select", {which, a, b}, {flag, type, type}, "", type);
  };
  std::string larger = compare("GT", x, y, value);
  if (is_float(in.dtype)) larger = combine("stablehlo.or", larger, compare("NE", x, x, value));
  const std::string earlier =
      combine("stablehlo.and", compare("EQ", x, y, value), compare("LT", at_x, at_y, position));
  const std::string at = choose(combine("stablehlo.or", larger, earlier), at_x, at_y, position);
  emitter.end_block({choose(larger, x, y, value), at}, {value, position});
  emitter.end_op("dimensions = " + to_mlir(Dims{axis}), {in, positions, value, position},
                 {{in.dtype, out.shape}, out});
  emitter.bind(node.results[0], result + "#1");
}

const Primitive kArgmax{.name = "argmax",
                        .infer =
                            [](const InferContext& c) {
                              const Dims& axes = c.attributes.get<Dims>("dimensions");
                              const Shape& shape = c.inputs[0].shape;
                              if (shape.dim(axes[0]) == 0)
                                throw_error<ShapeError>("axis {} of {} has no elements", axes[0],
                                                        c.inputs[0].describe());
                              return std::vector<TensorType>{{DType::kInt32, reduced_shape(shape, axes)}};
                            },
                        .vjp = no_gradient,
                        .emit = emit_argmax};

Tensor reduce(const Primitive& primitive, Tensor x, const Dims& axes, bool keepdims) {
  const Shape shape = x.shape();
  const Dims dims = in_operation(
      primitive.name, [&] { return axes.empty() ? axes_of(shape.rank()) : normalize_axes(shape, axes); });
  const Tensor result =
      dims.empty() ? x : apply({.primitive = primitive, .inputs = {x}, .attributes = {{"dimensions", dims}}});
  if (!keepdims) return result;
  Dims kept = shape.dims();
  for (int64_t axis : dims) kept[static_cast<size_t>(axis)] = 1;
  return reshape(result, kept);
}

// What sums are kept in: half precision floats in float32, bools as int32.
DType accumulator(DType dtype) {
  if (dtype == DType::kBool) return DType::kInt32;
  return is_float(dtype) && byte_size(dtype) < 4 ? DType::kFloat32 : dtype;
}

}  // namespace

Tensor reduce_sum(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  const DType dtype = x.dtype();
  const Tensor total = reduce(kReduceSum, convert(x, accumulator(dtype)), axes, keepdims);
  return dtype == DType::kBool ? total : convert(total, dtype);
}
Tensor reduce_max(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  return reduce(kReduceMax, x, axes, keepdims);
}
Tensor reduce_min(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  return reduce(kReduceMin, x, axes, keepdims);
}
Tensor reduce_and(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  return reduce(kReduceAnd, x, axes, keepdims);
}
Tensor reduce_or(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  return reduce(kReduceOr, x, axes, keepdims);
}

Tensor reduce_mean(Tensor x, const std::vector<int64_t>& axes, bool keepdims) {
  const DType dtype = is_float(x.dtype()) ? x.dtype() : DType::kFloat32;
  const int64_t size = x.shape().size();
  const Tensor total = reduce(kReduceSum, convert(x, accumulator(dtype)), axes, keepdims);
  const int64_t kept = total.shape().size();
  // An empty mean is 0 / 0, as NumPy's.
  const double count = kept == 0 ? 1.0 : static_cast<double>(size / kept);
  return convert(total / count, dtype);
}

Tensor sum(Tensor x) { return reduce_sum(x, {}); }
Tensor mean(Tensor x) { return reduce_mean(x, {}); }
Tensor all(Tensor x) { return reduce_and(x, {}); }
Tensor any(Tensor x) { return reduce_or(x, {}); }

Tensor argmax(Tensor x, int64_t axis) { return reduce(kArgmax, x, {axis}, false); }

}  // namespace t5x::ops
