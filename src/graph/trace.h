// Tracing: running a C++ function on Tensor handles records what it computes as a graph. The graph being
// traced is per thread; regions nest. A tensor of an outer graph that a region mentions becomes one of the
// region's captures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace t5x {

using TraceFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Traces a whole program.
std::shared_ptr<Graph> trace(const std::vector<TensorType>& arg_types, const TraceFunction& function);

struct Region {
  std::shared_ptr<const Graph> graph;  // arguments: `arg_types`, then one per capture
  std::vector<Tensor> captures;        // tensors of the graph being traced
};
// Traces the body of a node of the current graph.
Region trace_region(const std::vector<TensorType>& arg_types, const TraceFunction& function);

// The graph being traced. Throws InternalError outside of a trace.
Graph& current_graph();
bool is_tracing();
// The handle of `tensor` inside the graph being traced: itself, or a capture.
Tensor lift(Tensor tensor);

// Names the module that the following operations belong to, while it lives: paths join with "/".
class NameScope {
 public:
  explicit NameScope(const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  size_t previous_size_;
};
const std::string& current_scope();

// Replaces the whole path while it lives: differentiation gives a gradient the name of its forward operation.
class AbsoluteScope {
 public:
  explicit AbsoluteScope(std::string path);
  ~AbsoluteScope();
  AbsoluteScope(const AbsoluteScope&) = delete;
  AbsoluteScope& operator=(const AbsoluteScope&) = delete;

 private:
  std::string previous_;
};

// While it lives, the operations traced belong to one segment: during differentiation their results are
// computed again instead of kept, except the results of operations that `saveable` accepts. A scope inside
// another one has no effect of its own.
class RematScope {
 public:
  using Saveable = bool (*)(const Node&);
  explicit RematScope(Saveable saveable = nullptr);
  ~RematScope();
  RematScope(const RematScope&) = delete;
  RematScope& operator=(const RematScope&) = delete;

 private:
  int32_t previous_segment_;
  Saveable previous_saveable_;
};

}  // namespace t5x
