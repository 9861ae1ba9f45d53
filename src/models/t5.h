// The T5 network (Raffel et al. 2020; 1.1: Shazeer 2020's gated activations), as t5x/examples/t5/network.py
// has it. Shapes: tokens int32 [batch, length]; encoded [batch, length, emb_dim]; logits float32 [batch,
// length, vocab_size].
#pragma once

#include <string>
#include <vector>

#include "nn/attention.h"
#include "nn/scope.h"

namespace t5x::models {

// The fields and defaults of t5x.examples.t5.network.T5Config.
struct T5Config {
  int64_t vocab_size = 0;
  DType dtype = DType::kFloat32;
  int64_t emb_dim = 512;
  int64_t num_heads = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t head_dim = 64;
  int64_t mlp_dim = 2048;
  std::vector<std::string> mlp_activations = {"relu"};
  double dropout_rate = 0.1;
  bool logits_via_embedding = false;
  bool float32_attention_logits = false;
  // Layers whose activations are computed again in the backward pass: "none", "minimal" (products are kept),
  // "full".
  std::string remat_policy = "none";
};
// Throws ConfigError that names the field, its value and what is allowed.
void check_config(const T5Config& config);

// Absent segment ids are empty handles.
Tensor encode(const nn::Scope& scope, const T5Config& config, Tensor tokens, Tensor segment_ids = {});
struct DecoderInputs {
  Tensor encoded, encoder_tokens, input_tokens, target_tokens;
  Tensor encoder_segment_ids = {}, decoder_segment_ids = {};
};
Tensor decode(const nn::Scope& scope, const T5Config& config, const DecoderInputs& inputs);

// Incremental decoding. Fills the cache for up to `length` positions of `rows` sequences, which are a
// multiple of the encoded ones: the beams of an example follow each other.
void init_decoding_cache(const nn::Scope& scope, const T5Config& config, Tensor encoded, int64_t rows,
                         int64_t length);
// tokens [rows, 1] at `position` (int32 scalar): logits [rows, vocab_size]. Updates the cache.
Tensor decode_step(const nn::Scope& scope, const T5Config& config, Tensor tokens, Tensor position,
                   Tensor encoder_tokens, int64_t length);

}  // namespace t5x::models
