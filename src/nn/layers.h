// Layers of t5x's minimal T5 (t5x/examples/t5/layers.py). Activations are [batch, length, features];
// parameters are float32 and converted to the dtype of the computation where they are used.
#pragma once

#include <string>
#include <vector>

#include "nn/scope.h"

namespace t5x::nn {

// x [..., k] -> [..., features], with the 2-D parameter "kernel" [k, features] named by `axes`; no bias.
Tensor dense(const Scope& scope, Tensor x, int64_t features, const AxisNames& axes, const Initializer& init,
             DType dtype);

// The table "embedding" [num_embeddings, features], float32.
Tensor embedding_table(const Scope& scope, int64_t num_embeddings, int64_t features);
// ids [batch, length] -> [batch, length, features] in `dtype`.
Tensor embed(const Scope& scope, Tensor table, Tensor ids, DType dtype);

// Root mean square normalisation over the last axis with the parameter "scale"; computed in float32.
Tensor layer_norm(const Scope& scope, Tensor x, DType dtype);

// Zeroes elements with probability `rate` and scales the others; one mask for all positions of
// `broadcast_axis` (npos for none). The identity where the scope has no dropout key.
inline constexpr int64_t kNoBroadcast = INT64_MAX;
Tensor dropout(const Scope& scope, Tensor x, double rate, int64_t broadcast_axis = -2);

// The activations that gin files name: "relu", "gelu" (tanh form), "silu"/"swish", "linear", ...
// Throws ConfigError with close matches.
Tensor activation(const std::string& name, Tensor x);

struct MlpConfig {
  int64_t intermediate_dim;
  std::vector<std::string> activations;  // one per input projection; their results are multiplied
  double dropout_rate;
  DType dtype;
};
// The feed-forward block: "wi" (or "wi_0", "wi_1", ... when there are several activations) and "wo".
Tensor mlp_block(const Scope& scope, Tensor x, const MlpConfig& config);

}  // namespace t5x::nn
