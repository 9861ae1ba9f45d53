// Distributions, bit for bit as jax.random computes them in float32.
#include "ops/random.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "graph/basic.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

constexpr float kSqrt2 = 1.41421356237309504880F;

// Keys from pairs of words, along a new last axis.
Tensor join_words(const std::pair<Tensor, Tensor>& pair) {
  const auto axis = static_cast<int64_t>(pair.first.rank());
  return concatenate({expand_dims(pair.first, axis), expand_dims(pair.second, axis)}, axis);
}

// 23 random bits under the exponent of 1 give [1, 2); bounds are scalars.
Tensor uniform_between(Tensor key, const Shape& shape, Tensor low, Tensor high) {
  const TensorType words{DType::kUInt32, shape};
  const Tensor mantissa = shift_right_logical(random_bits(key, shape), full(words, 9));
  const Tensor bits = bit_or(mantissa, full(words, 0x3f800000));
  const Tensor unit = bitcast_convert(bits, DType::kFloat32) - 1.0;
  low = broadcast_to(low, shape);
  return maximum(low, unit * broadcast_to(high - low, shape) + low);
}

Tensor scalar(float value) { return constant(Array::scalar<float>(value)); }

}  // namespace

Tensor fold_in(Tensor key, Tensor data) {
  if (data.rank() != 0 || !is_integer(data.dtype())) {
    throw_error<ShapeError>("fold_in takes an integer scalar, not {}", data.type().describe());
  }
  const Tensor low = convert(data, DType::kUInt32);
  return join_words(threefry2x32(key, zeros(low.type()), low));
}

Tensor split(Tensor key, int64_t num) {
  const Tensor low = arange(DType::kUInt32, num);
  return join_words(threefry2x32(key, zeros(low.type()), low));
}

Tensor uniform(Tensor key, const Shape& shape, double low, double high) {
  return uniform_between(key, shape, scalar(static_cast<float>(low)), scalar(static_cast<float>(high)));
}

Tensor bernoulli(Tensor key, double p, const Shape& shape) { return uniform(key, shape) < p; }

Tensor normal(Tensor key, const Shape& shape) {
  // The open end: erf_inv(-1) is infinite.
  const float low = std::nextafter(-1.0F, 0.0F);
  return erf_inv(uniform(key, shape, low, 1.0)) * kSqrt2;
}

Tensor truncated_normal(Tensor key, double low, double high, const Shape& shape) {
  const auto from = static_cast<float>(low), to = static_cast<float>(high);
  const Tensor a = erf(scalar(from / kSqrt2)), b = erf(scalar(to / kSqrt2));
  const Tensor value = erf_inv(uniform_between(key, shape, a, b)) * kSqrt2;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return clamp(std::nextafter(from, kInfinity), value, std::nextafter(to, -kInfinity));
}

Tensor gumbel(Tensor key, const Shape& shape) {
  return -log(-log(uniform(key, shape, std::numeric_limits<float>::min(), 1.0)));
}

Tensor categorical(Tensor key, Tensor logits) { return argmax(gumbel(key, logits.shape()) + logits, -1); }

}  // namespace t5x::ops
