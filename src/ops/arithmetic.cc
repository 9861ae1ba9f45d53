// Operations of two operands. Derivatives follow jax.lax.
#include <cmath>

#include "graph/basic.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"

namespace t5x {
namespace {

using ops::apply_binary;
using ops::infer_elementwise;
using ops::Tensors;

const Primitive kAdd{
    .name = "stablehlo.add", .infer = infer_elementwise<ops::kAny>, .vjp = [](const VjpContext& c) {
      return Tensors{c.cotangent(), c.cotangent()};
    }};

const Primitive kSubtract{
    .name = "stablehlo.subtract", .infer = infer_elementwise<ops::kNumbers>, .vjp = [](const VjpContext& c) {
      return Tensors{c.cotangent(), -c.cotangent()};
    }};

const Primitive kMultiply{
    .name = "stablehlo.multiply", .infer = infer_elementwise<ops::kAny>, .vjp = [](const VjpContext& c) {
      Tensors gradients(2);
      if (c.wanted[0]) gradients[0] = c.cotangent() * c.inputs[1];
      if (c.wanted[1]) gradients[1] = c.cotangent() * c.inputs[0];
      return gradients;
    }};

const Primitive kDivide{
    .name = "stablehlo.divide", .infer = infer_elementwise<ops::kNumbers>, .vjp = [](const VjpContext& c) {
      const Tensor g = c.cotangent(), y = c.inputs[1];
      Tensors gradients{g / y};
      if (c.wanted[1]) gradients.push_back(-(g * c.inputs[0]) / ops::square(y));
      return gradients;
    }};

const Primitive kNegate{.name = "stablehlo.negate",
                        .infer = infer_elementwise<ops::kNumbers>,
                        .vjp = [](const VjpContext& c) { return Tensors{-c.cotangent()}; }};

// The share of the gradient that operand `x` gets from max(x, y) or min(x, y) = z: half of it on a tie.
Tensor share(Tensor x, Tensor y, Tensor z) {
  const Tensor one = full(x.type(), 1.0);
  return ops::select(x == z, ops::select(y == z, 0.5 * one, one), 0.0);
}
Tensors vjp_extremum(const VjpContext& c) {
  const Tensor x = c.inputs[0], y = c.inputs[1], z = c.outputs[0], g = c.cotangent();
  return {g * share(x, y, z), g * share(y, x, z)};
}
const Primitive kMaximum{
    .name = "stablehlo.maximum", .infer = infer_elementwise<ops::kAny>, .vjp = vjp_extremum};
const Primitive kMinimum{
    .name = "stablehlo.minimum", .infer = infer_elementwise<ops::kAny>, .vjp = vjp_extremum};

const Primitive kPower{
    .name = "stablehlo.power", .infer = infer_elementwise<ops::kNumbers>, .vjp = [](const VjpContext& c) {
      const Tensor x = c.inputs[0], y = c.inputs[1], g = c.cotangent();
      Tensors gradients(2);
      if (c.wanted[0]) {
        // x^0 is constant, also at x = 0 where x^-1 is not finite.
        const Tensor flat = y == 0.0;
        gradients[0] = g * ops::select(flat, 0.0, y * ops::pow(x, ops::select(flat, 1.0, y - 1.0)));
      }
      if (c.wanted[1]) gradients[1] = g * ops::log(ops::select(x == 0.0, 1.0, x)) * c.outputs[0];
      return gradients;
    }};

const Primitive kRemainder{
    .name = "stablehlo.remainder", .infer = infer_elementwise<ops::kNumbers>, .vjp = [](const VjpContext& c) {
      const Tensor quotient = c.inputs[0] / c.inputs[1];
      const Tensor whole = ops::sign(quotient) * ops::floor(ops::abs(quotient));
      return Tensors{c.cotangent(), -(c.cotangent() * whole)};
    }};

constexpr unsigned kBits = ops::kBools | ops::kIntegers;
const Primitive kAnd{.name = "stablehlo.and", .infer = infer_elementwise<kBits>, .vjp = no_gradient};
const Primitive kOr{.name = "stablehlo.or", .infer = infer_elementwise<kBits>, .vjp = no_gradient};
const Primitive kXor{.name = "stablehlo.xor", .infer = infer_elementwise<kBits>, .vjp = no_gradient};
const Primitive kShiftLeft{
    .name = "stablehlo.shift_left", .infer = infer_elementwise<ops::kIntegers>, .vjp = no_gradient};
const Primitive kShiftRightLogical{
    .name = "stablehlo.shift_right_logical", .infer = infer_elementwise<ops::kIntegers>, .vjp = no_gradient};
const Primitive kShiftRightArithmetic{.name = "stablehlo.shift_right_arithmetic",
                                      .infer = infer_elementwise<ops::kIntegers>,
                                      .vjp = no_gradient};

}  // namespace

Tensor operator+(Tensor a, Tensor b) { return apply_binary(kAdd, a, b); }
Tensor operator-(Tensor a, Tensor b) { return apply_binary(kSubtract, a, b); }
Tensor operator*(Tensor a, Tensor b) { return apply_binary(kMultiply, a, b); }
Tensor operator/(Tensor a, Tensor b) { return apply_binary(kDivide, a, b); }
Tensor operator-(Tensor a) { return apply({.primitive = kNegate, .inputs = {a}}); }
Tensor operator+(Tensor a, double b) { return apply_binary(kAdd, a, b); }
Tensor operator-(Tensor a, double b) { return apply_binary(kSubtract, a, b); }
Tensor operator*(Tensor a, double b) { return apply_binary(kMultiply, a, b); }
Tensor operator/(Tensor a, double b) { return apply_binary(kDivide, a, b); }
Tensor operator+(double a, Tensor b) { return apply_binary(kAdd, a, b); }
Tensor operator-(double a, Tensor b) { return apply_binary(kSubtract, a, b); }
Tensor operator*(double a, Tensor b) { return apply_binary(kMultiply, a, b); }
Tensor operator/(double a, Tensor b) { return apply_binary(kDivide, a, b); }

namespace ops {

Tensor maximum(Tensor a, Tensor b) { return apply_binary(kMaximum, a, b); }
Tensor minimum(Tensor a, Tensor b) { return apply_binary(kMinimum, a, b); }
Tensor maximum(Tensor a, double b) { return apply_binary(kMaximum, a, b); }
Tensor minimum(Tensor a, double b) { return apply_binary(kMinimum, a, b); }
Tensor pow(Tensor a, Tensor b) { return apply_binary(kPower, a, b); }

Tensor pow(Tensor a, double b) {
  // Small whole powers are products, as jax.lax.integer_pow: exact, and defined for negative bases.
  if (b == 1.0) return a;
  if (b == 2.0) return square(a);
  if (b == 3.0) return a * square(a);
  if (b == 4.0) return square(square(a));
  return apply_binary(kPower, a, b);
}

Tensor remainder(Tensor a, Tensor b) { return apply_binary(kRemainder, a, b); }
Tensor bit_and(Tensor a, Tensor b) { return apply_binary(kAnd, a, b); }
Tensor bit_or(Tensor a, Tensor b) { return apply_binary(kOr, a, b); }
Tensor bit_xor(Tensor a, Tensor b) { return apply_binary(kXor, a, b); }
Tensor shift_left(Tensor a, Tensor b) { return apply_binary(kShiftLeft, a, b); }
Tensor shift_right_logical(Tensor a, Tensor b) { return apply_binary(kShiftRightLogical, a, b); }
Tensor shift_right_arithmetic(Tensor a, Tensor b) { return apply_binary(kShiftRightArithmetic, a, b); }

}  // namespace ops
}  // namespace t5x
