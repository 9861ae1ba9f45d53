#include "nn/initializers.h"

#include <cmath>

#include "base/error.h"
#include "ops/ops.h"

namespace t5x::nn {
namespace {

// Deviation of a standard normal cut to (-2, 2).
constexpr float kTruncatedDeviation = 0.87962566103423978F;

Tensor multiply(Tensor x, double factor) { return factor == 1.0 ? x : x * factor; }

double fan_of(const Shape& shape, Fan fan) {
  if (shape.rank() < 2)
    throw_error<ShapeError>("variance scaling needs an array of rank 2 or more, got {}", shape.to_string());
  double receptive = 1;
  for (size_t i = 0; i + 2 < shape.rank(); ++i) receptive *= static_cast<double>(shape[i]);
  const double in = receptive * static_cast<double>(shape.dim(-2));
  const double out = receptive * static_cast<double>(shape.dim(-1));
  return fan == Fan::kIn ? in : fan == Fan::kOut ? out : (in + out) / 2;
}

}  // namespace

Initializer constant_init(double value) {
  return {fmt::format("constant({})", value),
          [value](Tensor, const TensorType& type) { return full(type, value); }};
}

Initializer normal_init(double stddev) {
  return {fmt::format("normal({})", stddev), [stddev](Tensor key, const TensorType& type) {
            return ops::convert(multiply(ops::normal(key, type.shape), stddev), type.dtype);
          }};
}

Initializer variance_scaling_init(double scale, Fan fan, Distribution distribution) {
  auto compute = [=](Tensor key, const TensorType& type) {
    // The factors are computed in float32, as jax computes them.
    const auto variance = static_cast<float>(scale / fan_of(type.shape, fan));
    Tensor x;
    switch (distribution) {
      case Distribution::kNormal:
        x = ops::normal(key, type.shape) * std::sqrt(variance);
        break;
      case Distribution::kTruncatedNormal:
        x = ops::truncated_normal(key, -2, 2, type.shape) * (std::sqrt(variance) / kTruncatedDeviation);
        break;
      case Distribution::kUniform:
        x = ops::uniform(key, type.shape, -1, 1) * std::sqrt(3.0f * variance);
        break;
    }
    return ops::convert(x, type.dtype);
  };
  return {fmt::format("variance_scaling({}, {}, {})", scale, static_cast<int>(fan),
                      static_cast<int>(distribution)),
          compute};
}

}  // namespace t5x::nn
