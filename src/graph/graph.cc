#include "graph/graph.h"

#include "base/error.h"

namespace t5x {

std::string TensorType::to_mlir() const {
  std::string text = "tensor<";
  for (int64_t dim : shape) text += std::to_string(dim) + "x";
  return text + std::string(mlir_name(dtype)) + ">";
}

std::string TensorType::describe() const { return fmt::format("{}{}", name(dtype), shape.to_string()); }

const TensorType& Tensor::type() const {
  if (graph_ == nullptr) throw_error<InternalError>("an empty tensor handle was used");
  return graph_->type(id_);
}

const Attribute& Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return value;
  }
  throw_error<InternalError>("attribute '{}' is missing", name);
}

void Attributes::throw_wrong_kind(std::string_view name) {
  throw_error<InternalError>("attribute '{}' is of another kind", name);
}

ValueId Graph::add_arg(TensorType type) {
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back({std::move(type), -1});
  args_.push_back(id);
  return id;
}

size_t Graph::add_node(Node node, std::vector<TensorType> results) {
  const size_t index = nodes_.size();
  nodes_.push_back(std::move(node));
  extend_node(index, std::move(results));
  return index;
}

std::vector<ValueId> Graph::extend_node(size_t index, std::vector<TensorType> results) {
  std::vector<ValueId> ids;
  for (TensorType& type : results) {
    ids.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({std::move(type), static_cast<int64_t>(index)});
  }
  nodes_[index].results.insert(nodes_[index].results.end(), ids.begin(), ids.end());
  return ids;
}

std::vector<TensorType> Graph::arg_types() const {
  std::vector<TensorType> types;
  for (ValueId id : args_) types.push_back(type(id));
  return types;
}

std::vector<TensorType> Graph::output_types() const {
  std::vector<TensorType> types;
  for (ValueId id : outputs_) types.push_back(type(id));
  return types;
}

int32_t Graph::intern_scope(const std::string& path) {
  // Consecutive nodes share their scope, so the search from the end is short.
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (scopes_[i] == path) return static_cast<int32_t>(i);
  }
  scopes_.push_back(path);
  return static_cast<int32_t>(scopes_.size() - 1);
}

}  // namespace t5x
