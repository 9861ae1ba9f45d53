// What a primitive's own emission writes with: the names of values, lines of text, bodies of regions.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace t5x {

// "tensor<4xf32>" from a type; `dense<...>` from an array.
std::string dense_literal(const Array& value, const Shape& shape);
std::string to_mlir(const Attribute& attribute);

class Emitter {
 public:
  // The printed name of a value of the graph being printed, such as "%12".
  const std::string& name(ValueId id) const { return frames_.back().names[static_cast<size_t>(id)]; }
  std::vector<std::string> names(const std::vector<ValueId>& ids) const;
  const TensorType& type(ValueId id) const { return frames_.back().graph->type(id); }
  // Names a result of the node being printed; an existing name makes it an alias.
  void bind(ValueId id, std::string name) { frames_.back().names[static_cast<size_t>(id)] = std::move(name); }
  // The graph being printed, and a place for what a primitive remembers about one of its values while it is
  // printed.
  const Graph& graph() const { return *frames_.back().graph; }
  std::any& memo(const Primitive& primitive, ValueId id) { return frames_.back().memo[{&primitive, id}]; }
  // Operations that nothing reads are not printed.
  bool is_live(ValueId id) const { return frames_.back().live[static_cast<size_t>(id)]; }

  // Prints one operation without regions and returns the name of its result.
  std::string op(std::string_view operation, const std::vector<std::string>& operands,
                 const std::vector<TensorType>& operand_types, std::string_view attributes,
                 const TensorType& result);
  // The same with several results.
  std::vector<std::string> op(std::string_view operation, const std::vector<std::string>& operands,
                              const std::vector<TensorType>& operand_types, std::string_view attributes,
                              const std::vector<TensorType>& results);
  using FunctionBody = std::function<std::vector<std::string>(const std::vector<std::string>&)>;
  // Prints `graph` as a private function, one for all graphs that print alike, and calls it. The compiler
  // keeps the call and compiles the function once. Partitioned modules get the nodes in place: their layouts
  // cross no calls.
  std::vector<std::string> outline(const std::string& tag, const Graph& graph,
                                   const std::vector<std::string>& args);
  // Calls a private function of the module. The first call of a name prints it: `body` gets the names of its
  // arguments and returns those of its results.
  std::vector<std::string> call(const std::string& function, const std::vector<std::string>& operands,
                                const std::vector<TensorType>& operand_types,
                                const std::vector<TensorType>& results, const FunctionBody& body);
  // A literal: one value everywhere.
  std::string splat(const TensorType& type, double value);
  // Opens an operation with regions: returns the base name of its results ("%7"; result i is "%7#i" when
  // several).
  std::string begin_op(std::string_view operation, const std::vector<std::string>& operands,
                       size_t num_results);
  // Prints "^bb0(...)" with fresh argument names, which it returns.
  std::vector<std::string> begin_block(const std::vector<TensorType>& args, bool first_region = true);
  void end_block(const std::vector<std::string>& results, const std::vector<TensorType>& types);
  void end_op(std::string_view attributes, const std::vector<TensorType>& operands,
              const std::vector<TensorType>& results);
  // Prints the nodes of a region in place; `args` name its arguments and captures. Returns the names of its
  // outputs.
  std::vector<std::string> inline_graph(const Graph& graph, const std::vector<std::string>& args);
  // The names of the captures of a node, which regions mention directly.
  std::vector<std::string> capture_names(const Node& node) const;

  // The generic form: the node's operation with its operands, attributes and regions.
  void generic(const Node& node);

  std::string take() { return std::move(text_); }
  void line(std::string_view text);
  void indent(int by) { depth_ += by; }
  std::string locations() const;
  void set_partitioned(bool partitioned) { partitioned_ = partitioned; }
  // The private functions that were called.
  std::string functions() const;

 private:
  struct Frame {
    const Graph* graph;
    std::vector<std::string> names;
    std::vector<bool> live;
    std::map<std::pair<const Primitive*, ValueId>, std::any> memo = {};
  };
  std::string fresh() { return "%" + std::to_string(next_++); }
  // "(%0: ...) -> (...) { ... }" of a private function, its values numbered from 0.
  std::string function_text(const std::vector<TensorType>& operands, const std::vector<TensorType>& results,
                            const FunctionBody& body);
  std::string location();
  void print_nodes();

  std::vector<Frame> frames_;
  std::string text_;
  int depth_ = 0;
  int64_t next_ = 0;
  std::map<std::string, std::string> functions_;  // name to text
  std::map<std::string, std::string> outlined_;   // text to name
  bool partitioned_ = false;
  bool keep_scope_ = false;  // the nodes printed share one location, so that equal functions print alike
  std::vector<std::string> scopes_;  // interned locations
  std::string scope_;                // of the node being printed
};

}  // namespace t5x
