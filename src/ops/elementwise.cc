// Operations of one operand. Derivatives follow jax.lax.
#include "ops/elementwise.h"

#include <numbers>

#include "graph/emitter.h"
#include "ops/broadcast.h"

namespace t5x::ops {
namespace {

// 2 / sqrt(pi)
constexpr double kTwoOverRootPi = 2.0 * std::numbers::inv_sqrtpi;

constexpr auto infer_float = infer_elementwise<kFloats>;

const Primitive kAbs{.name = "stablehlo.abs",
                     .infer = infer_elementwise<kNumbers>,
                     .vjp = [](const VjpContext& c) { return Tensors{c.cotangent() * sign(c.inputs[0])}; }};
const Primitive kSign{.name = "stablehlo.sign", .infer = infer_elementwise<kNumbers>, .vjp = no_gradient};
const Primitive kExp{.name = "stablehlo.exponential", .infer = infer_float, .vjp = [](const VjpContext& c) {
                       return Tensors{c.cotangent() * c.outputs[0]};
                     }};
const Primitive kExpm1{
    .name = "stablehlo.exponential_minus_one", .infer = infer_float, .vjp = [](const VjpContext& c) {
      return Tensors{c.cotangent() * (c.outputs[0] + 1.0)};
    }};
const Primitive kLog{.name = "stablehlo.log", .infer = infer_float, .vjp = [](const VjpContext& c) {
                       return Tensors{c.cotangent() / c.inputs[0]};
                     }};
const Primitive kLog1p{
    .name = "stablehlo.log_plus_one", .infer = infer_float, .vjp = [](const VjpContext& c) {
      return Tensors{c.cotangent() / (c.inputs[0] + 1.0)};
    }};
const Primitive kSqrt{.name = "stablehlo.sqrt", .infer = infer_float, .vjp = [](const VjpContext& c) {
                        return Tensors{c.cotangent() * (0.5 / c.outputs[0])};
                      }};
const Primitive kRsqrt{.name = "stablehlo.rsqrt", .infer = infer_float, .vjp = [](const VjpContext& c) {
                         return Tensors{c.cotangent() * (-0.5 * (c.outputs[0] / c.inputs[0]))};
                       }};
// One node instead of a product with itself: its derivative is one product, not two and a sum.
const Primitive kSquare{
    .name = "square",
    .infer = infer_elementwise<kNumbers>,
    .vjp = [](const VjpContext& c) { return Tensors{c.cotangent() * (2.0 * c.inputs[0])}; },
    .emit =
        [](Emitter& emitter, const Node& node) {
          const std::string& x = emitter.name(node.inputs[0]);
          const TensorType& type = emitter.type(node.inputs[0]);
          emitter.bind(node.results[0], emitter.op("stablehlo.multiply", {x, x}, {type, type}, "", type));
        }};
const Primitive kTanh{.name = "stablehlo.tanh", .infer = infer_float, .vjp = [](const VjpContext& c) {
                        // (g + g y)(1 - y) keeps more digits near |y| = 1 than g (1 - y y).
                        const Tensor g = c.cotangent(), y = c.outputs[0];
                        return Tensors{(g + g * y) * (1.0 - y)};
                      }};
const Primitive kLogistic{.name = "stablehlo.logistic", .infer = infer_float, .vjp = [](const VjpContext& c) {
                            const Tensor y = c.outputs[0];
                            return Tensors{c.cotangent() * y * (1.0 - y)};
                          }};
const Primitive kSin{.name = "stablehlo.sine", .infer = infer_float, .vjp = [](const VjpContext& c) {
                       return Tensors{c.cotangent() * cos(c.inputs[0])};
                     }};
const Primitive kCos{.name = "stablehlo.cosine", .infer = infer_float, .vjp = [](const VjpContext& c) {
                       return Tensors{-(c.cotangent() * sin(c.inputs[0]))};
                     }};
const Primitive kErf{.name = "chlo.erf", .infer = infer_float, .vjp = [](const VjpContext& c) {
                       return Tensors{kTwoOverRootPi * (c.cotangent() * exp(-square(c.inputs[0])))};
                     }};
const Primitive kErfInv{
    .name = "chlo.erf_inv", .infer = infer_float, .vjp = [](const VjpContext& c) {
      return Tensors{(1.0 / kTwoOverRootPi) * (c.cotangent() * exp(square(c.outputs[0])))};
    }};
const Primitive kFloor{.name = "stablehlo.floor", .infer = infer_float, .vjp = no_gradient};
const Primitive kCeil{.name = "stablehlo.ceil", .infer = infer_float, .vjp = no_gradient};
const Primitive kRound{.name = "stablehlo.round_nearest_even", .infer = infer_float, .vjp = no_gradient};
const Primitive kNot{
    .name = "stablehlo.not", .infer = infer_elementwise<kBools | kIntegers>, .vjp = no_gradient};
const Primitive kIsFinite{
    .name = "stablehlo.is_finite",
    .infer =
        [](const InferContext& c) {
          return std::vector<TensorType>{{DType::kBool, check_elementwise(c, kFloats).shape}};
        },
    .vjp = no_gradient};

Tensor unary(const Primitive& primitive, Tensor x) { return apply({.primitive = primitive, .inputs = {x}}); }

}  // namespace

Tensor abs(Tensor x) { return unary(kAbs, x); }
Tensor sign(Tensor x) { return unary(kSign, x); }
Tensor exp(Tensor x) { return unary(kExp, x); }
Tensor expm1(Tensor x) { return unary(kExpm1, x); }
Tensor log(Tensor x) { return unary(kLog, x); }
Tensor log1p(Tensor x) { return unary(kLog1p, x); }
Tensor sqrt(Tensor x) { return unary(kSqrt, x); }
Tensor rsqrt(Tensor x) { return unary(kRsqrt, x); }
Tensor square(Tensor x) { return unary(kSquare, x); }
Tensor tanh(Tensor x) { return unary(kTanh, x); }
Tensor logistic(Tensor x) { return unary(kLogistic, x); }
Tensor sin(Tensor x) { return unary(kSin, x); }
Tensor cos(Tensor x) { return unary(kCos, x); }
Tensor floor(Tensor x) { return unary(kFloor, x); }
Tensor ceil(Tensor x) { return unary(kCeil, x); }
Tensor round(Tensor x) { return unary(kRound, x); }
Tensor is_finite(Tensor x) { return unary(kIsFinite, x); }
Tensor erf(Tensor x) { return unary(kErf, x); }
Tensor erf_inv(Tensor x) { return unary(kErfInv, x); }
Tensor bit_not(Tensor a) { return unary(kNot, a); }

}  // namespace t5x::ops
