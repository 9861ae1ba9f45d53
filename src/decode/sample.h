// Sampling with temperature, top-k and top-p, and greedy decoding: t5x.decoding.temperature_sample, with its
// names and its use of random keys.
#pragma once

#include <optional>

#include "decode/cache.h"

namespace t5x::decode {

struct SampleOptions {
  int64_t eos_id = 1;
  int64_t num_decodes = 1;
  double temperature = 1.0;  // 1e-4 and less: the most probable token, whatever topk and topp say
  int64_t topk = 1;          // 0: all tokens; tokens as good as the k-th one stay in
  double topp = 0.0;  // 0: all tokens; else the most probable ones that together reach this probability
  std::optional<int64_t> max_decode_steps = {};  // beyond the prompt
  std::optional<int64_t> max_decode_steps_hard_limit = {};
  // Whether scores count the probabilities after temperature, topk and topp (0 when greedy), or the model's.
  bool rescale_log_probs = true;
};

// `inputs`: int32 [batch, length], decoder inputs with the start token 0 first: tokens that are not 0 are a
// prompt that decoding is held to. `cache`: one row per example; it is expanded here. `rng`: uint32 [2];
// empty handle: the key of seed 0. `initial_index`: int32 [batch], the positions where decoding begins with a
// prefilled cache; empty handle: 0 with the start token 0. `temperatures`: float [batch] in place of
// options.temperature; empty handle: none. What follows an end token is 0. Throws ShapeError or ConfigError
// for what does not fit.
Decoded temperature_sample(Tensor inputs, const Cache& cache, const TokensToLogits& tokens_to_logits,
                           const SampleOptions& options, Tensor rng = {}, Tensor initial_index = {},
                           Tensor temperatures = {});

// Logits [rows, vocab] with all but the k largest replaced by t5x's -1e7; ties with the k-th stay.
Tensor topk_mask(Tensor logits, int64_t k);
// Logits with all but the fewest most probable tokens whose probability reaches p replaced by -1e7.
Tensor topp_mask(Tensor logits, double p);

}  // namespace t5x::decode
