#include "nn/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "nn/initializers.h"
#include "nn/layers.h"
#include "ops/ops.h"

namespace t5x::nn {
namespace {

Initializer kernel_init() { return variance_scaling_init(1.0, Fan::kIn, Distribution::kNormal); }

// The logits are not scaled; instead the query kernel starts smaller.
Initializer query_init(const AttentionConfig& config) {
  const auto depth = std::sqrt(static_cast<float>(config.head_dim));
  const float scaling = config.dtype == DType::kBFloat16 ? static_cast<float>(BFloat16(depth)) : depth;
  return {fmt::format("{} / {}", kernel_init().name, scaling), [scaling](Tensor key, const TensorType& type) {
            return kernel_init().compute(key, type) / scaling;
          }};
}

Tensor project(const Scope& scope, Tensor x, const AttentionConfig& config, const Initializer& init) {
  Tensor y = dense(scope, x, config.num_heads * config.head_dim, {"embed", "joined_kv"}, init, config.dtype);
  return ops::reshape(y, {x.dim(0), x.dim(1), config.num_heads, config.head_dim});
}

Tensor project_out(const Scope& scope, Tensor x, int64_t features, const AttentionConfig& config) {
  x = ops::reshape(x, {x.dim(0), x.dim(1), config.num_heads * config.head_dim});
  return dense(scope / "out", x, features, {"joined_kv", "embed"}, kernel_init(), config.dtype);
}

// query [b, q, h, d], key and value [b, k, h, d]: [b, q, h, d].
Tensor dot_product_attention(const Scope& scope, Tensor query, Tensor key, Tensor value, Tensor bias,
                             const AttentionConfig& config) {
  auto guard = scope.enter();
  if (config.float32_logits) {
    query = ops::convert(query, DType::kFloat32);
    key = ops::convert(key, DType::kFloat32);
  }
  Tensor logits = ops::einsum("bqhd,bkhd->bhqk", query, key);
  if (bias) logits = logits + ops::convert(bias, logits.dtype());
  Tensor weights = ops::convert(ops::softmax(logits, -1), config.dtype);
  if (config.dropout_rate > 0 && scope.has_dropout()) {
    // One mask for all queries, and a multiplication: t5x does not use its Dropout module here.
    const Shape shape{weights.dim(0), weights.dim(1), 1, weights.dim(3)};
    Tensor keep = ops::bernoulli(scope.make_dropout_key(), 1 - config.dropout_rate, shape);
    weights = weights * (ops::convert(keep, weights.dtype()) / (1 - config.dropout_rate));
  }
  return ops::einsum("bhqk,bkhd->bqhd", weights, value);
}

}  // namespace

Tensor attention_mask(Tensor query_valid, Tensor key_valid) {
  const Shape shape{query_valid.dim(0), 1, query_valid.dim(1), key_valid.dim(1)};
  return ops::bit_and(ops::broadcast_in_dim(query_valid, shape, {0, 2}),
                      ops::broadcast_in_dim(key_valid, shape, {0, 3}));
}

Tensor segment_mask(Tensor query_segments, Tensor key_segments) {
  const Shape shape{query_segments.dim(0), 1, query_segments.dim(1), key_segments.dim(1)};
  return ops::broadcast_in_dim(query_segments, shape, {0, 2}) ==
         ops::broadcast_in_dim(key_segments, shape, {0, 3});
}

Tensor causal_mask(int64_t length) {
  const Shape shape{1, 1, length, length};
  return ops::iota(DType::kInt32, shape, 2) >= ops::iota(DType::kInt32, shape, 3);
}

Tensor combine_masks(const std::vector<Tensor>& masks) {
  Tensor all;
  for (const Tensor& mask : masks) {
    if (mask) all = all ? ops::bit_and(all, mask) : mask;
  }
  return all;
}

Tensor mask_bias(Tensor mask, DType dtype) {
  return ops::select(mask, zeros({dtype, mask.shape()}), full({dtype, mask.shape()}, -1e10));
}

int32_t relative_position_bucket(int64_t relative_position, bool bidirectional, int64_t num_buckets,
                                 int64_t max_distance) {
  int64_t first = 0;
  int64_t distance = -relative_position;
  if (bidirectional) {
    num_buckets /= 2;
    if (distance < 0) first = num_buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(distance, 0);
  }
  // Half of the buckets are for single distances, the other half grows logarithmically up to max_distance.
  const int64_t exact = num_buckets / 2;
  if (distance < exact) return static_cast<int32_t>(first + distance);
  // The logarithm in float32, the rest in float64, as NumPy evaluates the reference's expression.
  const float ratio =
      static_cast<float>(distance) / static_cast<float>(exact) + std::numeric_limits<float>::epsilon();
  const double range = std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  const double position =
      static_cast<double>(std::log(ratio)) / range * static_cast<double>(num_buckets - exact);
  return static_cast<int32_t>(first + std::min(exact + static_cast<int64_t>(position), num_buckets - 1));
}

namespace {

Tensor rel_embedding(const Scope& scope, const RelativeBiasConfig& config) {
  return scope.param("rel_embedding", {DType::kFloat32, {config.num_heads, config.num_buckets}},
                     {"heads", "relpos_buckets"},
                     variance_scaling_init(1.0, Fan::kAverage, Distribution::kUniform));
}

// buckets [q, k] -> [1, h, q, k]
Tensor look_up(const Scope& scope, const RelativeBiasConfig& config, Tensor buckets) {
  Tensor table = ops::transpose(rel_embedding(scope, config), {1, 0});
  Tensor bias = ops::convert(ops::take(table, buckets), config.dtype);
  return ops::expand_dims(ops::transpose(bias, {2, 0, 1}), 0);
}

}  // namespace

Tensor relative_position_bias(const Scope& scope, const RelativeBiasConfig& config, int64_t query_length,
                              int64_t key_length, bool bidirectional) {
  auto guard = scope.enter();
  Array buckets(DType::kInt32, {query_length, key_length});
  std::span<int32_t> values = buckets.values<int32_t>();
  for (int64_t q = 0; q < query_length; ++q) {
    for (int64_t k = 0; k < key_length; ++k) {
      values[static_cast<size_t>(q * key_length + k)] =
          relative_position_bucket(k - q, bidirectional, config.num_buckets, config.max_distance);
    }
  }
  return look_up(scope, config, constant(buckets));
}

Tensor relative_position_bias_row(const Scope& scope, const RelativeBiasConfig& config, Tensor position,
                                  int64_t key_length) {
  auto guard = scope.enter();
  // Buckets by distance, so that the row for a position is a slice: entry i stands for key - query = i -
  // (length - 1).
  std::vector<int32_t> by_distance;
  for (int64_t i = 0; i < 2 * key_length - 1; ++i) {
    by_distance.push_back(
        relative_position_bucket(i - (key_length - 1), false, config.num_buckets, config.max_distance));
  }
  Tensor all = constant(Array::from<int32_t>(by_distance, {2 * key_length - 1}));
  Tensor start = full({DType::kInt32, {}}, static_cast<double>(key_length - 1)) - position;
  return look_up(scope, config, ops::expand_dims(ops::dynamic_slice_in_dim(all, start, key_length, 0), 0));
}

Tensor multi_head_attention(const Scope& scope, Tensor queries, Tensor keys_values, Tensor bias,
                            const AttentionConfig& config) {
  Tensor query = project(scope / "query", queries, config, query_init(config));
  Tensor key = project(scope / "key", keys_values, config, kernel_init());
  Tensor value = project(scope / "value", keys_values, config, kernel_init());
  const AxisNames axes{"batch", "length", "heads", "kv"};
  query = scope.constrain(query, axes);
  key = scope.constrain(key, axes);
  value = scope.constrain(value, axes);
  Tensor x = dot_product_attention(scope, query, key, value, bias, config);
  return project_out(scope, x, queries.dim(-1), config);
}

void init_self_attention_cache(const Scope& scope, int64_t batch, int64_t length,
                               const AttentionConfig& config) {
  const TensorType type{config.dtype, {batch, length, config.num_heads, config.head_dim}};
  scope.set_cached("cached_key", zeros(type));
  scope.set_cached("cached_value", zeros(type));
}

void init_cross_attention_cache(const Scope& scope, Tensor encoded, const AttentionConfig& config) {
  scope.set_cached("cached_key", project(scope / "key", encoded, config, kernel_init()));
  scope.set_cached("cached_value", project(scope / "value", encoded, config, kernel_init()));
}

Tensor cached_self_attention(const Scope& scope, Tensor queries, Tensor position, Tensor bias,
                             const AttentionConfig& config) {
  Tensor query = project(scope / "query", queries, config, query_init(config));
  Tensor new_key = project(scope / "key", queries, config, kernel_init());
  Tensor new_value = project(scope / "value", queries, config, kernel_init());
  Tensor key = ops::dynamic_update_slice_in_dim(scope.cached("cached_key"), new_key, position, 1);
  Tensor value = ops::dynamic_update_slice_in_dim(scope.cached("cached_value"), new_value, position, 1);
  scope.set_cached("cached_key", key);
  scope.set_cached("cached_value", value);
  Tensor x = dot_product_attention(scope, query, key, value, bias, config);
  return project_out(scope, x, queries.dim(-1), config);
}

Tensor cached_cross_attention(const Scope& scope, Tensor queries, Tensor bias,
                              const AttentionConfig& config) {
  Tensor query = project(scope / "query", queries, config, query_init(config));
  Tensor key = scope.cached("cached_key");
  const int64_t shared = queries.dim(0) / key.dim(0);
  // The beams of one example are further queries of the same keys.
  query = ops::reshape(query, {key.dim(0), shared, config.num_heads, config.head_dim});
  Tensor x = dot_product_attention(scope, query, key, scope.cached("cached_value"), bias, config);
  return project_out(scope, ops::reshape(x, {queries.dim(0), 1, config.num_heads, config.head_dim}),
                     queries.dim(-1), config);
}

}  // namespace t5x::nn
