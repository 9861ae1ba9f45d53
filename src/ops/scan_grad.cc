// The derivative of a scan. Vocabulary:
//   joint graph   one step of the body followed by its backward pass, traced together;
//   forward part  the nodes of the joint graph that came from the body;
//   residual      a value of the forward part that the backward part reads and cannot get otherwise: the
//                 forward scan is extended to return it for every step, stacked.
// Not residuals: captures, slices of xs (sliced again), and what is no dearer to compute than to read:
// values that depend on captures and constants only, broadcasts, widening conversions.
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/rewrite.h"
#include "ops/scan.h"

namespace t5x::ops {
namespace {

size_t at(ValueId id) { return static_cast<size_t>(id); }

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

size_t num_bytes(const TensorType& type) {
  return static_cast<size_t>(type.shape.size()) * byte_size(type.dtype);
}

class ScanGradient {
 public:
  explicit ScanGradient(const VjpContext& context)
      : c_(context),
        spec_(std::any_cast<ScanSpec>(context.node.extra)),
        body_(context.graph.nodes()[context.node_index].regions[0]),
        num_args_(body_->args().size()) {}

  std::vector<Tensor> run() {
    choose();
    trace_joint();
    find_residuals();
    return apply_backward(extend_forward());
  }

 private:
  void choose();
  void trace_joint();
  void find_residuals();
  void need(ValueId id);
  bool recomputed(ValueId id) const;
  std::vector<Tensor> extend_forward();
  std::vector<Tensor> apply_backward(const std::vector<Tensor>& residuals);

  const VjpContext& c_;
  const ScanSpec spec_;
  const std::shared_ptr<const Graph> body_;
  const size_t num_args_;  // carries, slices of xs, captures

  // Indices of carries, xs and captures (as inputs of the node) that get a gradient, and of ys that bring
  // one.
  std::vector<size_t> carries_, xs_, captures_, ys_;

  Region joint_;
  size_t num_forward_nodes_ = 0;
  std::vector<ValueId> forward_outputs_;  // in the joint graph
  std::vector<bool> forward_, invariant_, live_;

  std::set<ValueId> residuals_;
  std::set<size_t> used_xs_, used_captures_;  // as arguments of the body
  std::set<size_t> recomputed_nodes_;
};

// A carry gets a gradient if its start or what the body puts into it depends on a wanted input.
void ScanGradient::choose() {
  std::vector<bool> wanted = c_.wanted;
  std::vector<bool> active;
  for (bool changed = true; changed;) {
    changed = false;
    active.assign(body_->num_values(), false);
    for (size_t i = 0; i < num_args_; ++i) active[at(body_->args()[i])] = wanted[i];
    active = active_values(*body_, std::move(active));
    for (size_t i = 0; i < spec_.num_carry; ++i) {
      if (!wanted[i] && active[at(body_->outputs()[i])]) changed = wanted[i] = true;
    }
  }
  for (size_t i = 0; i < num_args_; ++i) {
    if (!wanted[i]) continue;
    (i < spec_.num_carry ? carries_ : i < spec_.num_carry + spec_.num_xs ? xs_ : captures_).push_back(i);
  }
  for (size_t k = spec_.num_carry; k < body_->outputs().size() && k < c_.cotangents.size(); ++k) {
    if (c_.cotangents[k] && active[at(body_->outputs()[k])]) ys_.push_back(k);
  }
}

// Arguments of the joint graph: those of the body, then cotangents of carries_ and ys_. Outputs: gradients of
// carries_, captures_ and xs_.
void ScanGradient::trace_joint() {
  std::vector<TensorType> types = body_->arg_types();
  for (const auto* group : {&carries_, &ys_}) {
    for (size_t k : *group) types.push_back(body_->type(body_->outputs()[k]));
  }
  joint_ = trace_region(types, [&](const std::vector<Tensor>& args) {
    const auto split = args.begin() + static_cast<long>(num_args_);
    const std::vector<Tensor> all = replay(*body_, {args.begin(), split});
    num_forward_nodes_ = current_graph().nodes().size();
    for (const Tensor& output : all) forward_outputs_.push_back(output.id());
    std::vector<Tensor> outputs, inputs;
    for (const auto* group : {&carries_, &ys_}) {
      for (size_t k : *group) outputs.push_back(all[k]);
    }
    for (const auto* group : {&carries_, &captures_, &xs_}) {
      for (size_t i : *group) inputs.push_back(args[i]);
    }
    return vjp(outputs, {split, args.end()}, inputs);
  });
}

bool ScanGradient::recomputed(ValueId id) const {
  const Graph& joint = *joint_.graph;
  const Node& node = joint.nodes()[static_cast<size_t>(joint.producer(id))];
  if (invariant_[at(id)] && node.regions.empty()) return true;
  const std::string_view name = node.primitive->name;
  const bool cheap =
      name == "stablehlo.broadcast_in_dim" || name == "stablehlo.reshape" || name == "stablehlo.convert";
  return cheap && num_bytes(joint.type(node.inputs[0])) <= num_bytes(joint.type(id));
}

void ScanGradient::need(ValueId id) {
  const Graph& joint = *joint_.graph;
  if (!forward_[at(id)]) return;
  const int64_t producer = joint.producer(id);
  if (producer < 0) {
    // Arguments come first in a graph, so their ids are their places.
    const size_t arg = at(id);
    if (arg < spec_.num_carry) {
      residuals_.insert(id);
    } else {
      (arg < spec_.num_carry + spec_.num_xs ? used_xs_ : used_captures_).insert(arg);
    }
  } else if (recomputed(id)) {
    const auto index = static_cast<size_t>(producer);
    if (!recomputed_nodes_.insert(index).second) return;
    for (ValueId input : joint.nodes()[index].inputs) need(input);
  } else {
    residuals_.insert(id);
  }
}

void ScanGradient::find_residuals() {
  const Graph& joint = *joint_.graph;
  forward_.assign(joint.num_values(), false);
  invariant_.assign(joint.num_values(), false);
  live_.assign(joint.num_values(), false);
  for (size_t i = 0; i < num_args_; ++i) {
    forward_[i] = true;
    invariant_[i] = i >= spec_.num_carry + spec_.num_xs;
  }
  for (size_t i = 0; i < num_forward_nodes_; ++i) {
    const Node& node = joint.nodes()[i];
    bool invariant = true;
    for (ValueId id : node.inputs) invariant = invariant && invariant_[at(id)];
    for (ValueId id : node.results) {
      forward_[at(id)] = true;
      invariant_[at(id)] = invariant;
    }
  }
  for (ValueId id : joint.outputs()) live_[at(id)] = true;
  for (size_t i = joint.nodes().size(); i-- > num_forward_nodes_;) mark_live_inputs(joint.nodes()[i], live_);
  for (size_t i = 0; i < joint.num_values(); ++i) {
    if (live_[i]) need(static_cast<ValueId>(i));
  }
}

// Replaces the body of the forward scan by one that also gives the residuals; returns them, stacked.
std::vector<Tensor> ScanGradient::extend_forward() {
  const Graph& joint = *joint_.graph;
  auto body = std::make_shared<Graph>();
  ValueMap map(joint.num_values(), -1);
  for (size_t i = 0; i < num_args_; ++i) map[i] = body->add_arg(joint.type(static_cast<ValueId>(i)));
  for (size_t i = 0; i < num_forward_nodes_; ++i) copy_node(joint, i, *body, map);
  std::vector<ValueId> outputs;
  std::vector<TensorType> stacked;
  for (ValueId id : forward_outputs_) outputs.push_back(map[at(id)]);
  for (ValueId id : residuals_) {
    outputs.push_back(map[at(id)]);
    stacked.push_back(stacked_type(joint.type(id), spec_.length));
  }
  body->set_outputs(std::move(outputs));
  c_.graph.node(c_.node_index).regions[0] = std::move(body);
  std::vector<Tensor> results;
  for (ValueId id : c_.graph.extend_node(c_.node_index, std::move(stacked)))
    results.emplace_back(&c_.graph, id);
  return results;
}

std::vector<Tensor> ScanGradient::apply_backward(const std::vector<Tensor>& residuals) {
  const Graph& joint = *joint_.graph;
  // Inputs of the backward scan beside the joint graph's values that its body calls them by.
  std::vector<Tensor> inputs, captures;
  std::vector<TensorType> types;
  std::vector<ValueId> named;
  auto add = [&](std::vector<Tensor>& group, const Tensor& tensor, ValueId id, bool sliced) {
    group.push_back(tensor);
    types.push_back(sliced ? slice_type(tensor.type()) : tensor.type());
    named.push_back(id);
  };
  auto cotangent_arg = [&](size_t i) { return static_cast<ValueId>(num_args_ + i); };
  for (size_t i = 0; i < carries_.size(); ++i)
    add(inputs, c_.cotangent(carries_[i]), cotangent_arg(i), false);
  for (size_t i : captures_) add(inputs, zeros(c_.inputs[i].type()), -1, false);
  const size_t num_carry = inputs.size();
  for (size_t i : used_xs_) add(inputs, c_.inputs[i], static_cast<ValueId>(i), true);
  size_t next = 0;
  for (ValueId id : residuals_) add(inputs, residuals[next++], id, true);
  for (size_t i = 0; i < ys_.size(); ++i)
    add(inputs, c_.cotangents[ys_[i]], cotangent_arg(carries_.size() + i), true);
  for (size_t i : used_captures_) add(captures, c_.inputs[i], static_cast<ValueId>(i), false);
  for (size_t i = 0; i < joint_.captures.size(); ++i) {
    const size_t arg = joint.args().size() - joint_.captures.size() + i;
    add(captures, joint_.captures[i], joint.args()[arg], false);
  }

  const Region region = trace_region(types, [&](const std::vector<Tensor>& args) {
    Graph& graph = current_graph();
    ValueMap map(joint.num_values(), -1);
    for (size_t i = 0; i < args.size(); ++i) {
      if (named[i] >= 0) map[at(named[i])] = args[i].id();
    }
    for (size_t i = 0; i < joint.nodes().size(); ++i) {
      const bool wanted =
          i < num_forward_nodes_ ? recomputed_nodes_.contains(i) : is_live(joint.nodes()[i], live_);
      if (wanted) copy_node(joint, i, graph, map);
    }
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < joint.outputs().size(); ++i) {
      Tensor output(&graph, map[at(joint.outputs()[i])]);
      // Gradients of captures add up over the steps.
      if (i >= carries_.size() && i < num_carry) output = add_any(args[i], output);
      outputs.push_back(output);
    }
    return outputs;
  });
  const ScanSpec spec{num_carry, inputs.size() - num_carry, spec_.length, !spec_.reverse};
  const std::vector<Tensor> results = apply_scan(spec, inputs, region.graph, captures);

  std::vector<Tensor> gradients(c_.inputs.size());
  next = 0;
  for (const auto* group : {&carries_, &captures_, &xs_}) {
    for (size_t i : *group) gradients[i] = results[next++];
  }
  return gradients;
}

}  // namespace

std::vector<Tensor> scan_vjp(const VjpContext& context) { return ScanGradient(context).run(); }

}  // namespace t5x::ops
