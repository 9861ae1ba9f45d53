#include "nn/layers.h"

#include <cmath>

#include "base/error.h"
#include "base/strings.h"
#include "nn/initializers.h"
#include "ops/ops.h"

namespace t5x::nn {

Tensor dense(const Scope& scope, Tensor x, int64_t features, const AxisNames& axes, const Initializer& init,
             DType dtype) {
  auto guard = scope.enter();
  Tensor kernel = scope.param("kernel", {DType::kFloat32, {x.dim(-1), features}}, axes, init);
  return ops::matmul(ops::convert(x, dtype), ops::convert(kernel, dtype));
}

Tensor embedding_table(const Scope& scope, int64_t num_embeddings, int64_t features) {
  return scope.param("embedding", {DType::kFloat32, {num_embeddings, features}}, {"vocab", "embed"},
                     normal_init(1.0));
}

Tensor embed(const Scope& scope, Tensor table, Tensor ids, DType dtype) {
  auto guard = scope.enter();
  return scope.constrain(ops::convert(ops::take(table, ids), dtype), {"batch", "length", "embed"});
}

Tensor layer_norm(const Scope& scope, Tensor x, DType dtype) {
  constexpr double kEpsilon = 1e-6;
  auto guard = scope.enter();
  Tensor scale = scope.param("scale", {DType::kFloat32, {x.dim(-1)}}, {"embed"}, constant_init(1.0));
  Tensor wide = ops::convert(x, DType::kFloat32);
  Tensor mean_square = ops::reduce_mean(ops::square(wide), {-1}, true);
  return ops::convert(wide * ops::rsqrt(mean_square + kEpsilon), dtype) * ops::convert(scale, dtype);
}

Tensor dropout(const Scope& scope, Tensor x, double rate, int64_t broadcast_axis) {
  if (rate == 0 || !scope.has_dropout()) return x;
  auto guard = scope.enter();
  std::vector<int64_t> dims = x.shape().dims();
  if (broadcast_axis != kNoBroadcast) dims[x.shape().normalize_axis(broadcast_axis)] = 1;
  Tensor keep = ops::bernoulli(scope.make_dropout_key(), 1 - rate, Shape(dims));
  return ops::select(ops::broadcast_to(keep, x.shape()), x / (1 - rate), 0.0);
}

Tensor activation(const std::string& name, Tensor x) {
  if (name == "linear") return x;
  if (name == "relu") return ops::maximum(x, 0.0);
  if (name == "gelu") {
    const double factor = std::sqrt(2 / M_PI);
    return 0.5 * x * (1.0 + ops::tanh(factor * (x + 0.044715 * (x * x * x))));
  }
  if (name == "silu" || name == "swish") return x * ops::logistic(x);
  if (name == "sigmoid") return ops::logistic(x);
  if (name == "tanh") return ops::tanh(x);
  throw_error<ConfigError>(
      "unknown activation '{}'{}", name,
      did_you_mean(name, {"linear", "relu", "gelu", "silu", "swish", "sigmoid", "tanh"}));
}

Tensor mlp_block(const Scope& scope, Tensor x, const MlpConfig& config) {
  const Initializer init = variance_scaling_init(1.0, Fan::kIn, Distribution::kTruncatedNormal);
  if (config.activations.empty())
    throw_error<ConfigError>("mlp_activations is empty; give at least one, such as ('relu',)");
  Tensor product;
  for (size_t i = 0; i < config.activations.size(); ++i) {
    const std::string name = config.activations.size() == 1 ? "wi" : "wi_" + std::to_string(i);
    Tensor h = dense(scope / name, x, config.intermediate_dim, {"embed", "mlp"}, init, config.dtype);
    auto guard = scope.enter();
    h = activation(config.activations[i], h);
    product = product ? product * h : h;
  }
  product = dropout(scope / "Dropout_0", product, config.dropout_rate);
  product = scope.constrain(product, {"batch", "length", "mlp"});
  return dense(scope / "wo", product, x.dim(-1), {"mlp", "embed"}, init, config.dtype);
}

}  // namespace t5x::nn
