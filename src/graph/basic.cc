#include "graph/basic.h"

#include "base/error.h"
#include "graph/emitter.h"
#include "graph/primitive.h"

namespace t5x {
namespace {

// A splat keeps a scalar as its value and its shape in `extra`.
std::vector<TensorType> infer_constant(const InferContext& c) {
  const Array& value = c.attributes.get<Array>("value");
  const auto* shape = std::any_cast<Shape>(&c.extra);
  return {{value.dtype(), shape != nullptr ? *shape : value.shape()}};
}

void emit_constant(Emitter& emitter, const Node& node) {
  const TensorType& type = emitter.type(node.results[0]);
  const std::string literal = dense_literal(node.attributes.get<Array>("value"), type.shape);
  emitter.bind(node.results[0], emitter.op("stablehlo.constant", {}, {},
                                           fmt::format("value = {} : {}", literal, type.to_mlir()), type));
}

const Primitive kConstant{
    .name = "stablehlo.constant", .infer = infer_constant, .vjp = no_gradient, .emit = emit_constant};

const Primitive kAddAny{.name = "stablehlo.add",
                        .infer =
                            [](const InferContext& c) {
                              if (c.inputs.size() != 2 || c.inputs[0] != c.inputs[1]) {
                                throw_error<ShapeError>("add_any takes two tensors of the same type");
                              }
                              return std::vector<TensorType>{c.inputs[0]};
                            },
                        .vjp =
                            [](const VjpContext& c) {
                              return std::vector<Tensor>{c.cotangent(), c.cotangent()};
                            }};

// Leaves out what nobody reads.
void emit_barrier(Emitter& emitter, const Node& node) {
  std::vector<std::string> operands;
  std::vector<TensorType> types;
  std::vector<ValueId> results;
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (!emitter.is_live(node.results[i])) continue;
    operands.push_back(emitter.name(node.inputs[i]));
    types.push_back(emitter.type(node.inputs[i]));
    results.push_back(node.results[i]);
  }
  const std::vector<std::string> names =
      emitter.op("stablehlo.optimization_barrier", operands, types, "", types);
  for (size_t i = 0; i < results.size(); ++i) emitter.bind(results[i], names[i]);
}

const Primitive kBarrier{
    .name = "stablehlo.optimization_barrier",
    .infer = [](const InferContext& c) { return std::vector<TensorType>(c.inputs.begin(), c.inputs.end()); },
    .vjp = [](const VjpContext& c) { return std::vector<Tensor>(c.cotangents.begin(), c.cotangents.end()); },
    .emit = emit_barrier,
    .independent = true};

}  // namespace

Tensor constant(const Array& value) {
  return apply({.primitive = kConstant, .inputs = {}, .attributes = {{"value", value}}});
}

Tensor full(const TensorType& type, double value) {
  const Array scalar = Array::scalar<double>(value).cast(type.dtype);
  return apply(
      {.primitive = kConstant, .inputs = {}, .attributes = {{"value", scalar}}, .extra = type.shape});
}

Tensor add_any(Tensor a, Tensor b) { return apply({.primitive = kAddAny, .inputs = {a, b}}); }

std::vector<Tensor> optimization_barrier(std::vector<Tensor> tensors) {
  return apply_multi({.primitive = kBarrier, .inputs = std::move(tensors)});
}

Tensor optimization_barrier(Tensor tensor) { return apply({.primitive = kBarrier, .inputs = {tensor}}); }

}  // namespace t5x
