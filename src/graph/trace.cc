#include "graph/trace.h"

#include <algorithm>

#include "base/error.h"
#include "graph/primitive.h"

namespace t5x {
namespace {

struct Frame {
  Graph* graph;
  std::vector<Tensor> captures = {};       // tensors of the enclosing frame's graph
  std::vector<ValueId> capture_args = {};  // the arguments they became
  int32_t segment = 0;
  RematScope::Saveable saveable = nullptr;
};

struct Tracer {
  std::vector<Frame> frames;
  std::string scope;
  int32_t next_segment = 1;
};

Tracer& tracer() {
  thread_local Tracer instance;
  return instance;
}

// Removes the frame again, also when tracing throws.
class FrameGuard {
 public:
  explicit FrameGuard(Graph* graph) { tracer().frames.push_back({graph}); }
  ~FrameGuard() { tracer().frames.pop_back(); }
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;
};

Tensor lift_into(size_t frame_index, Tensor tensor) {
  Frame& frame = tracer().frames[frame_index];
  if (&tensor.graph() == frame.graph) return tensor;
  if (frame_index == 0)
    throw_error<InternalError>("a tensor of {} comes from a trace that has ended", tensor.type().describe());
  const Tensor outer = lift_into(frame_index - 1, tensor);
  for (size_t i = 0; i < frame.captures.size(); ++i) {
    if (frame.captures[i].same_as(outer)) return {frame.graph, frame.capture_args[i]};
  }
  const ValueId arg = frame.graph->add_arg(outer.type());
  frame.captures.push_back(outer);
  frame.capture_args.push_back(arg);
  return {frame.graph, arg};
}

Region trace_into(const std::vector<TensorType>& arg_types, const TraceFunction& function) {
  auto graph = std::make_shared<Graph>();
  FrameGuard guard(graph.get());
  std::vector<Tensor> args;
  for (const TensorType& type : arg_types) args.emplace_back(graph.get(), graph->add_arg(type));
  std::vector<ValueId> outputs;
  for (const Tensor& output : function(args)) outputs.push_back(lift(output).id());
  graph->set_outputs(std::move(outputs));
  return {graph, tracer().frames.back().captures};
}

}  // namespace

std::shared_ptr<Graph> trace(const std::vector<TensorType>& arg_types, const TraceFunction& function) {
  // A trace inside another one is independent of it.
  Tracer outer = std::exchange(tracer(), Tracer{});
  struct Restore {
    Tracer& saved;
    ~Restore() { tracer() = std::move(saved); }
  } restore{outer};
  return std::const_pointer_cast<Graph>(trace_into(arg_types, function).graph);
}

Region trace_region(const std::vector<TensorType>& arg_types, const TraceFunction& function) {
  current_graph();
  return trace_into(arg_types, function);
}

bool is_tracing() { return !tracer().frames.empty(); }

Graph& current_graph() {
  if (!is_tracing()) throw_error<InternalError>("a tensor operation was called outside of a trace");
  return *tracer().frames.back().graph;
}

Tensor lift(Tensor tensor) {
  current_graph();
  if (!tensor) throw_error<InternalError>("an empty tensor handle was used");
  return lift_into(tracer().frames.size() - 1, tensor);
}

NameScope::NameScope(const std::string& name) : previous_size_(tracer().scope.size()) {
  std::string& scope = tracer().scope;
  if (!scope.empty() && !name.empty()) scope += '/';
  scope += name;
}
NameScope::~NameScope() { tracer().scope.resize(previous_size_); }
const std::string& current_scope() { return tracer().scope; }

AbsoluteScope::AbsoluteScope(std::string path) : previous_(std::exchange(tracer().scope, std::move(path))) {}
AbsoluteScope::~AbsoluteScope() { tracer().scope = std::move(previous_); }

RematScope::RematScope(Saveable saveable) {
  current_graph();
  Frame& frame = tracer().frames.back();
  previous_segment_ = frame.segment;
  previous_saveable_ = frame.saveable;
  if (frame.segment != 0) return;
  frame.segment = tracer().next_segment++;
  frame.saveable = saveable;
}
RematScope::~RematScope() {
  tracer().frames.back().segment = previous_segment_;
  tracer().frames.back().saveable = previous_saveable_;
}

std::vector<Tensor> apply_multi(Operation operation) {
  Graph& graph = current_graph();
  const Frame& frame = tracer().frames.back();
  Node node;
  node.primitive = &operation.primitive;
  node.num_captures = operation.captures.size();
  std::vector<TensorType> types;
  for (const auto* group : {&operation.inputs, &operation.captures}) {
    for (const Tensor& tensor : *group) {
      const Tensor inner = lift(tensor);
      node.inputs.push_back(inner.id());
      types.push_back(inner.type());
    }
  }
  node.attributes = std::move(operation.attributes);
  node.extra = std::move(operation.extra);
  node.regions = std::move(operation.regions);
  node.scope = graph.intern_scope(tracer().scope);
  node.segment = frame.segment;
  node.saved = frame.saveable != nullptr && frame.saveable(node);
  std::vector<TensorType> results;
  try {
    results = operation.primitive.infer({types, node.attributes, node.extra, node.regions});
  } catch (Error& e) {
    std::string operands;
    for (const TensorType& type : types) operands += (operands.empty() ? "" : ", ") + type.describe();
    e.add_context(fmt::format("{}({})", operation.primitive.name, operands));
    if (!tracer().scope.empty()) e.add_context(tracer().scope);
    throw;
  }
  const size_t index = graph.add_node(std::move(node), std::move(results));
  std::vector<Tensor> tensors;
  for (ValueId id : graph.nodes()[index].results) tensors.emplace_back(&graph, id);
  return tensors;
}

Tensor apply(Operation operation) {
  std::vector<Tensor> results = apply_multi(std::move(operation));
  if (results.size() != 1)
    throw_error<InternalError>("an operation with {} results was used as one", results.size());
  return results[0];
}

}  // namespace t5x
