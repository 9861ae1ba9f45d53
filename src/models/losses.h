// Cross entropy as t5x/losses.py computes it: label smoothing minus its constant, z-loss, weights,
// normalisation.
#pragma once

#include <string>
#include <variant>

#include "nn/scope.h"

namespace t5x::models {

enum class LossNormalizer { kNone, kNumRealTargetTokens, kNumTotalTargetTokens, kAveragePerSequence };
// A number, or one of t5x's special factors by name ("NUM_REAL_TARGET_TOKENS", ...).
struct LossNormalization {
  LossNormalizer kind = LossNormalizer::kNone;
  double constant = 0;  // used when kind is kNone and it is not 0
};
// From a gin value's text. Throws ConfigError with close matches.
LossNormalization parse_loss_normalization(const std::string& name);

struct LossConfig {
  double label_smoothing = 0.0;
  double z_loss = 0.0;
  LossNormalization normalization = {};
};

struct Loss {
  Tensor total;       // float32 scalar: what is minimised, with the z-loss part
  Tensor z_loss;      // float32 scalar
  Tensor weight_sum;  // scalar of the weights' dtype after normalisation
  Tensor token_loss;  // float32 scalar: `total` as it is without normalisation
};

// Per token, before weights: cross entropy with the smoothing constant taken off, plus z_loss * log(Z)^2;
// both [b, l]. logits float32 [b, l, v], targets int32 [b, l]. Its derivative is its own, fused with the
// softmax.
struct TokenLosses {
  Tensor loss, z_loss;
};
TokenLosses token_cross_entropy(Tensor logits, Tensor targets, double label_smoothing, double z_loss);

// `batch` has decoder_target_tokens, and decoder_loss_weights, decoder_segment_ids and decoder_positions
// where given.
Loss weighted_cross_entropy(Tensor logits, const nn::TensorMap& batch, const LossConfig& config);

}  // namespace t5x::models
