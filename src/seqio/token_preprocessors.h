// T5's token preprocessors: span corruption and its parts, prefix and full language modelling. They reproduce
// t5.data.preprocessors (t5 0.9.4) bit for bit from the same seeds. Features are rank 1 int32.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqio/preprocessor.h"

namespace t5x::seqio {

struct SelectRandomChunkOptions {
  std::optional<int64_t> max_length = std::nullopt;  // nothing: the feature's length, less one for eos
  std::string feature_key = "targets";
  std::vector<std::string> additional_feature_keys = {};   // cut at the same place
  std::vector<std::string> passthrough_feature_keys = {};  // kept whole; all others are dropped
  bool uniform_random_start = false;
  std::optional<int64_t> min_length = std::nullopt;
};
Preprocessor select_random_chunk(SelectRandomChunkOptions options = {});

// Concatenates `batch_size` examples; ids of 0 are dropped, as t5 does.
Preprocessor reduce_concat_tokens(std::string feature_key = "targets", size_t batch_size = 128);

struct SplitTokensOptions {
  std::optional<int64_t> min_tokens_per_segment = std::nullopt;
  std::optional<int64_t> max_tokens_per_segment = std::nullopt;  // must be given, see the variants below
  std::string feature_key = "targets";
  std::vector<std::string> additional_feature_keys = {};
  std::vector<std::string> passthrough_feature_keys = {};
};
Preprocessor split_tokens(SplitTokensOptions options);
Preprocessor split_tokens_to_inputs_length();
Preprocessor split_tokens_to_targets_length();
Preprocessor split_tokens_to_random_length();
Preprocessor concatenate_and_split_to_fixed_length(std::string feature_key = "targets");

// Which tokens are noise.
using NoiseMaskFn = std::function<std::vector<bool>(int64_t length, std::span<const Seed> seeds)>;
// What noisy or clean spans become.
using NoiseFn =
    std::function<std::vector<int32_t>(std::span<const int32_t> tokens, const std::vector<bool>& mask,
                                       int64_t vocab_size, std::span<const Seed> seeds)>;

struct RandomSpansOptions {
  double noise_density = 0.15;
  double mean_noise_span_length = 3.0;
  bool random_roll = false;
};
std::vector<bool> random_spans_noise_mask(int64_t length, std::span<const Seed> seeds,
                                          RandomSpansOptions options = {});
std::vector<bool> iid_noise_mask(int64_t length, std::span<const Seed> seeds, double noise_density);
std::vector<bool> regular_noise_mask(int64_t length, std::span<const Seed> seeds, double noise_density,
                                     int32_t min_span_length = 1, int32_t max_span_length = 5);
std::vector<bool> random_prefix_noise_mask(int64_t length, std::span<const Seed> seeds, double noise_density);

std::vector<int32_t> noise_span_to_unique_sentinel(std::span<const int32_t> tokens,
                                                   const std::vector<bool>& mask, int64_t vocab_size);
std::vector<int32_t> nonnoise_span_to_unique_sentinel(std::span<const int32_t> tokens,
                                                      const std::vector<bool>& mask, int64_t vocab_size);
std::vector<int32_t> drop_noise_tokens(std::span<const int32_t> tokens, const std::vector<bool>& mask);
std::vector<int32_t> drop_nonnoise_tokens(std::span<const int32_t> tokens, const std::vector<bool>& mask);

struct DenoiseOptions {
  NoiseMaskFn noise_mask = {};  // empty: random spans of density 0.15 and mean 3
  NoiseFn inputs_fn = {};       // empty: noise_span_to_unique_sentinel
  NoiseFn targets_fn = {};      // empty: nonnoise_span_to_unique_sentinel
  bool keep_targets = false;    // "targets" stay the whole text
  std::vector<std::string> passthrough_feature_keys = {};
};
// Feature "targets" to noisy "inputs" and the noise as "targets".
Preprocessor denoise(DenoiseOptions options = {});

// {tokens, targets length} such that a denoised text of `tokens` tokens just fits `inputs_length`.
std::pair<int64_t, int64_t> random_spans_helper(int64_t inputs_length, double noise_density,
                                                double mean_noise_span_length,
                                                int64_t extra_tokens_inputs = 1,
                                                int64_t extra_tokens_targets = 1);

struct SpanCorruptionOptions {
  double mean_noise_span_length = 3.0;
  double noise_density = 0.15;
  bool merge_examples_to_reduce_padding = true;
  std::optional<int64_t> reserved_for_packing = std::nullopt;
  std::vector<std::string> passthrough_feature_keys = {};
};
// T5's pre-training objective, after "targets" was tokenized.
Preprocessor span_corruption(SpanCorruptionOptions options = {});
Preprocessor iid_denoising();
Preprocessor prefix_lm();
Preprocessor full_lm();

}  // namespace t5x::seqio
