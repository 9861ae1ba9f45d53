#include "ops/sharding.h"

#include "ops/broadcast.h"

namespace t5x::ops {
namespace {

const Primitive kShardingConstraint{
    .name = "sdy.sharding_constraint",
    .infer =
        [](const InferContext& c) {
          const std::string& text = c.attributes.get<MlirText>("sharding").text;
          if (!text.starts_with("#sdy.sharding<"))
            throw_error<ShapeError>("expected an attribute such as #sdy.sharding<@mesh, [{{}}]>, got '{}'",
                                    text);
          return std::vector<TensorType>{c.inputs[0]};
        },
    .vjp =
        [](const VjpContext& c) {
          return Tensors{
              sharding_constraint(c.cotangent(), c.node.attributes.get<MlirText>("sharding").text)};
        }};

}  // namespace

Tensor sharding_constraint(Tensor x, const std::string& sharding) {
  return apply(
      {.primitive = kShardingConstraint, .inputs = {x}, .attributes = {{"sharding", MlirText{sharding}}}});
}

}  // namespace t5x::ops
