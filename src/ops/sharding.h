// Annotating how a value is laid out over the mesh.
#pragma once

#include <string>

#include "graph/graph.h"

namespace t5x::ops {

// `sharding` is the Shardy attribute, such as #sdy.sharding<@mesh, [{"data"}, {}]>. The gradient gets the
// same one.
Tensor sharding_constraint(Tensor x, const std::string& sharding);

}  // namespace t5x::ops
