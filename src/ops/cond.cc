// cond as jax.lax.cond has it: StableHLO's if. Its derivative is another if, whose branches compute the
// branch of the first one again and then its gradients: nothing but the captures is kept.
#include "base/error.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/primitive.h"
#include "graph/rewrite.h"
#include "ops/control.h"

namespace t5x::ops {
namespace {

std::vector<TensorType> infer_cond(const InferContext& c) {
  if (c.inputs[0] != TensorType{DType::kBool, {}}) {
    throw_error<ShapeError>("the predicate of cond must be a bool scalar, not {}", c.inputs[0].describe());
  }
  const std::vector<TensorType> on_true = c.regions[0]->output_types(),
                                on_false = c.regions[1]->output_types();
  if (on_true.size() != on_false.size()) {
    throw_error<ShapeError>("the branches of cond give {} and {} results", on_true.size(), on_false.size());
  }
  for (size_t i = 0; i < on_true.size(); ++i) {
    if (on_true[i] != on_false[i]) {
      throw_error<ShapeError>("result {} of cond is {} in the true branch and {} in the false one", i,
                              on_true[i].describe(), on_false[i].describe());
    }
  }
  return on_true;
}

std::vector<Tensor> cond_vjp(const VjpContext& c);

const Primitive kCond{.name = "stablehlo.if", .infer = infer_cond, .vjp = cond_vjp};

Tensors apply_cond(Tensor predicate, std::vector<Region> regions, const std::vector<size_t>& num_args) {
  const std::vector<Tensor> captures = unite_captures(regions, num_args);
  return apply_multi({.primitive = kCond,
                      .inputs = {predicate},
                      .regions = {regions[0].graph, regions[1].graph},
                      .captures = captures});
}

std::vector<Tensor> cond_vjp(const VjpContext& c) {
  const Node& node = c.graph.nodes()[c.node_index];
  const std::vector<std::shared_ptr<const Graph>> branches = node.regions;
  std::vector<Region> regions;
  for (const auto& branch : branches) {
    regions.push_back(trace_region({}, [&](const Tensors&) {
      Tensors captures, outputs, cotangents, wanted;
      for (size_t i = 1; i < c.inputs.size(); ++i) {
        captures.push_back(lift(c.inputs[i]));
        if (c.wanted[i]) wanted.push_back(captures.back());
      }
      const Tensors all = replay(*branch, captures);
      for (size_t i = 0; i < all.size(); ++i) {
        if (!c.cotangents[i]) continue;
        outputs.push_back(all[i]);
        cotangents.push_back(lift(c.cotangents[i]));
      }
      return vjp(outputs, cotangents, wanted);
    }));
  }
  const Tensors results = apply_cond(c.inputs[0], std::move(regions), {0, 0});
  std::vector<Tensor> gradients(c.inputs.size());
  size_t next = 0;
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.wanted[i]) gradients[i] = results[next++];
  }
  return gradients;
}

}  // namespace

Tensors cond(Tensor predicate, const std::function<Tensors()>& on_true,
             const std::function<Tensors()>& on_false) {
  std::vector<Region> regions;
  regions.push_back(trace_region({}, [&](const Tensors&) { return on_true(); }));
  regions.push_back(trace_region({}, [&](const Tensors&) { return on_false(); }));
  return apply_cond(predicate, std::move(regions), {0, 0});
}

}  // namespace t5x::ops
