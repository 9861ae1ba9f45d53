#include "decode/predict.h"

#include "base/error.h"
#include "graph/basic.h"
#include "graph/trace.h"
#include "ops/ops.h"

namespace t5x::decode {

Decoded predict_batch(const models::EncoderDecoderModel& model, const nn::TensorMap& params,
                      const nn::TensorMap& batch, const PredictOptions& options, Tensor rng) {
  for (const char* name : {"encoder_input_tokens", "decoder_input_tokens"}) {
    if (!batch.contains(name))
      throw_error<DataError>("the batch has no feature '{}', which decoding needs", name);
  }
  const models::T5Config& config = model.network();
  Tensor encoder_tokens = batch.at("encoder_input_tokens");
  Tensor decoder_inputs = batch.at("decoder_input_tokens");
  const int64_t length = decoder_inputs.dim(1);
  nn::Frame frame{.params = &params};
  const nn::Scope scope(frame);
  Tensor encoded = models::encode(scope, config, encoder_tokens);
  models::init_decoding_cache(scope, config, encoded, encoder_tokens.dim(0), length);

  // The projected encoder outputs do not change and are shared by the decodes of an example: the loop
  // captures them. What self-attention has seen is carried.
  std::vector<std::string> carried;
  Cache cache;
  for (const auto& [path, value] : frame.cache) {
    if (path.find("encoder_decoder_attention") != std::string::npos) continue;
    carried.push_back(path);
    cache.entries.push_back(value);
  }
  const nn::TensorMap fixed = frame.cache;
  auto tokens_to_logits = [&](Tensor ids, const Tensors& entries, Tensor index) {
    nn::Frame step{.params = &params, .cache = fixed};
    for (size_t i = 0; i < carried.size(); ++i) step.cache[carried[i]] = entries[i];
    Tensor logits = models::decode_step(nn::Scope(step), config, ids, index, encoder_tokens, length);
    Tensors updated;
    for (const std::string& path : carried) updated.push_back(step.cache.at(path));
    return std::pair(logits, updated);
  };
  // The end token is taken out of a prompt: decoding would stop right behind it.
  const auto eos = static_cast<double>(
      options.method == PredictOptions::Method::kBeamSearch ? options.beam.eos_id : options.sample.eos_id);
  Tensor prompt = options.prompt_with_targets ? ops::select(decoder_inputs == eos, 0.0, decoder_inputs)
                                              : zeros(decoder_inputs.type());
  if (options.method == PredictOptions::Method::kBeamSearch)
    return beam_search(prompt, cache, tokens_to_logits, options.beam);
  return temperature_sample(prompt, cache, tokens_to_logits, options.sample, rng);
}

}  // namespace t5x::decode
