// Beam search with a length penalty, as t5x.decoding.beam_search (after Wu et al., arXiv 1609.08144, section
// 7).
#pragma once

#include <optional>

#include "decode/cache.h"

namespace t5x::decode {

struct BeamSearchOptions {
  int64_t eos_id = 1;
  int64_t num_decodes = 4;                     // beams
  double alpha = 0.6;                          // scores are log probabilities over ((5 + length) / 6)^alpha
  std::optional<int64_t> max_decode_len = {};  // default: the length of `inputs`
};

// `inputs`: int32 [batch, length], decoder inputs with the start token 0 first: tokens that are not 0 are a
// prompt that decoding is held to. `cache`: empty, with one row per example; it is expanded here. Examples
// without any finished decode get the live ones with their bare log probabilities. Throws ShapeError or
// ConfigError for what does not fit.
Decoded beam_search(Tensor inputs, const Cache& cache, const TokensToLogits& tokens_to_logits,
                    const BeamSearchOptions& options);

}  // namespace t5x::decode
