#include "graph/emitter.h"
#include "graph/primitive.h"
#include "ops/control.h"

namespace t5x::ops {
namespace {

const Primitive kOutline{.name = "outline",
                         .infer = [](const InferContext& c) { return c.regions[0]->output_types(); },
                         .emit =
                             [](Emitter& e, const Node& node) {
                               const std::vector<std::string> results =
                                   e.outline(std::any_cast<const std::string&>(node.extra), *node.regions[0],
                                             e.names(node.inputs));
                               for (size_t i = 0; i < results.size(); ++i)
                                 e.bind(node.results[i], results[i]);
                             }};

}  // namespace

Tensors outline(const std::string& name, const std::function<Tensors()>& function) {
  Region region = trace_region({}, [&](const Tensors&) { return function(); });
  return apply_multi({.primitive = kOutline,
                      .inputs = {},
                      .extra = name,
                      .regions = {region.graph},
                      .captures = region.captures});
}

}  // namespace t5x::ops
