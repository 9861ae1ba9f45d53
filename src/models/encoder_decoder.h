// A model as the trainer sees it: what t5x.models.EncoderDecoderModel is. It names its parameters, turns a
// batch into a loss with metrics, and scores given targets. Decoding is in decode/.
#pragma once

#include <map>
#include <string>

#include "models/losses.h"
#include "models/t5.h"

namespace t5x::models {

// Types of the features of a batch, by name.
using BatchTypes = std::map<std::string, TensorType>;

struct ApplyOptions {
  Tensor dropout_key = {};  // empty: deterministic
  const nn::ActivationRules* activations = nullptr;
};

// Sums over a batch, float32 scalars; the host divides. Sums over the parts of a batch add up to those of the
// whole.
struct LossMetrics {
  Tensor loss;  // what is differentiated
  // "loss", "z_loss", "cross_ent_loss", "token_loss" (as "loss", before normalisation), "correct" and
  // "weight" (sums over tokens with weight), "tokens" (all target positions), "nonpadding/encoder",
  // "nonpadding/decoder", "encoder_tokens".
  nn::TensorMap sums;
};

// The names of LossMetrics::sums, in their order.
std::vector<std::string> metric_names();

class EncoderDecoderModel {
 public:
  EncoderDecoderModel(T5Config network, LossConfig loss);

  const T5Config& network() const { return network_; }
  // The features a training batch has: int32 [batch, length], with segment ids and positions when packed.
  static BatchTypes batch_types(int64_t batch, int64_t inputs_length, int64_t targets_length, bool packed);

  nn::ParamSpecs param_specs() const;
  // float32 [batch, length, vocab_size].
  Tensor logits(const nn::TensorMap& params, const nn::TensorMap& batch,
                const ApplyOptions& options = {}) const;
  LossMetrics loss(const nn::TensorMap& params, const nn::TensorMap& batch,
                   const ApplyOptions& options = {}) const;
  // Log probability of the targets of every example, without smoothing or z-loss: [batch].
  Tensor score(const nn::TensorMap& params, const nn::TensorMap& batch,
               const ApplyOptions& options = {}) const;

 private:
  T5Config network_;
  LossConfig loss_;
};

}  // namespace t5x::models
