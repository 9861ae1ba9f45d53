// Logical axis names and the rules that map them to the mesh, after t5x's partitioning module (section 3.2
// and table 1 of the paper): models name what an axis means, rules say how it is laid out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "partition/mesh.h"

namespace t5x {

// Logical names of an array's axes, such as {"embed", "mlp"}.
using AxisNames = std::vector<std::string>;

class AxisRules {
 public:
  using Rule = std::pair<std::string, std::string>;  // logical axis, mesh axis ("" for none)
  AxisRules() = default;
  explicit AxisRules(std::vector<Rule> rules) : rules_(std::move(rules)) {}

  // Goes through the rules in order; a rule takes effect where its logical axis has no mesh axis yet and its
  // mesh axis is still free in this array. Throws ConfigError for a logical axis that no rule mentions.
  PartitionSpec to_mesh(const AxisNames& axes) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
};

// t5x's standard rules. Dims 1 splits activations (parameters) over one mesh axis, 2 over both: (1, 1) is
// data and Megatron model parallelism, parameter dims 2 shards parameters over `data` as ZeRO-3 does.
// `additional` come first and win.
AxisRules standard_logical_axis_rules(int64_t activation_partitioning_dims = 1,
                                      int64_t parameter_partitioning_dims = 1,
                                      const std::vector<AxisRules::Rule>& additional = {});

}  // namespace t5x
