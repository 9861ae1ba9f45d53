// Reverse-mode differentiation, within the graph being traced: gradients are further nodes of the same graph,
// so they can be differentiated again.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace t5x {

// For outputs y and cotangents dy: the sum over i of d<y_i, dy_i>/dx for every x of `inputs`, of the type of
// x; zeros where the outputs do not depend on x. All tensors belong to the graph being traced. Throws
// ShapeError if a cotangent has another type than its output, or if a path leads through an operation that
// has no derivative.
std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                        const std::vector<Tensor>& inputs);
// Per value of a graph: whether it is marked in `from` or a gradient can flow from it to a marked value.
std::vector<bool> active_values(const Graph& graph, std::vector<bool> from);
// Gradients of a scalar.
std::vector<Tensor> grad(Tensor scalar, const std::vector<Tensor>& inputs);

}  // namespace t5x
