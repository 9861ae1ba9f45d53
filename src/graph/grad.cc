#include "graph/grad.h"

#include <map>
#include <set>

#include "base/error.h"
#include "graph/basic.h"
#include "graph/primitive.h"
#include "graph/trace.h"

namespace t5x {
namespace {

// One backward walk over the nodes of a graph, from the newest to the oldest.
class Backward {
 public:
  Backward(Graph& graph, const std::vector<Tensor>& inputs);
  void seed(const Tensor& output, const Tensor& cotangent) { accumulate(output.id(), cotangent); }
  void run();
  Tensor gradient(ValueId id) const;

 private:
  void accumulate(ValueId id, const Tensor& cotangent);
  void differentiate(size_t index);
  void rematerialize(int32_t segment, std::vector<Tensor>& cotangents);
  // What a rule of a node in `segment` sees of a forward value: itself, or its recomputed copy.
  Tensor forward(int32_t segment, ValueId id) const;

  Graph& graph_;
  const size_t num_nodes_;    // of the forward part; rules append behind it
  std::vector<bool> active_;  // per value: a gradient of it is wanted, or flows through it
  std::vector<Tensor> cotangents_;
  std::map<int32_t, std::map<ValueId, Tensor>> copies_;  // per segment
  std::map<size_t, size_t> copied_nodes_;
};

Backward::Backward(Graph& graph, const std::vector<Tensor>& inputs)
    : graph_(graph),
      num_nodes_(graph.nodes().size()),
      active_(graph.num_values()),
      cotangents_(graph.num_values()) {
  for (const Tensor& input : inputs) active_[static_cast<size_t>(input.id())] = true;
  active_ = active_values(graph, std::move(active_));
}

void Backward::accumulate(ValueId id, const Tensor& cotangent) {
  Tensor& sum = cotangents_[static_cast<size_t>(id)];
  sum = sum ? add_any(sum, cotangent) : cotangent;
}

Tensor Backward::gradient(ValueId id) const {
  const Tensor& sum = cotangents_[static_cast<size_t>(id)];
  return sum ? sum : zeros(graph_.type(id));
}

Tensor Backward::forward(int32_t segment, ValueId id) const {
  if (segment != 0) {
    const auto& copies = copies_.at(segment);
    auto found = copies.find(id);
    if (found != copies.end()) return found->second;
  }
  return {&graph_, id};
}

void Backward::run() {
  for (size_t index = num_nodes_; index-- > 0;) differentiate(index);
}

void Backward::differentiate(size_t index) {
  const Node node = graph_.nodes()[index];  // a copy: rules append to the graph
  std::vector<Tensor> cotangents;
  bool active = false, arrived = false;
  for (ValueId id : node.results) {
    // Results that a rule added later are residuals: no gradient arrives there.
    const bool known = static_cast<size_t>(id) < cotangents_.size();
    cotangents.push_back(known ? cotangents_[static_cast<size_t>(id)] : Tensor());
    arrived = arrived || cotangents.back();
    active = active || (known && active_[static_cast<size_t>(id)]);
  }
  if (!arrived || !active) return;
  AbsoluteScope scope(graph_.scopes()[static_cast<size_t>(node.scope)]);
  if (node.primitive->vjp == nullptr) {
    throw_error<ShapeError>("{} in '{}' has no derivative; use stop_gradient on its input if none is wanted",
                            node.primitive->name, current_scope());
  }
  if (node.segment != 0 && !copies_.contains(node.segment)) rematerialize(node.segment, cotangents);

  std::vector<Tensor> inputs, outputs;
  std::vector<bool> wanted;
  for (ValueId id : node.inputs) {
    inputs.push_back(forward(node.segment, id));
    wanted.push_back(active_[static_cast<size_t>(id)] && is_float(graph_.type(id).dtype));
  }
  for (ValueId id : node.results) outputs.push_back(forward(node.segment, id));
  auto copy = copied_nodes_.find(index);
  const size_t target = copy != copied_nodes_.end() ? copy->second : index;
  const std::vector<Tensor> gradients =
      node.primitive->vjp({node, inputs, outputs, cotangents, wanted, target, graph_});
  for (size_t i = 0; i < gradients.size() && i < inputs.size(); ++i) {
    if (!gradients[i] || !wanted[i]) continue;
    if (gradients[i].type() != inputs[i].type()) {
      throw_error<InternalError>("the derivative of {} gives {} for operand {} of {}", node.primitive->name,
                                 gradients[i].type().describe(), i, inputs[i].type().describe());
    }
    accumulate(node.inputs[i], lift(gradients[i]));
  }
}

// Appends a copy of the segment. Its inputs pass a barrier together with the cotangents that have arrived
// (which are replaced by what comes out), so that the compiler neither merges the copy with the original nor
// computes it before the backward pass gets here.
void Backward::rematerialize(int32_t segment, std::vector<Tensor>& cotangents) {
  std::vector<size_t> members;
  std::set<ValueId> inside, outside;
  for (size_t i = 0; i < num_nodes_; ++i) {
    const Node& node = graph_.nodes()[i];
    if (node.segment != segment || node.saved) continue;
    members.push_back(i);
    for (ValueId id : node.inputs) {
      // Arguments and constants stay as they are: the copy differs by its activations.
      const int64_t from = graph_.producer(id);
      const bool computed = from >= 0 && !graph_.nodes()[static_cast<size_t>(from)].inputs.empty();
      if (computed && !inside.contains(id)) outside.insert(id);
    }
    inside.insert(node.results.begin(), node.results.end());
  }
  std::map<ValueId, Tensor>& copies = copies_[segment];
  if (!outside.empty()) {
    std::vector<Tensor> guarded;
    for (ValueId id : outside) guarded.emplace_back(&graph_, id);
    for (const Tensor& cotangent : cotangents) {
      if (cotangent) guarded.push_back(cotangent);
    }
    guarded = optimization_barrier(guarded);
    size_t next = 0;
    for (ValueId id : outside) copies[id] = guarded[next++];
    for (Tensor& cotangent : cotangents) {
      if (cotangent) cotangent = guarded[next++];
    }
  }
  for (size_t i : members) {
    Node copy = graph_.nodes()[i];
    std::vector<TensorType> types;
    for (ValueId id : copy.results) types.push_back(graph_.type(id));
    const std::vector<ValueId> originals = std::exchange(copy.results, {});
    for (ValueId& id : copy.inputs) id = forward(segment, id).id();
    copy.segment = 0;
    const size_t index = graph_.add_node(std::move(copy), std::move(types));
    copied_nodes_[i] = index;
    for (size_t k = 0; k < originals.size(); ++k)
      copies[originals[k]] = {&graph_, graph_.nodes()[index].results[k]};
  }
}

}  // namespace

Tensor VjpContext::cotangent(size_t output) const {
  return cotangents[output] ? cotangents[output] : zeros(outputs[output].type());
}

std::vector<bool> active_values(const Graph& graph, std::vector<bool> from) {
  for (const Node& node : graph.nodes()) {
    if (node.primitive->vjp == no_gradient) continue;
    bool any = false;
    for (ValueId id : node.inputs) any = any || from[static_cast<size_t>(id)];
    if (!any) continue;
    for (ValueId id : node.results) {
      if (is_float(graph.type(id).dtype)) from[static_cast<size_t>(id)] = true;
    }
  }
  return from;
}

std::vector<Tensor> no_gradient(const VjpContext&) { return {}; }

std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                        const std::vector<Tensor>& inputs) {
  Graph& graph = current_graph();
  if (outputs.size() != cotangents.size()) {
    throw_error<ShapeError>("vjp got {} outputs and {} cotangents", outputs.size(), cotangents.size());
  }
  std::vector<Tensor> local_inputs;
  for (const Tensor& input : inputs) local_inputs.push_back(lift(input));
  Backward backward(graph, local_inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].type() != cotangents[i].type()) {
      throw_error<ShapeError>("the cotangent of output {} is {}, the output {}", i,
                              cotangents[i].type().describe(), outputs[i].type().describe());
    }
    backward.seed(lift(outputs[i]), lift(cotangents[i]));
  }
  backward.run();
  std::vector<Tensor> gradients;
  for (const Tensor& input : local_inputs) gradients.push_back(backward.gradient(input.id()));
  return gradients;
}

std::vector<Tensor> grad(Tensor scalar, const std::vector<Tensor>& inputs) {
  if (scalar.rank() != 0)
    throw_error<ShapeError>("grad needs a scalar, got {}; use vjp", scalar.type().describe());
  return vjp({scalar}, {full(scalar.type(), 1.0)}, inputs);
}

}  // namespace t5x
