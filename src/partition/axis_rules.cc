#include "partition/axis_rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace t5x {

PartitionSpec AxisRules::to_mesh(const AxisNames& axes) const {
  PartitionSpec spec(axes.size());
  std::vector<bool> decided(axes.size());
  for (const auto& [logical, mesh_axis] : rules_) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != logical || decided[i]) continue;
      if (!mesh_axis.empty() && std::find(spec.begin(), spec.end(), mesh_axis) != spec.end()) continue;
      spec[i] = mesh_axis;
      decided[i] = true;
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool known = axes[i].empty() || std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
                         return rule.first == axes[i];
                       });
    if (known) continue;
    std::vector<std::string> names;
    for (const Rule& rule : rules_) names.push_back(rule.first);
    throw_error<ConfigError>("no partitioning rule mentions the logical axis '{}'{}", axes[i],
                             did_you_mean(axes[i], names));
  }
  return spec;
}

AxisRules standard_logical_axis_rules(int64_t activation_dims, int64_t parameter_dims,
                                      const std::vector<AxisRules::Rule>& additional) {
  auto check = [](int64_t dims, const char* name) {
    if (dims != 1 && dims != 2) throw_error<ConfigError>("{} must be 1 or 2, found {}", name, dims);
  };
  check(activation_dims, "activation_partitioning_dims");
  check(parameter_dims, "parameter_partitioning_dims");
  std::vector<AxisRules::Rule> rules = additional;
  const std::vector<AxisRules::Rule> shared = {{"batch", "data"}, {"vocab", "model"},
                                               {"mlp", "model"},  {"heads", "model"},
                                               {"kv", ""},        {"joined_kv", "model"}};
  rules.insert(rules.end(), shared.begin(), shared.end());
  if (activation_dims == 2) rules.emplace_back("embed", "model");
  if (parameter_dims == 2) rules.emplace_back("embed", "data");
  rules.emplace_back("embed", "");
  for (const char* axis :
       {"relpos_buckets", "abspos_buckets", "length", "layers", "stack", "mlp_activations"}) {
    rules.emplace_back(axis, "");
  }
  return AxisRules(rules);
}

}  // namespace t5x
