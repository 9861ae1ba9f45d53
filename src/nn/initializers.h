// Initial values of parameters, as jax.nn.initializers and flax compute them from a key.
#pragma once

#include "nn/scope.h"

namespace t5x::nn {

enum class Fan { kIn, kOut, kAverage };
enum class Distribution { kNormal, kTruncatedNormal, kUniform };

Initializer constant_init(double value);
Initializer normal_init(double stddev);
// Variance `scale` / fan, for arrays whose last two axes are input and output; further leading axes multiply
// both fans.
Initializer variance_scaling_init(double scale, Fan fan, Distribution distribution);

}  // namespace t5x::nn
