#include "models/losses.h"

#include <cmath>

#include "base/error.h"
#include "base/strings.h"
#include "ops/ops.h"

namespace t5x::models {
namespace {

// Sum of the weights of each token's own segment, [b, l].
Tensor segment_weights(Tensor segment_ids, Tensor weights) {
  const Shape shape{weights.dim(0), weights.dim(1), weights.dim(1)};
  Tensor same =
      ops::broadcast_in_dim(segment_ids, shape, {0, 1}) == ops::broadcast_in_dim(segment_ids, shape, {0, 2});
  return ops::reduce_sum(ops::select(same, ops::broadcast_in_dim(weights, shape, {0, 2}), 0.0), {2});
}

// The weights and the divisor (empty for none) that a normalisation stands for.
std::pair<Tensor, Tensor> normalize(const LossNormalization& normalization, Tensor weights,
                                    const nn::TensorMap& batch) {
  switch (normalization.kind) {
    case LossNormalizer::kNone:
      return {weights,
              normalization.constant == 0 ? Tensor() : full({DType::kFloat32, {}}, normalization.constant)};
    case LossNormalizer::kNumRealTargetTokens:
      return {weights, ops::convert(ops::sum(weights), DType::kFloat32)};
    case LossNormalizer::kNumTotalTargetTokens:
      return {weights, full({DType::kFloat32, {}}, static_cast<double>(weights.shape().size()))};
    case LossNormalizer::kAveragePerSequence: {
      weights = ops::convert(weights, DType::kFloat32);
      auto segments = batch.find("decoder_segment_ids");
      Tensor norm = segments != batch.end() ? segment_weights(segments->second, weights)
                                            : ops::reduce_sum(weights, {-1}, true);
      norm = ops::broadcast_to(norm, weights.shape());
      weights = ops::select(norm == 0.0, 0.0, weights / ops::select(norm == 0.0, 1.0, norm));
      return {weights, ops::sum(weights)};
    }
  }
  throw_error<InternalError>("unknown loss normalisation");
}

}  // namespace

LossNormalization parse_loss_normalization(const std::string& name) {
  const std::vector<std::string> names = {"NUM_REAL_TARGET_TOKENS", "NUM_TOTAL_TARGET_TOKENS",
                                          "AVERAGE_PER_SEQUENCE"};
  if (name == names[0]) return {.kind = LossNormalizer::kNumRealTargetTokens};
  if (name == names[1]) return {.kind = LossNormalizer::kNumTotalTargetTokens};
  if (name == names[2]) return {.kind = LossNormalizer::kAveragePerSequence};
  throw_error<ConfigError>(
      "loss_normalizing_factor must be a number or one of 'NUM_REAL_TARGET_TOKENS', "
      "'NUM_TOTAL_TARGET_TOKENS', "
      "'AVERAGE_PER_SEQUENCE', found '{}'{}",
      name, did_you_mean(name, names));
}

TokenLosses token_cross_entropy(Tensor logits, Tensor targets, double label_smoothing, double z_loss) {
  const int64_t vocab = logits.dim(-1);
  const double high = 1.0 - label_smoothing;
  const double low = vocab > 1 ? label_smoothing / static_cast<double>(vocab - 1) : 0.0;
  const double constant =
      -(high * std::log(high) + static_cast<double>(vocab - 1) * low * std::log(low + 1e-20));

  auto forward = [&](const ops::Tensors& in) -> ops::CustomForward {
    Tensor x = in[0];
    Tensor log_z = ops::logsumexp(x, -1);
    Tensor chosen = ops::squeeze(ops::take_along_axis(x, ops::expand_dims(targets, -1), -1), -1);
    // -sum(soft * (x - log_z)), where soft is `high` at the target and `low` elsewhere and sums to one.
    Tensor loss = low == 0 ? log_z - chosen : log_z - (high - low) * chosen - low * ops::reduce_sum(x, {-1});
    Tensor z = ops::square(log_z) * z_loss;
    return {.outputs = {loss + z - constant, z}, .residuals = {x, targets, log_z}};
  };
  auto backward = [=](const ops::Tensors& residuals, const ops::Tensors& cotangents) -> ops::Tensors {
    // t5x gives the z-loss output no gradient of its own: it is part of the loss.
    Tensor x = residuals[0], log_z = ops::expand_dims(residuals[2], -1);
    Tensor softmax = ops::exp(x - log_z);
    Tensor is_target =
        ops::broadcast_in_dim(residuals[1], x.shape(), {0, 1}) == ops::iota(DType::kInt32, x.shape(), 2);
    Tensor soft = ops::select(is_target, full(x.type(), high), full(x.type(), low));
    Tensor factor = z_loss == 0 ? Tensor() : 1.0 + (2.0 * z_loss) * log_z;
    Tensor gradient = (factor ? factor * softmax : softmax) - soft;
    return {ops::expand_dims(cotangents[0], -1) * gradient};
  };
  ops::Tensors outputs = ops::custom_vjp({logits}, forward, backward);
  return {outputs[0], outputs[1]};
}

Loss weighted_cross_entropy(Tensor logits, const nn::TensorMap& batch, const LossConfig& config) {
  Tensor targets = batch.at("decoder_target_tokens");
  auto given = batch.find("decoder_loss_weights");
  Tensor weights = given != batch.end() ? given->second : ops::convert(targets > 0.0, DType::kFloat32);
  auto [normalized, divisor] = normalize(config.normalization, weights, batch);
  TokenLosses tokens = token_cross_entropy(logits, targets, config.label_smoothing, config.z_loss);
  Tensor factor = ops::convert(normalized, DType::kFloat32);
  Tensor loss = tokens.loss * factor, z = tokens.z_loss * factor;
  if (divisor) {
    loss = loss / divisor;
    z = z / divisor;
  }
  Tensor total = ops::sum(loss);
  const bool normalizes =
      config.normalization.kind != LossNormalizer::kNone || config.normalization.constant != 0;
  return {.total = total,
          .z_loss = ops::sum(z),
          .weight_sum = ops::sum(normalized),
          .token_loss = normalizes ? ops::sum(tokens.loss * ops::convert(weights, DType::kFloat32)) : total};
}

}  // namespace t5x::models
