#include "ops/sort.h"

#include <limits>

#include "graph/basic.h"
#include "graph/emitter.h"
#include "ops/broadcast.h"
#include "ops/indexing.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

// Floats compare in total order after -0 became 0 and every NaN the same one, as jax.lax.sort: NaN is
// largest.
std::string canonical(Emitter& emitter, const std::string& x, const TensorType& type) {
  const TensorType flag{DType::kBool, {}};
  auto replace = [&](const char* direction, const std::string& value, const std::string& other, double by) {
    const std::string which =
        emitter.op("stablehlo.compare", {value, other}, {type, type},
                   fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = "
                               "#stablehlo<comparison_type FLOAT>",
                               direction),
                   flag);
    return emitter.op("stablehlo.select", {which, emitter.splat(type, by), value}, {flag, type, type}, "",
                      type);
  };
  const std::string no_negative_zero = replace("EQ", x, emitter.splat(type, 0.0), 0.0);
  return replace("NE", no_negative_zero, no_negative_zero, std::numeric_limits<double>::quiet_NaN());
}

void emit_sort(Emitter& emitter, const Node& node) {
  std::vector<TensorType> types, args_types;
  for (ValueId id : node.inputs) {
    types.push_back(emitter.type(id));
    args_types.insert(args_types.end(), 2, {types.back().dtype, {}});
  }
  const std::string name = emitter.begin_op("stablehlo.sort", emitter.names(node.inputs), types.size());
  const std::vector<std::string> args = emitter.begin_block(args_types);
  const TensorType& type = args_types[0];
  std::string a = args[0], b = args[1];
  const char* kind = is_signed_integer(type.dtype) ? "SIGNED" : "UNSIGNED";
  if (is_float(type.dtype)) {
    kind = "TOTALORDER";
    a = canonical(emitter, a, type);
    b = canonical(emitter, b, type);
  }
  const TensorType flag{DType::kBool, {}};
  const std::string before =
      emitter.op("stablehlo.compare", {a, b}, {type, type},
                 fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = "
                             "#stablehlo<comparison_type {}>",
                             std::any_cast<bool>(node.extra) ? "GT" : "LT", kind),
                 flag);
  emitter.end_block({before}, {flag});
  emitter.end_op(
      fmt::format("dimension = {} : i64, is_stable = true", node.attributes.get<int64_t>("dimension")), types,
      types);
  for (size_t i = 0; i < node.results.size(); ++i)
    emitter.bind(node.results[i], types.size() > 1 ? fmt::format("{}#{}", name, i) : name);
}

// Sorting by the permutation brings what was carried along back to where it came from.
Tensors vjp_sort(const VjpContext& c) {
  const int64_t axis = c.node.attributes.get<int64_t>("dimension");
  Tensors keyed{c.inputs[0]};
  const Shape shape = c.inputs[0].shape();
  keyed.push_back(iota(DType::kInt32, shape, axis));
  Tensors carried{sort(keyed, axis, std::any_cast<bool>(c.node.extra))[1]};
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (c.wanted[i]) carried.push_back(c.cotangent(i));
  }
  carried = sort(carried, axis);
  Tensors gradients(c.inputs.size());
  size_t next = 1;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (c.wanted[i]) gradients[i] = carried[next++];
  }
  return gradients;
}

const Primitive kSort{.name = "sort",
                      .infer =
                          [](const InferContext& c) {
                            for (const TensorType& type : c.inputs) {
                              if (type.shape != c.inputs[0].shape)
                                throw_error<ShapeError>("expected operands of one shape, got {} and {}",
                                                        c.inputs[0].describe(), type.describe());
                            }
                            return std::vector<TensorType>(c.inputs.begin(), c.inputs.end());
                          },
                      .vjp = vjp_sort,
                      .emit = emit_sort};

const Primitive kTopK{
    .name = "chlo.top_k",
    .infer =
        [](const InferContext& c) {
          const int64_t k = c.attributes.get<int64_t>("k");
          const TensorType& x = c.inputs[0];
          if (x.shape.rank() == 0 || k < 1 || k > x.shape.dim(-1))
            throw_error<ShapeError>("expected k between 1 and the size of the last axis, got k = {} of {}", k,
                                    x.describe());
          std::vector<int64_t> dims = x.shape.dims();
          dims.back() = k;
          return std::vector<TensorType>{{x.dtype, Shape(dims)}, {DType::kInt32, Shape(dims)}};
        },
    .vjp =
        [](const VjpContext& c) {
          const TensorType x = c.inputs[0].type();
          return Tensors{scatter_add(zeros(x), c.outputs[1], c.cotangent(), x.shape.rank() - 1)};
        }};

}  // namespace

std::vector<Tensor> sort(const std::vector<Tensor>& operands, int64_t axis, bool descending) {
  const auto at = in_operation("sort", [&] {
    if (operands.empty()) throw_error<ShapeError>("expected one operand or more, got none");
    return static_cast<int64_t>(operands[0].shape().normalize_axis(axis));
  });
  return apply_multi(
      {.primitive = kSort, .inputs = operands, .attributes = {{"dimension", at}}, .extra = descending});
}

std::pair<Tensor, Tensor> top_k(Tensor x, int64_t k) {
  const Tensors results = apply_multi({.primitive = kTopK, .inputs = {x}, .attributes = {{"k", k}}});
  return {results[0], results[1]};
}

}  // namespace t5x::ops
