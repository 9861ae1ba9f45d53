// A primitive: one constant in one file of ops/, with its shape rule, its derivative and, only where the
// generic printer does not do, its emission. There is no other registration.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace t5x {

class Emitter;

// What a shape rule sees.
struct InferContext {
  std::span<const TensorType> inputs;  // operands, then captures
  const Attributes& attributes;
  const std::any& extra;
  std::span<const std::shared_ptr<const Graph>> regions;
};

// What a derivative rule sees. All tensors belong to the graph being traced.
struct VjpContext {
  const Node& node;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> cotangents;  // one per output; empty where no gradient arrives
  const std::vector<bool>& wanted;     // one per input; a rule may skip the others
  size_t node_index;                   // of `node` in `graph`; for rules that extend their own node
  Graph& graph;

  // The cotangent of an output, zeros if none arrived.
  Tensor cotangent(size_t output = 0) const;
};

struct Primitive {
  const char* name;  // the StableHLO operation, unless `emit` is given
  // Result types from input types. Throws ShapeError that names the rule.
  std::vector<TensorType> (*infer)(const InferContext&);
  // Gradients of the inputs, in their order; empty handles (or missing at the end) mean zero. Null: not
  // differentiable.
  std::vector<Tensor> (*vjp)(const VjpContext&) = nullptr;
  // Prints the node. Null: the generic form of the operation `name`.
  void (*emit)(Emitter&, const Node&) = nullptr;
  // Result i depends on operand i only, so that pairs nobody reads can be left out.
  bool independent = false;
};

// A derivative rule for primitives that no gradient passes, such as comparisons.
std::vector<Tensor> no_gradient(const VjpContext& context);

struct Operation {
  const Primitive& primitive;
  std::vector<Tensor> inputs;
  Attributes attributes = {};
  std::any extra = {};
  std::vector<std::shared_ptr<const Graph>> regions = {};
  std::vector<Tensor> captures = {};
};

// Appends the operation to the graph being traced. Throws ShapeError with the operation and its module path.
std::vector<Tensor> apply_multi(Operation operation);
// The same for operations with one result.
Tensor apply(Operation operation);

}  // namespace t5x
