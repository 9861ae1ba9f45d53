// The traced program. Vocabulary:
//   value      what a node computes or an argument brings: an id within its graph, with a type;
//   node       one application of a primitive: input values, result values, attributes, regions;
//   graph      an arena of nodes in creation order, which is also an order of execution;
//   region     a graph that a node owns: the body of a scan, a while, a reduction. Its arguments are the
//   node's own
//              arguments followed by the captures: values of the outer graph that the body mentions;
//   Tensor     a {graph, value id} handle: what model code passes around;
//   segment    a run of nodes whose results are computed again during differentiation (rematerialised), not
//   kept.
// Graphs hold plain data and no handles, so a region can be copied and shared.
#pragma once

#include <any>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/array.h"

namespace t5x {

struct Primitive;
class Graph;

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  // "tensor<8x128xf32>"
  std::string to_mlir() const;
  // "float32(8, 128)"
  std::string describe() const;
};

using ValueId = int32_t;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  // False for the empty handle, which stands for "no tensor" (an absent mask, a zero gradient).
  explicit operator bool() const { return graph_ != nullptr; }
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  size_t rank() const { return shape().rank(); }
  // Size along an axis, counted from the end when negative.
  int64_t dim(int64_t axis) const { return shape().dim(axis); }
  bool same_as(const Tensor& other) const { return graph_ == other.graph_ && id_ == other.id_; }

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = -1;
};

// An attribute spelled as MLIR spells it, such as #stablehlo<comparison_direction LT>.
struct MlirText {
  std::string text;
};
using Attribute = std::variant<bool, int64_t, std::vector<int64_t>, Array, MlirText>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : items_(items) {}
  // Throws InternalError when absent or of another kind.
  template <class T>
  const T& get(std::string_view name) const {
    const T* value = std::get_if<T>(&find(name));
    if (value == nullptr) throw_wrong_kind(name);
    return *value;
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool empty() const { return items_.empty(); }

 private:
  const Attribute& find(std::string_view name) const;
  [[noreturn]] static void throw_wrong_kind(std::string_view name);
  std::vector<std::pair<std::string, Attribute>> items_;
};

struct Node {
  const Primitive* primitive = nullptr;
  std::vector<ValueId> inputs;  // operands, then the captures of the regions
  size_t num_captures = 0;
  std::vector<ValueId> results;
  Attributes attributes;  // printed with the operation
  std::any extra;         // what only the primitive's own rules read
  std::vector<std::shared_ptr<const Graph>> regions;
  int32_t scope = 0;    // index into Graph::scopes()
  int32_t segment = 0;  // 0: not rematerialised
  bool saved = false;   // within a segment: the results are kept all the same
};

class Graph {
 public:
  ValueId add_arg(TensorType type);
  // Appends a node; `results` are its result types. Returns the node's index.
  size_t add_node(Node node, std::vector<TensorType> results);
  // Adds results to a node that exists, such as the residuals that a scan also returns once it is
  // differentiated.
  std::vector<ValueId> extend_node(size_t index, std::vector<TensorType> results);

  const std::vector<Node>& nodes() const { return nodes_; }
  Node& node(size_t index) { return nodes_[index]; }
  const std::vector<ValueId>& args() const { return args_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  const TensorType& type(ValueId id) const { return values_[static_cast<size_t>(id)].type; }
  size_t num_values() const { return values_.size(); }
  // Index of the node that computes the value; -1 for an argument.
  int64_t producer(ValueId id) const { return values_[static_cast<size_t>(id)].node; }
  std::vector<TensorType> arg_types() const;
  std::vector<TensorType> output_types() const;

  // Interns a module path such as "encoder/layers_0/mlp".
  int32_t intern_scope(const std::string& path);
  const std::vector<std::string>& scopes() const { return scopes_; }

 private:
  struct Value {
    TensorType type;
    int64_t node;
  };
  // A deque: references to types stay good while the graph grows, as in f(x.shape()).
  std::deque<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> args_, outputs_;
  std::vector<std::string> scopes_{""};
};

}  // namespace t5x
