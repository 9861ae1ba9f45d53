// Attention of t5x's minimal T5: masks, relative position buckets, multi-head dot-product attention with a
// decoding cache. b batch, h heads, q query length, k key length, d size of a head.
#pragma once

#include "nn/scope.h"

namespace t5x::nn {

// Masks are bool [b, 1, q, k]; true where attention is allowed.
// query_valid [b, q] and key_valid [b, k] are bool.
Tensor attention_mask(Tensor query_valid, Tensor key_valid);
// Same number in both: [b, q], [b, k].
Tensor segment_mask(Tensor query_segments, Tensor key_segments);
// Key position not after query position: [1, 1, length, length].
Tensor causal_mask(int64_t length);
// Conjunction of those that are present; empty if none is.
Tensor combine_masks(const std::vector<Tensor>& masks);
// 0 where the mask holds, -1e10 elsewhere, in `dtype`.
Tensor mask_bias(Tensor mask, DType dtype);

struct RelativeBiasConfig {
  int64_t num_heads;
  int64_t num_buckets = 32;
  int64_t max_distance = 128;
  DType dtype = DType::kFloat32;
};
// Host side: the bucket of a relative position (key minus query), as T5's paper and t5x define it.
int32_t relative_position_bucket(int64_t relative_position, bool bidirectional, int64_t num_buckets,
                                 int64_t max_distance);
// [1, h, q, k] from the parameter "rel_embedding" [h, num_buckets].
Tensor relative_position_bias(const Scope& scope, const RelativeBiasConfig& config, int64_t query_length,
                              int64_t key_length, bool bidirectional);
// One row of it, for the query at `position` (int32 scalar): [1, h, 1, k].
Tensor relative_position_bias_row(const Scope& scope, const RelativeBiasConfig& config, Tensor position,
                                  int64_t key_length);

struct AttentionConfig {
  int64_t num_heads;
  int64_t head_dim;
  double dropout_rate;
  DType dtype;
  bool float32_logits = false;
};
// queries [b, q, f], keys_values [b, k, f], bias [b or 1, h or 1, q, k] added to the logits: [b, q, f].
Tensor multi_head_attention(const Scope& scope, Tensor queries, Tensor keys_values, Tensor bias,
                            const AttentionConfig& config);

// Decoding, one position at a time. Cached keys and values are [b, length, h, d].
// Makes an empty cache for self-attention over `length` positions.
void init_self_attention_cache(const Scope& scope, int64_t batch, int64_t length,
                               const AttentionConfig& config);
// Projects the encoded inputs once, for all positions.
void init_cross_attention_cache(const Scope& scope, Tensor encoded, const AttentionConfig& config);
// queries [b, 1, f] at `position`; writes its key and value into the cache. bias [.., .., 1, length].
Tensor cached_self_attention(const Scope& scope, Tensor queries, Tensor position, Tensor bias,
                             const AttentionConfig& config);
// queries [b, 1, f]; the cache may hold b / n rows, each shared by n consecutive queries (the beams of an
// example).
Tensor cached_cross_attention(const Scope& scope, Tensor queries, Tensor bias, const AttentionConfig& config);

}  // namespace t5x::nn
