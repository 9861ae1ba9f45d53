#include "graph/emitter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "graph/primitive.h"
#include "graph/rewrite.h"
#include "graph/stablehlo.h"

namespace t5x {
namespace {

std::string types_text(const std::vector<TensorType>& types) {
  std::string text = "(";
  for (size_t i = 0; i < types.size(); ++i) text += (i == 0 ? "" : ", ") + types[i].to_mlir();
  return text + ")";
}

// One element, spelled so that no bit is lost: floats by their bits.
std::string element_text(const Array& value, int64_t index) {
  const size_t size = byte_size(value.dtype());
  uint64_t bits = 0;
  std::memcpy(&bits, value.bytes() + static_cast<size_t>(index) * size, size);
  if (value.dtype() == DType::kBool) return bits != 0 ? "true" : "false";
  if (is_float(value.dtype())) return fmt::format("0x{:0{}X}", bits, 2 * size);
  if (is_unsigned_integer(value.dtype())) return std::to_string(bits);
  const int shift = static_cast<int>(64 - 8 * size);
  return std::to_string(static_cast<int64_t>(bits << shift) >> shift);
}

bool is_splat(const Array& value) {
  const size_t size = byte_size(value.dtype());
  return value.size() > 0 && std::memcmp(value.bytes(), value.bytes() + size, value.nbytes() - size) == 0;
}

std::string nested_list(const Array& value, size_t axis, int64_t& next) {
  if (axis == value.shape().rank()) return element_text(value, next++);
  std::string text = "[";
  for (int64_t i = 0; i < value.shape()[axis]; ++i)
    text += (i == 0 ? "" : ", ") + nested_list(value, axis + 1, next);
  return text + "]";
}

// Which values the outputs need. One sweep suffices: inputs come before the nodes that read them.
std::vector<bool> live_values(const Graph& graph) {
  std::vector<bool> live(graph.num_values());
  for (ValueId id : graph.outputs()) live[static_cast<size_t>(id)] = true;
  for (size_t i = graph.nodes().size(); i-- > 0;) mark_live_inputs(graph.nodes()[i], live);
  return live;
}

}  // namespace

std::string dense_literal(const Array& value, const Shape& shape) {
  if (shape.size() == 0) return "dense<>";
  if (value.size() == 1 || is_splat(value)) return "dense<" + element_text(value, 0) + ">";
  if (value.dtype() == DType::kBool || value.size() <= 8) {
    int64_t next = 0;
    return "dense<" + nested_list(value, 0, next) + ">";
  }
  std::string text = "dense<\"0x";
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (char c : value.as_bytes()) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text + "\">";
}

std::string to_mlir(const Attribute& attribute) {
  struct Visitor {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value) + " : i64"; }
    std::string operator()(const std::vector<int64_t>& values) const {
      return values.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(values, ", "));
    }
    std::string operator()(const Array& value) const {
      return dense_literal(value, value.shape()) + " : " + TensorType{value.dtype(), value.shape()}.to_mlir();
    }
    std::string operator()(const MlirText& value) const { return value.text; }
  };
  return std::visit(Visitor{}, attribute);
}

std::vector<std::string> Emitter::names(const std::vector<ValueId>& ids) const {
  std::vector<std::string> out;
  for (ValueId id : ids) out.push_back(name(id));
  return out;
}

std::vector<std::string> Emitter::capture_names(const Node& node) const {
  std::vector<std::string> out;
  for (size_t i = node.inputs.size() - node.num_captures; i < node.inputs.size(); ++i)
    out.push_back(name(node.inputs[i]));
  return out;
}

void Emitter::line(std::string_view text) {
  text_.append(static_cast<size_t>(2 * depth_), ' ');
  text_.append(text);
  text_ += '\n';
}

std::string Emitter::location() {
  if (scope_.empty()) return "";
  if (scopes_.empty() || scopes_.back() != scope_) {
    auto found = std::find(scopes_.begin(), scopes_.end(), scope_);
    if (found != scopes_.end()) return fmt::format(" loc(#loc{})", found - scopes_.begin() + 1);
    scopes_.push_back(scope_);
  }
  return fmt::format(" loc(#loc{})", scopes_.size());
}

std::string Emitter::locations() const {
  std::string text;
  for (size_t i = 0; i < scopes_.size(); ++i)
    text += fmt::format("#loc{} = loc(\"{}\")\n", i + 1, scopes_[i]);
  return text;
}

std::string Emitter::op(std::string_view operation, const std::vector<std::string>& operands,
                        const std::vector<TensorType>& operand_types, std::string_view attributes,
                        const TensorType& result) {
  std::string name = fresh();
  line(fmt::format("{} = \"{}\"({}) {{{}}} : {} -> {}{}", name, operation, fmt::join(operands, ", "),
                   attributes, types_text(operand_types), result.to_mlir(), location()));
  return name;
}

std::vector<std::string> Emitter::op(std::string_view operation, const std::vector<std::string>& operands,
                                     const std::vector<TensorType>& operand_types,
                                     std::string_view attributes, const std::vector<TensorType>& results) {
  const std::string base = fresh();
  const bool several = results.size() > 1;
  line(fmt::format("{}{} = \"{}\"({}) {{{}}} : {} -> {}{}", base,
                   several ? ":" + std::to_string(results.size()) : "", operation, fmt::join(operands, ", "),
                   attributes, types_text(operand_types), types_text(results), location()));
  std::vector<std::string> names;
  for (size_t i = 0; i < results.size(); ++i) names.push_back(several ? fmt::format("{}#{}", base, i) : base);
  return names;
}

std::string Emitter::function_text(const std::vector<TensorType>& operands,
                                   const std::vector<TensorType>& results, const FunctionBody& body) {
  const std::string outer_text = std::exchange(text_, {}), outer_scope = std::exchange(scope_, {});
  const int outer_depth = std::exchange(depth_, 1);
  const int64_t outer_next = std::exchange(next_, 0);
  std::string args;
  std::vector<std::string> names;
  for (const TensorType& operand : operands) {
    names.push_back(fresh());
    args += (args.empty() ? "" : ", ") + names.back() + ": " + operand.to_mlir();
  }
  text_ = fmt::format("({}) -> {} {{\n", args, types_text(results));
  ++depth_;
  const std::vector<std::string> outputs = body(names);
  line(fmt::format("\"func.return\"({}) : {} -> ()", fmt::join(outputs, ", "), types_text(results)));
  --depth_;
  line("}");
  depth_ = outer_depth;
  scope_ = outer_scope;
  next_ = outer_next;
  return std::exchange(text_, outer_text);
}

std::vector<std::string> Emitter::call(const std::string& function, const std::vector<std::string>& operands,
                                       const std::vector<TensorType>& operand_types,
                                       const std::vector<TensorType>& results, const FunctionBody& body) {
  if (!functions_.contains(function)) functions_[function] = function_text(operand_types, results, body);
  return op("func.call", operands, operand_types, "callee = @" + function, results);
}

std::vector<std::string> Emitter::outline(const std::string& tag, const Graph& graph,
                                          const std::vector<std::string>& args) {
  if (partitioned_) return inline_graph(graph, args);
  const bool outer_keep = std::exchange(keep_scope_, true);
  std::string text =
      function_text(graph.arg_types(), graph.output_types(), [&](const std::vector<std::string>& names) {
        scope_ = tag;
        return inline_graph(graph, names);
      });
  keep_scope_ = outer_keep;
  const auto [found, fresh_text] = outlined_.try_emplace(text, fmt::format("{}_{}", tag, outlined_.size()));
  if (fresh_text) functions_[found->second] = std::move(text);
  // XLA inlines calls that do not carry this attribute.
  return op("func.call", args, graph.arg_types(),
            fmt::format("callee = @{}, mhlo.frontend_attributes = {{inlineable = \"false\"}}", found->second),
            graph.output_types());
}

std::string Emitter::functions() const {
  std::string text;
  for (const auto& [name, function] : functions_) text += "  func.func private @" + name + function;
  return text;
}

std::string Emitter::splat(const TensorType& type, double value) {
  const std::string literal = dense_literal(Array::scalar<double>(value).cast(type.dtype), type.shape);
  return op("stablehlo.constant", {}, {}, fmt::format("value = {} : {}", literal, type.to_mlir()), type);
}

std::string Emitter::begin_op(std::string_view operation, const std::vector<std::string>& operands,
                              size_t num_results) {
  std::string name = fresh();
  const std::string count = num_results > 1 ? ":" + std::to_string(num_results) : "";
  line(fmt::format("{}{} = \"{}\"({}) ({{", name, count, operation, fmt::join(operands, ", ")));
  ++depth_;
  return name;
}

std::vector<std::string> Emitter::begin_block(const std::vector<TensorType>& args, bool first_region) {
  if (!first_region) {
    --depth_;
    line("}, {");
    ++depth_;
  }
  std::vector<std::string> names;
  std::string text;
  for (const TensorType& type : args) {
    names.push_back(fresh());
    text += (text.empty() ? "" : ", ") + names.back() + ": " + type.to_mlir();
  }
  line("^bb0(" + text + "):");
  return names;
}

void Emitter::end_block(const std::vector<std::string>& results, const std::vector<TensorType>& types) {
  line(fmt::format("\"stablehlo.return\"({}) : {} -> ()", fmt::join(results, ", "), types_text(types)));
}

void Emitter::end_op(std::string_view attributes, const std::vector<TensorType>& operands,
                     const std::vector<TensorType>& results) {
  --depth_;
  line(fmt::format("}}) {{{}}} : {} -> {}{}", attributes, types_text(operands), types_text(results),
                   location()));
}

void Emitter::generic(const Node& node) {
  const size_t num_operands = node.inputs.size() - node.num_captures;
  std::vector<std::string> operands;
  std::vector<TensorType> operand_types, result_types;
  for (size_t i = 0; i < num_operands; ++i) {
    operands.push_back(name(node.inputs[i]));
    operand_types.push_back(type(node.inputs[i]));
  }
  for (ValueId id : node.results) result_types.push_back(type(id));
  std::string attributes;
  for (const auto& [key, value] : node.attributes)
    attributes += (attributes.empty() ? "" : ", ") + key + " = " + to_mlir(value);

  std::string base;
  if (node.regions.empty()) {
    base = fresh();
    const std::string count = node.results.size() > 1 ? ":" + std::to_string(node.results.size()) : "";
    line(fmt::format("{}{} = \"{}\"({}) {{{}}} : {} -> {}{}", base, count, node.primitive->name,
                     fmt::join(operands, ", "), attributes, types_text(operand_types),
                     types_text(result_types), location()));
  } else {
    base = begin_op(node.primitive->name, operands, node.results.size());
    const std::vector<std::string> captures = capture_names(node);
    const std::string outer_scope = scope_;
    for (size_t r = 0; r < node.regions.size(); ++r) {
      const Graph& region = *node.regions[r];
      std::vector<TensorType> types = region.arg_types();
      types.resize(types.size() - captures.size());
      std::vector<std::string> args = begin_block(types, r == 0);
      args.insert(args.end(), captures.begin(), captures.end());
      end_block(inline_graph(region, args), region.output_types());
    }
    scope_ = outer_scope;
    end_op(attributes, operand_types, result_types);
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    bind(node.results[i], node.results.size() > 1 ? fmt::format("{}#{}", base, i) : base);
  }
}

std::vector<std::string> Emitter::inline_graph(const Graph& graph, const std::vector<std::string>& args) {
  if (args.size() != graph.args().size()) {
    throw_error<InternalError>("a region of {} arguments was printed with {}", graph.args().size(),
                               args.size());
  }
  frames_.push_back({&graph, std::vector<std::string>(graph.num_values()), live_values(graph)});
  for (size_t i = 0; i < args.size(); ++i) bind(graph.args()[i], args[i]);
  const std::string outer_scope = scope_;
  print_nodes();
  scope_ = outer_scope;
  std::vector<std::string> outputs = names(graph.outputs());
  frames_.pop_back();
  return outputs;
}

void Emitter::print_nodes() {
  const Graph& graph = *frames_.back().graph;
  for (const Node& node : graph.nodes()) {
    if (!t5x::is_live(node, frames_.back().live)) continue;
    if (!keep_scope_) scope_ = graph.scopes()[static_cast<size_t>(node.scope)];
    if (node.primitive->emit != nullptr) {
      node.primitive->emit(*this, node);
    } else {
      generic(node);
    }
  }
}

std::string to_stablehlo(const Graph& graph, const ModuleOptions& options) {
  Emitter emitter;
  emitter.set_partitioned(options.num_partitions > 1);
  auto attributes = [](const std::vector<std::string>& all, size_t i) {
    return i < all.size() && !all[i].empty() ? " {" + all[i] + "}" : std::string();
  };
  std::string args, results;
  std::vector<std::string> arg_names;
  for (size_t i = 0; i < graph.args().size(); ++i) {
    arg_names.push_back("%arg" + std::to_string(i));
    args += (i == 0 ? "" : ", ") + arg_names.back() + ": " + graph.type(graph.args()[i]).to_mlir() +
            attributes(options.arg_attributes, i);
  }
  const std::vector<TensorType> types = graph.output_types();
  for (size_t i = 0; i < types.size(); ++i) {
    results += (i == 0 ? "" : ", ") + types[i].to_mlir() + attributes(options.result_attributes, i);
  }
  emitter.line(
      fmt::format("module @{} attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = 1 : i32}} {{",
                  options.name, options.num_partitions));
  emitter.indent(1);
  if (!options.prelude.empty()) emitter.line(options.prelude);
  emitter.line(fmt::format("func.func public @main({}) -> ({}) {{", args, results));
  emitter.indent(1);
  const std::vector<std::string> outputs = emitter.inline_graph(graph, arg_names);
  emitter.line(fmt::format("\"func.return\"({}) : {} -> ()", fmt::join(outputs, ", "), types_text(types)));
  emitter.indent(-1);
  emitter.line("}");
  return emitter.take() + emitter.functions() + "}\n" + emitter.locations();
}

}  // namespace t5x
