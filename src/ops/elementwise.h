// Elementwise operations. All broadcast and promote as ops.h says.
#pragma once

#include "graph/graph.h"

namespace t5x {

Tensor operator+(Tensor a, Tensor b);
Tensor operator-(Tensor a, Tensor b);
Tensor operator*(Tensor a, Tensor b);
Tensor operator/(Tensor a, Tensor b);
Tensor operator-(Tensor a);
Tensor operator+(Tensor a, double b);
Tensor operator-(Tensor a, double b);
Tensor operator*(Tensor a, double b);
Tensor operator/(Tensor a, double b);
Tensor operator+(double a, Tensor b);
Tensor operator-(double a, Tensor b);
Tensor operator*(double a, Tensor b);
Tensor operator/(double a, Tensor b);

// Comparisons give bool tensors; no gradient passes. Operands of equal integer or float type.
Tensor operator==(Tensor a, Tensor b);
Tensor operator!=(Tensor a, Tensor b);
Tensor operator<(Tensor a, Tensor b);
Tensor operator<=(Tensor a, Tensor b);
Tensor operator>(Tensor a, Tensor b);
Tensor operator>=(Tensor a, Tensor b);
Tensor operator==(Tensor a, double b);
Tensor operator!=(Tensor a, double b);
Tensor operator<(Tensor a, double b);
Tensor operator<=(Tensor a, double b);
Tensor operator>(Tensor a, double b);
Tensor operator>=(Tensor a, double b);

namespace ops {

Tensor maximum(Tensor a, Tensor b);  // gradient: halves on ties, as jax.numpy's
Tensor minimum(Tensor a, Tensor b);
Tensor maximum(Tensor a, double b);
Tensor minimum(Tensor a, double b);
Tensor pow(Tensor a, Tensor b);
Tensor pow(Tensor a, double b);
Tensor remainder(Tensor a, Tensor b);  // sign of the dividend, as StableHLO's
// Bitwise on integers, logical on bools.
Tensor bit_and(Tensor a, Tensor b);
Tensor bit_or(Tensor a, Tensor b);
Tensor bit_xor(Tensor a, Tensor b);
Tensor bit_not(Tensor a);
Tensor shift_left(Tensor a, Tensor b);
Tensor shift_right_logical(Tensor a, Tensor b);
Tensor shift_right_arithmetic(Tensor a, Tensor b);

Tensor abs(Tensor x);
Tensor sign(Tensor x);
Tensor exp(Tensor x);
Tensor expm1(Tensor x);
Tensor log(Tensor x);
Tensor log1p(Tensor x);
Tensor sqrt(Tensor x);
Tensor rsqrt(Tensor x);
Tensor square(Tensor x);
Tensor tanh(Tensor x);
Tensor logistic(Tensor x);
Tensor sin(Tensor x);
Tensor cos(Tensor x);
Tensor floor(Tensor x);
Tensor ceil(Tensor x);
Tensor round(Tensor x);  // half to even
Tensor is_finite(Tensor x);
Tensor erf(Tensor x);      // chlo.erf
Tensor erf_inv(Tensor x);  // chlo.erf_inv: XLA's own polynomial

// where(c, a, b): `condition` is bool; the three broadcast together.
Tensor select(Tensor condition, Tensor on_true, Tensor on_false);
Tensor select(Tensor condition, Tensor on_true, double on_false);
Tensor select(Tensor condition, double on_true, Tensor on_false);
Tensor clamp(double low, Tensor x, double high);

// Conversion of values (bool: 0 and 1; float to integer: towards zero). The same dtype gives the same tensor.
Tensor convert(Tensor x, DType dtype);
// The same bits under a dtype of the same size.
Tensor bitcast_convert(Tensor x, DType dtype);

// The identity; no gradient passes.
Tensor stop_gradient(Tensor x);

}  // namespace ops
}  // namespace t5x
