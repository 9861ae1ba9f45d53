// Copying nodes from one graph to another: how bodies of loops and branches are rewritten.
#pragma once

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "graph/trace.h"

namespace t5x {

// Per value of the graph copied from: its name in the graph copied to, -1 where there is none.
using ValueMap = std::vector<ValueId>;

// Appends a copy of node `index` of `from` to `to` and enters its results into `map`. Of a primitive whose
// results are independent, operands that have no copy are left out, together with their results. Throws
// InternalError when an operand of another primitive has no copy.
void copy_node(const Graph& from, size_t index, Graph& to, ValueMap& map);

// Appends copies of all nodes; `args` name the arguments of `from` in `to`. Returns the outputs.
std::vector<ValueId> copy_graph(const Graph& from, Graph& to, const std::vector<ValueId>& args);
// The same into the graph being traced.
std::vector<Tensor> replay(const Graph& from, const std::vector<Tensor>& args);

// Liveness, per value of a graph: whether something reads a result of the node, and the step of a sweep from
// the last node to the first that marks what the node reads for it.
bool is_live(const Node& node, const std::vector<bool>& live);
void mark_live_inputs(const Node& node, std::vector<bool>& live);

// Gives the regions of one node the same captures: the union, in the order of first mention. `num_args`: how
// many arguments come before the captures, per region.
std::vector<Tensor> unite_captures(std::vector<Region>& regions, const std::vector<size_t>& num_args);

}  // namespace t5x
