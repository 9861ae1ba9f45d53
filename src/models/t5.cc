#include "models/t5.h"

#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/strings.h"
#include "nn/initializers.h"
#include "nn/layers.h"
#include "ops/ops.h"

namespace t5x::models {
namespace {

using nn::Scope;

nn::AttentionConfig attention_config(const T5Config& config) {
  return {.num_heads = config.num_heads,
          .head_dim = config.head_dim,
          .dropout_rate = config.dropout_rate,
          .dtype = config.dtype,
          .float32_logits = config.float32_attention_logits};
}

nn::RelativeBiasConfig relative_config(const T5Config& config) {
  return {.num_heads = config.num_heads, .dtype = config.dtype};
}

Scope layer(const Scope& stack, int64_t index) { return stack / ("layers_" + std::to_string(index)); }

Tensor feed_forward(const Scope& scope, const T5Config& config, Tensor x, const std::string& dropout_name) {
  Tensor y = nn::layer_norm(scope / "pre_mlp_layer_norm", x, config.dtype);
  y = nn::mlp_block(scope / "mlp", y,
                    {.intermediate_dim = config.mlp_dim,
                     .activations = config.mlp_activations,
                     .dropout_rate = config.dropout_rate,
                     .dtype = config.dtype});
  return x + nn::dropout(scope / dropout_name, y, config.dropout_rate);
}

Tensor encoder_layer(const Scope& scope, const T5Config& config, Tensor x, Tensor bias) {
  Tensor y = nn::layer_norm(scope / "pre_attention_layer_norm", x, config.dtype);
  y = nn::multi_head_attention(scope / "attention", y, y, bias, attention_config(config));
  x = x + nn::dropout(scope / "Dropout_0", y, config.dropout_rate);
  return feed_forward(scope, config, x, "Dropout_1");
}

Tensor decoder_layer(const Scope& scope, const T5Config& config, Tensor x, Tensor encoded, Tensor bias,
                     Tensor cross_bias) {
  Tensor y = nn::layer_norm(scope / "pre_self_attention_layer_norm", x, config.dtype);
  y = nn::multi_head_attention(scope / "self_attention", y, y, bias, attention_config(config));
  x = x + nn::dropout(scope / "Dropout_0", y, config.dropout_rate);
  y = nn::layer_norm(scope / "pre_cross_attention_layer_norm", x, config.dtype);
  y = nn::multi_head_attention(scope / "encoder_decoder_attention", y, encoded, cross_bias,
                               attention_config(config));
  x = x + nn::dropout(scope / "Dropout_1", y, config.dropout_rate);
  return feed_forward(scope, config, x, "Dropout_2");
}

Tensor remat(const T5Config& config, const std::function<Tensor()>& layer_function) {
  if (config.remat_policy == "none") return layer_function();
  const auto policy = config.remat_policy == "full" ? ops::RematPolicy::kNothing : ops::RematPolicy::kDots;
  return ops::remat([&] { return ops::Tensors{layer_function()}; }, policy)[0];
}

Tensor token_table(const Scope& scope, const T5Config& config) {
  return nn::embedding_table(scope / "token_embedder", config.vocab_size, config.emb_dim);
}

// y [batch, length, emb_dim]: logits in float32, through the embedding or a kernel of their own.
Tensor logits(const Scope& scope, const T5Config& config, Tensor y) {
  if (config.logits_via_embedding) {
    auto guard = (scope / "token_embedder").enter();
    Tensor table = ops::transpose(token_table(scope, config), {1, 0});
    return ops::matmul(ops::convert(y, DType::kFloat32), table) /
           std::sqrt(static_cast<double>(config.emb_dim));
  }
  return nn::dense(scope / "decoder" / "logits_dense", y, config.vocab_size, {"embed", "vocab"},
                   nn::variance_scaling_init(1.0, nn::Fan::kIn, nn::Distribution::kTruncatedNormal),
                   DType::kFloat32);
}

Tensor valid(Tensor tokens) { return tokens > 0.0; }

}  // namespace

void check_config(const T5Config& config) {
  const std::vector<std::pair<const char*, int64_t>> positive = {
      {"vocab_size", config.vocab_size},
      {"emb_dim", config.emb_dim},
      {"num_heads", config.num_heads},
      {"num_decoder_layers", config.num_decoder_layers},
      {"num_encoder_layers", config.num_encoder_layers},
      {"head_dim", config.head_dim},
      {"mlp_dim", config.mlp_dim}};
  for (const auto& [name, value] : positive) {
    if (value <= 0) throw_error<ConfigError>("T5Config.{} must be positive, found {}", name, value);
  }
  if (!(config.dropout_rate >= 0 && config.dropout_rate < 1)) {
    throw_error<ConfigError>("T5Config.dropout_rate must be in [0, 1), found {}", config.dropout_rate);
  }
  if (config.dtype != DType::kFloat32 && config.dtype != DType::kBFloat16) {
    throw_error<ConfigError>("T5Config.dtype must be float32 or bfloat16, found {}", name(config.dtype));
  }
  const std::vector<std::string> policies = {"none", "minimal", "full"};
  if (std::find(policies.begin(), policies.end(), config.remat_policy) == policies.end()) {
    throw_error<ConfigError>("T5Config.remat_policy must be 'none', 'minimal' or 'full', found '{}'{}",
                             config.remat_policy, did_you_mean(config.remat_policy, policies));
  }
}

Tensor encode(const Scope& root, const T5Config& config, Tensor tokens, Tensor segment_ids) {
  const Scope scope = root / "encoder";
  Tensor mask = nn::attention_mask(valid(tokens), valid(tokens));
  if (segment_ids) mask = nn::combine_masks({mask, nn::segment_mask(segment_ids, segment_ids)});
  Tensor bias = nn::mask_bias(mask, config.dtype) +
                nn::relative_position_bias(scope / "relpos_bias", relative_config(config), tokens.dim(1),
                                           tokens.dim(1), true);
  Tensor x = nn::embed(root / "token_embedder", token_table(root, config), tokens, config.dtype);
  x = nn::dropout(scope / "Dropout_0", x, config.dropout_rate);
  for (int64_t i = 0; i < config.num_encoder_layers; ++i) {
    x = remat(config, [&] { return encoder_layer(layer(scope, i), config, x, bias); });
  }
  x = nn::layer_norm(scope / "encoder_norm", x, config.dtype);
  return nn::dropout(scope / "Dropout_1", x, config.dropout_rate, nn::kNoBroadcast);
}

Tensor decode(const Scope& root, const T5Config& config, const DecoderInputs& in) {
  const Scope scope = root / "decoder";
  const int64_t length = in.input_tokens.dim(1);
  // Padding is judged by the targets: the inputs start with a zero.
  Tensor is_target = valid(in.target_tokens);
  Tensor self_mask = nn::combine_masks({nn::causal_mask(length), nn::attention_mask(is_target, is_target)});
  Tensor cross_mask = nn::attention_mask(is_target, valid(in.encoder_tokens));
  if (in.decoder_segment_ids) {
    self_mask =
        nn::combine_masks({self_mask, nn::segment_mask(in.decoder_segment_ids, in.decoder_segment_ids)});
    cross_mask =
        nn::combine_masks({cross_mask, nn::segment_mask(in.decoder_segment_ids, in.encoder_segment_ids)});
  }
  Tensor bias =
      nn::mask_bias(self_mask, config.dtype) +
      nn::relative_position_bias(scope / "relpos_bias", relative_config(config), length, length, false);
  Tensor cross_bias = nn::mask_bias(cross_mask, config.dtype);
  Tensor y = nn::embed(root / "token_embedder", token_table(root, config), in.input_tokens, config.dtype);
  y = nn::dropout(scope / "Dropout_0", y, config.dropout_rate);
  for (int64_t i = 0; i < config.num_decoder_layers; ++i) {
    y = remat(config,
              [&] { return decoder_layer(layer(scope, i), config, y, in.encoded, bias, cross_bias); });
  }
  y = nn::layer_norm(scope / "decoder_norm", y, config.dtype);
  y = nn::dropout(scope / "Dropout_1", y, config.dropout_rate);
  return logits(root, config, y);
}

void init_decoding_cache(const Scope& root, const T5Config& config, Tensor encoded, int64_t rows,
                         int64_t length) {
  for (int64_t i = 0; i < config.num_decoder_layers; ++i) {
    const Scope scope = layer(root / "decoder", i);
    nn::init_self_attention_cache(scope / "self_attention", rows, length, attention_config(config));
    nn::init_cross_attention_cache(scope / "encoder_decoder_attention", encoded, attention_config(config));
  }
}

Tensor decode_step(const Scope& root, const T5Config& config, Tensor tokens, Tensor position,
                   Tensor encoder_tokens, int64_t length) {
  const Scope scope = root / "decoder";
  Tensor cross_mask =
      ops::reshape(valid(encoder_tokens), {encoder_tokens.dim(0), 1, 1, encoder_tokens.dim(1)});
  Tensor cross_bias = nn::mask_bias(cross_mask, config.dtype);
  const Shape row{1, 1, 1, length};
  Tensor past = ops::iota(DType::kInt32, row, 3) <= ops::broadcast_to(position, row);
  Tensor bias =
      nn::mask_bias(past, config.dtype) +
      nn::relative_position_bias_row(scope / "relpos_bias", relative_config(config), position, length);
  Tensor y = nn::embed(root / "token_embedder", token_table(root, config), tokens, config.dtype);
  for (int64_t i = 0; i < config.num_decoder_layers; ++i) {
    const Scope s = layer(scope, i);
    Tensor z = nn::layer_norm(s / "pre_self_attention_layer_norm", y, config.dtype);
    y = y + nn::cached_self_attention(s / "self_attention", z, position, bias, attention_config(config));
    z = nn::layer_norm(s / "pre_cross_attention_layer_norm", y, config.dtype);
    y = y +
        nn::cached_cross_attention(s / "encoder_decoder_attention", z, cross_bias, attention_config(config));
    y = feed_forward(s, config, y, "Dropout_2");
  }
  y = nn::layer_norm(scope / "decoder_norm", y, config.dtype);
  return ops::reshape(logits(root, config, y), {tokens.dim(0), config.vocab_size});
}

}  // namespace t5x::models
