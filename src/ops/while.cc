// while_loop as jax.lax.while_loop has it: StableHLO's while.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/primitive.h"
#include "graph/rewrite.h"
#include "ops/control.h"

namespace t5x::ops {
namespace {

std::vector<TensorType> infer_while(const InferContext& c) {
  const std::vector<TensorType> condition = c.regions[0]->output_types(), body = c.regions[1]->output_types();
  if (condition != std::vector<TensorType>{{DType::kBool, {}}}) {
    throw_error<ShapeError>("the condition of a while loop must be one bool scalar, not {}",
                            condition.empty() ? "nothing" : condition[0].describe());
  }
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != c.inputs[i]) {
      throw_error<ShapeError>(
          "carry {} of a while loop starts as {} and leaves the body as {}; convert one of them", i,
          c.inputs[i].describe(), body[i].describe());
    }
  }
  return body;
}

const Primitive kWhile{.name = "stablehlo.while", .infer = infer_while};

}  // namespace

Tensors while_loop(const Tensors& init, const std::function<Tensor(const Tensors&)>& condition,
                   const std::function<Tensors(const Tensors&)>& body) {
  std::vector<TensorType> types;
  for (const Tensor& carry : init) types.push_back(carry.type());
  std::vector<Region> regions;
  regions.push_back(trace_region(types, [&](const Tensors& args) { return Tensors{condition(args)}; }));
  regions.push_back(trace_region(types, [&](const Tensors& args) {
    Tensors next = body(args);
    if (next.size() != args.size()) {
      throw_error<ShapeError>("while_loop: the body takes {} carries and returns {}", args.size(),
                              next.size());
    }
    return next;
  }));
  const std::vector<Tensor> captures = unite_captures(regions, {init.size(), init.size()});
  return apply_multi({.primitive = kWhile,
                      .inputs = init,
                      .regions = {regions[0].graph, regions[1].graph},
                      .captures = captures});
}

}  // namespace t5x::ops
