#include "optim/factoring.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/strings.h"

namespace t5x::optim {

namespace {

Dims all_dims(size_t rank) {
  Dims dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// The second largest and the largest dimension if both reach the limit; of equal dimensions the later one
// counts as larger.
std::optional<std::pair<Dims, Dims>> largest_two(const Shape& shape, int64_t limit) {
  if (shape.rank() < 2) return std::nullopt;
  Dims order = all_dims(shape.rank());
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return shape[static_cast<size_t>(a)] < shape[static_cast<size_t>(b)];
  });
  const int64_t d1 = order[order.size() - 2], d0 = order.back();
  if (shape[static_cast<size_t>(d1)] < limit) return std::nullopt;
  return std::pair(Dims{d1}, Dims{d0});
}

bool contains(const std::vector<FactorDim>& rule, FactorDim what) {
  return std::find(rule.begin(), rule.end(), what) != rule.end();
}

}  // namespace

FactorDim factor_dim_from_name(const std::string& name) {
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  static const std::map<std::string, FactorDim> kNames = {
      {"row", FactorDim::kRow},     {"col", FactorDim::kColumn}, {"column", FactorDim::kColumn},
      {"batch", FactorDim::kBatch}, {"none", FactorDim::kNone},  {"unfactorized", FactorDim::kNone}};
  auto it = kNames.find(lower);
  if (it == kNames.end()) {
    throw_error<ConfigError>("'{}' is no factor rule: write row, column, batch or none", name);
  }
  return it->second;
}

LogicalFactorRules standard_logical_factor_rules() {
  return {{"vocab", FactorDim::kColumn},        {"embed", FactorDim::kRow},
          {"mlp", FactorDim::kColumn},          {"heads", FactorDim::kColumn},
          {"kv", FactorDim::kColumn},           {"joined_kv", FactorDim::kColumn},
          {"relpos_buckets", FactorDim::kNone}, {"layers", FactorDim::kBatch},
          {"stack", FactorDim::kBatch},         {"q_wi_fused", FactorDim::kColumn},
          {"o_wo_fused", FactorDim::kColumn},   {"multiquery_heads", FactorDim::kColumn},
          {"kv_fused", FactorDim::kColumn},     {"layer_norm_scale", FactorDim::kNone}};
}

std::vector<FactorDim> rule_from_axes(const LogicalFactorRules& rules, const std::vector<std::string>& axes,
                                      const std::string& path) {
  std::vector<FactorDim> rule;
  for (const std::string& axis : axes) {
    auto it = rules.find(axis);
    if (it == rules.end()) {
      std::vector<std::string> names;
      for (const auto& [name, dim] : rules) names.push_back(name);
      throw_error<ConfigError>(
          "logical_factor_rules has no rule for the axis '{}' of the parameter '{}'{}; add one (row, column, "
          "batch or none)",
          axis, path, did_you_mean(axis, names));
    }
    rule.push_back(it->second);
  }
  const bool row = contains(rule, FactorDim::kRow), column = contains(rule, FactorDim::kColumn);
  if (row && column && contains(rule, FactorDim::kNone)) {
    throw_error<ConfigError>(
        "the axes of the parameter '{}' have rows, columns and unfactored dimensions; make each one row, "
        "column or batch",
        path);
  }
  if (!row || !column) {
    for (FactorDim& dim : rule) {
      if (dim != FactorDim::kBatch) dim = FactorDim::kNone;
    }
  }
  return rule;
}

Factoring decide_factoring(const std::optional<FactorRule>& rule, const Shape& shape,
                           int64_t min_dim_size_to_factor, const std::string& path) {
  Factoring factoring;
  factoring.averaging_dims = all_dims(shape.rank());
  if (!rule) return factoring;
  if (std::holds_alternative<HeuristicRule>(*rule)) {
    if (shape.rank() > 2) {
      throw_error<ConfigError>(
          "the parameter '{}' of shape {} has more than two dimensions, so it needs an explicit factor rule: "
          "set logical_factor_rules or factor_map",
          path, shape.to_string());
    }
    factoring.heuristic = true;
    factoring.factored_dims = largest_two(shape, min_dim_size_to_factor);
    return factoring;
  }
  const auto& dims = std::get<std::vector<FactorDim>>(*rule);
  if (dims.size() != shape.rank()) {
    throw_error<ConfigError>("the factor rule of the parameter '{}' names {} dimensions, its shape is {}",
                             path, dims.size(), shape.to_string());
  }
  if (shape.rank() <= 2 && !contains(dims, FactorDim::kBatch)) {
    factoring.heuristic = true;
    factoring.factored_dims = largest_two(shape, min_dim_size_to_factor);
    return factoring;
  }
  Dims rows, columns;
  factoring.averaging_dims.clear();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i);
    if (dims[i] == FactorDim::kRow) rows.push_back(axis);
    if (dims[i] == FactorDim::kColumn) columns.push_back(axis);
    if (dims[i] != FactorDim::kBatch) factoring.averaging_dims.push_back(axis);
  }
  if (rows.empty() != columns.empty()) {
    throw_error<ConfigError>("the factor rule of the parameter '{}' has {} but no {}", path,
                             rows.empty() ? "columns" : "rows", rows.empty() ? "rows" : "columns");
  }
  if (!rows.empty()) factoring.factored_dims = {rows, columns};
  return factoring;
}

}  // namespace t5x::optim
