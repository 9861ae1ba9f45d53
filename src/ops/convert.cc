// Changes of dtype, and the end of gradients.
#include "graph/emitter.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"

namespace t5x::ops {
namespace {

std::vector<TensorType> infer_convert(const InferContext& c) {
  return {{std::any_cast<DType>(c.extra), c.inputs[0].shape}};
}

// An integer result ends the gradient: differentiation asks only for float operands of float results.
const Primitive kConvert{.name = "stablehlo.convert", .infer = infer_convert, .vjp = [](const VjpContext& c) {
                           return Tensors{convert(c.cotangent(), c.inputs[0].dtype())};
                         }};

const Primitive kBitcastConvert{
    .name = "stablehlo.bitcast_convert",
    .infer =
        [](const InferContext& c) {
          const auto dtype = std::any_cast<DType>(c.extra);
          const DType from = c.inputs[0].dtype;
          if (byte_size(dtype) != byte_size(from) || (dtype == DType::kBool) != (from == DType::kBool))
            throw_error<ShapeError>("expected dtypes of one size, got {} to {}", name(from), name(dtype));
          return infer_convert(c);
        },
    .vjp = no_gradient};

const Primitive kStopGradient{
    .name = "stop_gradient",
    .infer = [](const InferContext& c) { return std::vector<TensorType>{c.inputs[0]}; },
    .vjp = no_gradient,
    .emit = [](Emitter& emitter,
               const Node& node) { emitter.bind(node.results[0], emitter.name(node.inputs[0])); }};

}  // namespace

Tensor convert(Tensor x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply({.primitive = kConvert, .inputs = {x}, .extra = dtype});
}

Tensor bitcast_convert(Tensor x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply({.primitive = kBitcastConvert, .inputs = {x}, .extra = dtype});
}

Tensor stop_gradient(Tensor x) { return apply({.primitive = kStopGradient, .inputs = {x}}); }

}  // namespace t5x::ops
