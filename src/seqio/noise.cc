// Noise masks and what becomes of noisy tokens: the pure functions of t5.data.preprocessors. Counts are
// rounded in float32, half to even, as there.
#include <algorithm>
#include <cmath>

#include "seqio/token_preprocessors.h"

namespace t5x::seqio {
namespace {

int64_t round_to_int(float value) { return static_cast<int64_t>(std::nearbyint(value)); }

// How num_items fall into num_segments non-empty segments, at random.
std::vector<int64_t> random_segmentation(int64_t num_items, int64_t num_segments, Seed seed) {
  std::vector<int64_t> lengths(static_cast<size_t>(num_segments), 0);
  if (num_items <= 0) return lengths;
  std::vector<size_t> order = stateless_shuffle_order(static_cast<size_t>(num_items - 1), seed);
  size_t segment = 0;
  lengths[0] = 1;
  for (size_t from : order) {
    if (static_cast<int64_t>(from) < num_segments - 1) ++segment;
    ++lengths[segment];
  }
  return lengths;
}

// Seeds of the roll, from those of the two segmentations; int64 wraps around.
Seed roll_seed(std::span<const Seed> seeds) {
  auto sum = [](int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); };
  return {sum(seeds[0][0], static_cast<uint64_t>(seeds[1][1])),
          sum(seeds[0][1], 0 - static_cast<uint64_t>(seeds[1][0]))};
}

std::vector<int32_t> replace_spans(std::span<const int32_t> tokens, const std::vector<bool>& mask, bool noise,
                                   int64_t vocab_size) {
  std::vector<int32_t> out;
  out.reserve(tokens.size());
  auto sentinel = static_cast<int32_t>(vocab_size);
  bool inside = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (mask[i] != noise)
      out.push_back(tokens[i]);
    else if (!inside)
      out.push_back(--sentinel);
    inside = mask[i] == noise;
  }
  return out;
}

std::vector<int32_t> keep_where(std::span<const int32_t> tokens, const std::vector<bool>& mask, bool value) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (mask[i] == value) out.push_back(tokens[i]);
  return out;
}

}  // namespace

std::vector<bool> random_spans_noise_mask(int64_t length, std::span<const Seed> seeds,
                                          RandomSpansOptions options) {
  auto density = static_cast<float>(options.noise_density);
  if (density == 0 || length == 0) return std::vector<bool>(static_cast<size_t>(length), false);
  int64_t padded = std::max<int64_t>(length, 2);
  int64_t noise = round_to_int(static_cast<float>(padded) * density);
  noise = std::min(std::max<int64_t>(noise, 1), padded - 1);
  int64_t spans =
      round_to_int(static_cast<float>(noise) / static_cast<float>(options.mean_noise_span_length));
  spans = std::max<int64_t>(spans, 1);
  std::vector<int64_t> noise_lengths = random_segmentation(noise, spans, seeds[0]);
  std::vector<int64_t> clean_lengths = random_segmentation(padded - noise, spans, seeds[1]);
  std::vector<bool> mask;
  mask.reserve(static_cast<size_t>(padded));
  for (size_t i = 0; i < noise_lengths.size(); ++i) {
    mask.insert(mask.end(), static_cast<size_t>(clean_lengths[i]), false);
    mask.insert(mask.end(), static_cast<size_t>(noise_lengths[i]), true);
  }
  mask.resize(static_cast<size_t>(length));
  if (options.random_roll) {
    int32_t by = stateless_uniform_int32(1, roll_seed(seeds), 0, static_cast<int32_t>(padded))[0];
    std::rotate(mask.rbegin(), mask.rbegin() + by % length, mask.rend());
  }
  return mask;
}

std::vector<bool> iid_noise_mask(int64_t length, std::span<const Seed> seeds, double noise_density) {
  std::vector<bool> mask;
  for (float x : stateless_uniform(static_cast<size_t>(length), seeds[0]))
    mask.push_back(x < static_cast<float>(noise_density));
  return mask;
}

std::vector<bool> regular_noise_mask(int64_t length, std::span<const Seed> seeds, double noise_density,
                                     int32_t min_span_length, int32_t max_span_length) {
  int32_t span = stateless_uniform_int32(1, seeds[0], min_span_length, max_span_length + 1)[0];
  int64_t period = round_to_int(static_cast<float>(span) / static_cast<float>(noise_density));
  int32_t offset = stateless_uniform_int32(1, seeds[1], 0, static_cast<int32_t>(period))[0];
  std::vector<bool> mask(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) mask[static_cast<size_t>(i)] = (i + offset) % period < span;
  return mask;
}

std::vector<bool> random_prefix_noise_mask(int64_t length, std::span<const Seed> seeds,
                                           double noise_density) {
  int64_t most = length - 1;
  int64_t least = round_to_int(static_cast<float>(1 - 2 * noise_density) * static_cast<float>(most));
  least = std::min(most, std::max<int64_t>(1, least));
  int32_t noise =
      stateless_uniform_int32(1, seeds[0], static_cast<int32_t>(least), static_cast<int32_t>(most + 1))[0];
  std::vector<bool> mask(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) mask[static_cast<size_t>(i)] = i < noise;
  return mask;
}

std::vector<int32_t> noise_span_to_unique_sentinel(std::span<const int32_t> tokens,
                                                   const std::vector<bool>& mask, int64_t vocab_size) {
  return replace_spans(tokens, mask, true, vocab_size);
}

std::vector<int32_t> nonnoise_span_to_unique_sentinel(std::span<const int32_t> tokens,
                                                      const std::vector<bool>& mask, int64_t vocab_size) {
  return replace_spans(tokens, mask, false, vocab_size);
}

std::vector<int32_t> drop_noise_tokens(std::span<const int32_t> tokens, const std::vector<bool>& mask) {
  return keep_where(tokens, mask, false);
}

std::vector<int32_t> drop_nonnoise_tokens(std::span<const int32_t> tokens, const std::vector<bool>& mask) {
  return keep_where(tokens, mask, true);
}

std::pair<int64_t, int64_t> random_spans_helper(int64_t inputs_length, double noise_density,
                                                double mean_noise_span_length, int64_t extra_tokens_inputs,
                                                int64_t extra_tokens_targets) {
  struct Lengths {
    int64_t inputs, targets;
  };
  auto lengths_of = [&](int64_t tokens) {
    auto noise = static_cast<int64_t>(std::nearbyint(static_cast<double>(tokens) * noise_density));
    auto spans = static_cast<int64_t>(std::nearbyint(static_cast<double>(noise) / mean_noise_span_length));
    return Lengths{tokens - noise + spans * extra_tokens_inputs + 1,
                   noise + spans * extra_tokens_targets + 1};
  };
  int64_t tokens = inputs_length - 1;
  while (lengths_of(tokens + 1).inputs <= inputs_length) ++tokens;
  Lengths lengths = lengths_of(tokens);
  // At density 0.5 the two lengths are made equal.
  if (noise_density == 0.5 && lengths.targets > lengths.inputs) return {tokens - 1, lengths.targets - 1};
  return {tokens, lengths.targets};
}

}  // namespace t5x::seqio
