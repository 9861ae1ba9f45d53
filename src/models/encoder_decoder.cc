#include "models/encoder_decoder.h"

#include "base/error.h"
#include "ops/ops.h"

namespace t5x::models {
namespace {

Tensor feature(const nn::TensorMap& batch, const std::string& name) {
  auto found = batch.find(name);
  if (found == batch.end())
    throw_error<DataError>("the batch has no feature '{}', which an encoder-decoder model needs", name);
  return found->second;
}

Tensor optional_feature(const nn::TensorMap& batch, const std::string& name) {
  auto found = batch.find(name);
  return found == batch.end() ? Tensor() : found->second;
}

Tensor network_logits(const nn::Scope& scope, const T5Config& config, const nn::TensorMap& batch) {
  Tensor encoder_tokens = feature(batch, "encoder_input_tokens");
  Tensor encoder_segments = optional_feature(batch, "encoder_segment_ids");
  Tensor encoded = encode(scope, config, encoder_tokens, encoder_segments);
  return decode(scope, config,
                {.encoded = encoded,
                 .encoder_tokens = encoder_tokens,
                 .input_tokens = feature(batch, "decoder_input_tokens"),
                 .target_tokens = feature(batch, "decoder_target_tokens"),
                 .encoder_segment_ids = encoder_segments,
                 .decoder_segment_ids = optional_feature(batch, "decoder_segment_ids")});
}

Tensor count(Tensor condition) { return ops::sum(ops::convert(condition, DType::kFloat32)); }

}  // namespace

std::vector<std::string> metric_names() {
  return {
      "correct",    "cross_ent_loss", "encoder_tokens", "loss",  "nonpadding/decoder", "nonpadding/encoder",
      "token_loss", "tokens",         "weight",         "z_loss"};
}

EncoderDecoderModel::EncoderDecoderModel(T5Config network, LossConfig loss)
    : network_(std::move(network)), loss_(loss) {
  check_config(network_);
}

BatchTypes EncoderDecoderModel::batch_types(int64_t batch, int64_t inputs_length, int64_t targets_length,
                                            bool packed) {
  const TensorType inputs{DType::kInt32, {batch, inputs_length}},
      targets{DType::kInt32, {batch, targets_length}};
  BatchTypes types = {{"encoder_input_tokens", inputs},
                      {"decoder_input_tokens", targets},
                      {"decoder_target_tokens", targets},
                      {"decoder_loss_weights", targets}};
  if (packed) {
    types.insert({{"encoder_segment_ids", inputs},
                  {"encoder_positions", inputs},
                  {"decoder_segment_ids", targets},
                  {"decoder_positions", targets}});
  }
  return types;
}

nn::ParamSpecs EncoderDecoderModel::param_specs() const {
  // Parameters do not depend on batch or lengths.
  const BatchTypes types = batch_types(1, 1, 1, false);
  std::vector<TensorType> args;
  for (const auto& [name, type] : types) args.push_back(type);
  return nn::declare_params(args, [&](const nn::Scope& scope, const std::vector<Tensor>& tensors) {
    nn::TensorMap batch;
    size_t next = 0;
    for (const auto& [name, type] : types) batch[name] = tensors[next++];
    network_logits(scope, network_, batch);
  });
}

Tensor EncoderDecoderModel::logits(const nn::TensorMap& params, const nn::TensorMap& batch,
                                   const ApplyOptions& options) const {
  nn::Frame frame{.params = &params, .dropout_key = options.dropout_key, .activations = options.activations};
  return network_logits(nn::Scope(frame), network_, batch);
}

LossMetrics EncoderDecoderModel::loss(const nn::TensorMap& params, const nn::TensorMap& batch,
                                      const ApplyOptions& options) const {
  Tensor logits = this->logits(params, batch, options);
  AbsoluteScope scope("loss");
  const Loss loss = weighted_cross_entropy(logits, batch, loss_);
  Tensor targets = feature(batch, "decoder_target_tokens");
  Tensor given = optional_feature(batch, "decoder_loss_weights");
  Tensor weights =
      given ? ops::convert(given, DType::kFloat32) : ops::convert(targets > 0.0, DType::kFloat32);
  Tensor correct = ops::convert(ops::argmax(ops::stop_gradient(logits), -1) == targets, DType::kFloat32);
  Tensor inputs = feature(batch, "encoder_input_tokens");
  const TensorType scalar{DType::kFloat32, {}};
  return {.loss = loss.total,
          .sums = {{"loss", loss.total},
                   {"z_loss", loss.z_loss},
                   {"token_loss", loss.token_loss},
                   {"cross_ent_loss", loss.total - loss.z_loss},
                   {"correct", ops::sum(correct * weights)},
                   {"weight", ops::sum(weights)},
                   {"tokens", full(scalar, static_cast<double>(targets.shape().size()))},
                   {"encoder_tokens", full(scalar, static_cast<double>(inputs.shape().size()))},
                   {"nonpadding/encoder", count(inputs != 0.0)},
                   {"nonpadding/decoder", count(targets != 0.0)}}};
}

Tensor EncoderDecoderModel::score(const nn::TensorMap& params, const nn::TensorMap& batch,
                                  const ApplyOptions& options) const {
  Tensor logits = this->logits(params, batch, options);
  Tensor targets = feature(batch, "decoder_target_tokens");
  Tensor given = optional_feature(batch, "decoder_loss_weights");
  Tensor weights = ops::convert(given ? given : ops::convert(targets > 0.0, DType::kInt32), DType::kFloat32);
  return -ops::reduce_sum(token_cross_entropy(logits, targets, 0.0, 0.0).loss * weights, {-1});
}

}  // namespace t5x::models
