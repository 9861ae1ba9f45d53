// Printing a traced graph as StableHLO text, in MLIR's generic form, which does not change with the
// pretty-printers. Every operation carries the module path it was traced under as its location.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace t5x {

struct ModuleOptions {
  std::string name = "main";
  // Lines before the function, such as the sdy.mesh declaration.
  std::string prelude = {};
  // Per argument and per result: the inside of an attribute dictionary, such as
  // `sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>, tf.aliasing_output = 0 : i32`. Empty vectors: none.
  std::vector<std::string> arg_attributes = {}, result_attributes = {};
  int num_partitions = 1;
};

// A module whose public function @main computes the graph's outputs from its arguments. Nodes that no output
// needs are left out.
std::string to_stablehlo(const Graph& graph, const ModuleOptions& options = {});

}  // namespace t5x
