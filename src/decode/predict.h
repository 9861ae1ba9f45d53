// Decoding with a model: t5x's EncoderDecoderModel.predict_batch_with_aux.
#pragma once

#include <string>

#include "decode/beam_search.h"
#include "decode/sample.h"
#include "models/encoder_decoder.h"

namespace t5x::decode {

struct PredictOptions {
  enum class Method { kBeamSearch, kTemperatureSample };
  Method method = Method::kBeamSearch;
  BeamSearchOptions beam = {.num_decodes = 1};
  SampleOptions sample = {};
  // Holds decoding to the decoder inputs of the batch where they are not 0.
  bool prompt_with_targets = false;
};

// `batch` has encoder_input_tokens [b, l] and decoder_input_tokens [b, length], whose length bounds the
// decodes. `rng` is a key of shape (2) for sampling; an empty handle means the key of seed 0.
Decoded predict_batch(const models::EncoderDecoderModel& model, const nn::TensorMap& params,
                      const nn::TensorMap& batch, const PredictOptions& options = {}, Tensor rng = {});

}  // namespace t5x::decode
