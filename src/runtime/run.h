// Running a traced graph once on one CPU device: what tests and tools use.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "pjrt/client.h"

namespace t5x {

// The client of the default plugin, made at the first call and kept for the life of the process.
pjrt::Client& default_client();
// Prints, compiles (without the on-disk cache) and runs the graph. Throws ShapeError when an input does not
// fit.
std::vector<Array> run(const Graph& graph, const std::vector<Array>& inputs);

}  // namespace t5x
