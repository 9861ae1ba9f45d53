#include "graph/rewrite.h"

#include <algorithm>

#include "base/error.h"
#include "graph/primitive.h"

namespace t5x {
namespace {

size_t at(ValueId id) { return static_cast<size_t>(id); }

}  // namespace

void copy_node(const Graph& from, size_t index, Graph& to, ValueMap& map) {
  const Node& original = from.nodes()[index];
  Node node = original;
  node.inputs.clear();
  node.results.clear();
  node.scope = to.intern_scope(from.scopes()[at(original.scope)]);
  std::vector<TensorType> types;
  std::vector<ValueId> results;
  for (size_t i = 0; i < original.inputs.size(); ++i) {
    const ValueId copy = map[at(original.inputs[i])];
    if (copy >= 0) {
      node.inputs.push_back(copy);
    } else if (!original.primitive->independent) {
      throw_error<InternalError>("operand {} of {} was not copied", i, original.primitive->name);
    }
  }
  for (size_t i = 0; i < original.results.size(); ++i) {
    if (original.primitive->independent && map[at(original.inputs[i])] < 0) continue;
    results.push_back(original.results[i]);
    types.push_back(from.type(results.back()));
  }
  const size_t copied = to.add_node(std::move(node), std::move(types));
  for (size_t i = 0; i < results.size(); ++i) map[at(results[i])] = to.nodes()[copied].results[i];
}

std::vector<ValueId> copy_graph(const Graph& from, Graph& to, const std::vector<ValueId>& args) {
  if (args.size() != from.args().size()) {
    throw_error<InternalError>("a graph of {} arguments was copied with {}", from.args().size(), args.size());
  }
  ValueMap map(from.num_values(), -1);
  for (size_t i = 0; i < args.size(); ++i) map[at(from.args()[i])] = args[i];
  for (size_t i = 0; i < from.nodes().size(); ++i) copy_node(from, i, to, map);
  std::vector<ValueId> outputs;
  for (ValueId id : from.outputs()) outputs.push_back(map[at(id)]);
  return outputs;
}

std::vector<Tensor> replay(const Graph& from, const std::vector<Tensor>& args) {
  Graph& graph = current_graph();
  std::vector<ValueId> ids;
  for (const Tensor& arg : args) ids.push_back(lift(arg).id());
  std::vector<Tensor> outputs;
  for (ValueId id : copy_graph(from, graph, ids)) outputs.emplace_back(&graph, id);
  return outputs;
}

bool is_live(const Node& node, const std::vector<bool>& live) {
  return std::any_of(node.results.begin(), node.results.end(), [&](ValueId id) { return live[at(id)]; });
}

void mark_live_inputs(const Node& node, std::vector<bool>& live) {
  if (!is_live(node, live)) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.primitive->independent && !live[at(node.results[i])]) continue;
    live[at(node.inputs[i])] = true;
  }
}

std::vector<Tensor> unite_captures(std::vector<Region>& regions, const std::vector<size_t>& num_args) {
  std::vector<Tensor> all;
  auto position = [&](const Tensor& capture) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].same_as(capture)) return i;
    }
    all.push_back(capture);
    return all.size() - 1;
  };
  for (const Region& region : regions) {
    for (const Tensor& capture : region.captures) position(capture);
  }
  for (size_t r = 0; r < regions.size(); ++r) {
    const Graph& old = *regions[r].graph;
    auto graph = std::make_shared<Graph>();
    std::vector<ValueId> args, captures;
    for (size_t i = 0; i < num_args[r]; ++i) args.push_back(graph->add_arg(old.type(old.args()[i])));
    for (const Tensor& capture : all) captures.push_back(graph->add_arg(capture.type()));
    for (const Tensor& capture : regions[r].captures) args.push_back(captures[position(capture)]);
    graph->set_outputs(copy_graph(old, *graph, args));
    regions[r] = {graph, all};
  }
  return all;
}

}  // namespace t5x
