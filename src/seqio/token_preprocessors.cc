#include "seqio/token_preprocessors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace t5x::seqio {
namespace {

constexpr int64_t kChunkLength = 65536;  // of a document, before it is merged with others

Dataset drop_empty(const Dataset& dataset, const std::string& key) {
  return dataset.filter([key](const Example& example) { return example.array(key).size() != 0; },
                        "drop empty " + key);
}

const Vocabulary& vocabulary_of(const PreprocessorArgs& args, const std::string& name) {
  auto found = args.output_features.find(name);
  if (found == args.output_features.end())
    throw_error<ConfigError>("a preprocessor needs output feature '{}', which the task does not have", name);
  return *found->second.vocabulary;
}

int64_t ceil_div(int64_t n, int64_t length) {
  return static_cast<int64_t>(std::ceil(static_cast<float>(n) / static_cast<float>(length)));
}

void check_same_length(const Example& example, const std::string& key, int64_t length) {
  if (example.array(key).shape().dim(0) != length)
    throw_error<DataError>("feature '{}' is {}, but should be as long as the feature that is cut ({})", key,
                           example.array(key).describe(), length);
}

}  // namespace

Preprocessor select_random_chunk(SelectRandomChunkOptions options) {
  auto apply = [options](const Dataset& dataset, const PreprocessorArgs& args) {
    const std::string& key = options.feature_key;
    int64_t max_length = options.max_length ? *options.max_length : args.length_before_eos(key);
    if (max_length < 1)
      throw_error<ConfigError>("select_random_chunk: length {} of '{}' leaves no room", max_length, key);
    SeedStreams streams = args.seeds->streams(1);
    auto fn = [options, max_length, streams](Example& example, uint64_t index) {
      std::vector<Seed> seeds = stateless_split(streams.get(index));
      const Array& tokens = example.array(options.feature_key);
      auto n = static_cast<int32_t>(tokens.shape()[0]);
      auto length = static_cast<int32_t>(max_length);
      if (options.min_length)
        length = stateless_uniform_int32(1, seeds[0], static_cast<int32_t>(*options.min_length), length)[0];
      int64_t start =
          options.uniform_random_start
              ? stateless_uniform_int32(1, seeds[1], 1 - length, n)[0]
              : int64_t{length} *
                    stateless_uniform_int32(1, seeds[1], 0, static_cast<int32_t>(ceil_div(n, length)))[0];
      int64_t end = std::min<int64_t>(start + length, n);
      start = std::max<int64_t>(start, 0);
      Example chunk{{options.feature_key, slice(tokens, start, end)}};
      for (const std::string& other : options.additional_feature_keys) {
        check_same_length(example, other, n);
        chunk.set(other, slice(example.array(other), start, end));
      }
      for (const std::string& other : options.passthrough_feature_keys)
        chunk.set(other, std::as_const(example).at(other));
      example = std::move(chunk);
    };
    return drop_empty(dataset, key).map(fn, {.name = "select_random_chunk"});
  };
  return Preprocessor("select_random_chunk", apply, !options.max_length);
}

Preprocessor reduce_concat_tokens(std::string feature_key, size_t batch_size) {
  auto fn = [feature_key](std::span<Example> in, uint64_t, std::vector<Example>& out) {
    size_t total = 0;
    for (const Example& example : in)
      for (int32_t id : example.ints(feature_key)) total += id != 0;
    Array joined = Array::uninitialized(DType::kInt32, Shape{static_cast<int64_t>(total)});
    auto to = joined.values<int32_t>().begin();
    for (const Example& example : in) {
      std::span<const int32_t> ids = example.ints(feature_key);
      to = std::copy_if(ids.begin(), ids.end(), to, [](int32_t id) { return id != 0; });
    }
    out.push_back({{feature_key, std::move(joined)}});
  };
  return Preprocessor("reduce_concat_tokens", [=](const Dataset& dataset, const PreprocessorArgs&) {
    return dataset.flat_map(fn, batch_size, false, "reduce_concat_tokens");
  });
}

Preprocessor split_tokens(SplitTokensOptions options) {
  if (!options.max_tokens_per_segment || *options.max_tokens_per_segment < 1)
    throw_error<ConfigError>("split_tokens: max_tokens_per_segment must be given and at least 1");
  auto apply = [options](const Dataset& dataset, const PreprocessorArgs& args) {
    SeedStreams streams = args.seeds->streams(1);
    auto fn = [options, streams](std::span<Example> in, uint64_t index, std::vector<Example>& out) {
      const Example& example = in[0];
      int64_t n = example.array(options.feature_key).shape()[0], length = *options.max_tokens_per_segment;
      if (options.min_tokens_per_segment) {
        // Uniform on a log scale, in float32.
        auto low = static_cast<float>(std::log(static_cast<double>(*options.min_tokens_per_segment)));
        auto high = static_cast<float>(std::log(static_cast<double>(length)));
        length = static_cast<int64_t>(std::exp(stateless_uniform(1, streams.get(index), low, high)[0]));
      }
      for (int64_t at = 0; at < n; at += length) {
        Example segment{{options.feature_key, slice(example.array(options.feature_key), at, at + length)}};
        for (const std::string& other : options.additional_feature_keys) {
          check_same_length(example, other, n);
          segment.set(other, slice(example.array(other), at, at + length));
        }
        for (const std::string& other : options.passthrough_feature_keys)
          segment.set(other, example.at(other));
        out.push_back(std::move(segment));
      }
    };
    return drop_empty(dataset, options.feature_key).flat_map(fn, 1, false, "split_tokens");
  };
  return Preprocessor("split_tokens", apply);
}

namespace {

Preprocessor split_to_length_of(std::string name, std::string feature, std::optional<int64_t> min_tokens) {
  auto apply = [=](const Dataset& dataset, const PreprocessorArgs& args) {
    return split_tokens({.min_tokens_per_segment = min_tokens,
                         .max_tokens_per_segment = args.length_before_eos(feature)})(dataset, args);
  };
  return Preprocessor(std::move(name), apply, true);
}

}  // namespace

Preprocessor split_tokens_to_inputs_length() {
  return split_to_length_of("split_tokens_to_inputs_length", "inputs", std::nullopt);
}
Preprocessor split_tokens_to_targets_length() {
  return split_to_length_of("split_tokens_to_targets_length", "targets", std::nullopt);
}
Preprocessor split_tokens_to_random_length() {
  return split_to_length_of("split_tokens_to_random_length", "inputs", 8);
}

Preprocessor concatenate_and_split_to_fixed_length(std::string feature_key) {
  auto apply = [feature_key](const Dataset& dataset, const PreprocessorArgs& args) {
    int64_t length = args.length_before_eos(feature_key);
    auto tokens = [feature_key](std::span<Example> in, uint64_t, std::vector<Example>& out) {
      for (int32_t id : in[0].ints(feature_key)) out.push_back({{feature_key, Array::scalar(id)}});
    };
    auto join = [feature_key](std::span<Example> in, uint64_t, std::vector<Example>& out) {
      Array joined = Array::uninitialized(DType::kInt32, Shape{static_cast<int64_t>(in.size())});
      for (size_t i = 0; i < in.size(); ++i)
        joined.values<int32_t>()[i] = in[i].array(feature_key).item<int32_t>();
      out.push_back({{feature_key, std::move(joined)}});
    };
    return dataset.flat_map(tokens).flat_map(join, static_cast<size_t>(length));
  };
  return Preprocessor("concatenate_and_split_to_fixed_length", apply, true);
}

Preprocessor denoise(DenoiseOptions options) {
  if (!options.noise_mask)
    options.noise_mask = [](int64_t n, std::span<const Seed> seeds) {
      return random_spans_noise_mask(n, seeds);
    };
  if (!options.inputs_fn)
    options.inputs_fn = [](auto tokens, const auto& mask, int64_t size, auto) {
      return noise_span_to_unique_sentinel(tokens, mask, size);
    };
  if (!options.targets_fn)
    options.targets_fn = [](auto tokens, const auto& mask, int64_t size, auto) {
      return nonnoise_span_to_unique_sentinel(tokens, mask, size);
    };
  auto apply = [options](const Dataset& dataset, const PreprocessorArgs& args) {
    const Vocabulary& vocabulary = vocabulary_of(args, "targets");
    if (args.output_features.contains("inputs") && !(vocabulary_of(args, "inputs") == vocabulary))
      throw_error<ConfigError>(
          "denoise: 'inputs' and 'targets' must have the same vocabulary, but have {} and {}",
          vocabulary_of(args, "inputs").describe(), vocabulary.describe());
    int64_t size = vocabulary.vocab_size();
    SeedStreams streams = args.seeds->streams(1);
    auto fn = [options, size, streams](Example& example, uint64_t index) {
      std::vector<Seed> split = stateless_split(streams.get(index), 6);
      std::span<const Seed> seeds(split);
      std::span<const int32_t> tokens = example.ints("targets");
      std::vector<bool> mask = options.noise_mask(static_cast<int64_t>(tokens.size()), seeds.subspan(0, 2));
      Example noisy{{"inputs", ints(options.inputs_fn(tokens, mask, size, seeds.subspan(2, 2)))}};
      if (options.keep_targets)
        noisy.set("targets", example.array("targets"));
      else
        noisy.set("targets", ints(options.targets_fn(tokens, mask, size, seeds.subspan(4, 2))));
      for (const std::string& key : options.passthrough_feature_keys)
        noisy.set(key, std::as_const(example).at(key));
      example = std::move(noisy);
    };
    return dataset.map(fn, {.name = "denoise", .num_threads = args.num_threads});
  };
  return Preprocessor("denoise", apply);
}

Preprocessor span_corruption(SpanCorruptionOptions options) {
  auto apply = [options](const Dataset& dataset, const PreprocessorArgs& args) {
    const SequenceLength& lengths = args.sequence_length();
    for (const char* name : {"inputs", "targets"})
      if (!lengths.contains(name))
        throw_error<ConfigError>("span_corruption needs the length of feature '{}'", name);
    int64_t inputs = lengths.at("inputs") - options.reserved_for_packing.value_or(0);
    auto [tokens, targets] =
        random_spans_helper(inputs, options.noise_density, options.mean_noise_span_length);
    if (lengths.at("targets") < targets)
      throw_error<ConfigError>(
          "span_corruption: inputs of length {} need targets of length {} or more, but {} were given; "
          "lengthen "
          "'targets', shorten 'inputs' or lower the noise density ({})",
          inputs, targets, lengths.at("targets"), options.noise_density);
    if (options.merge_examples_to_reduce_padding && !options.passthrough_feature_keys.empty())
      throw_error<ConfigError>("span_corruption: features cannot pass through when examples are merged");
    RandomSpansOptions spans{.noise_density = options.noise_density,
                             .mean_noise_span_length = options.mean_noise_span_length};
    Dataset result =
        select_random_chunk({.max_length = kChunkLength,
                             .passthrough_feature_keys = options.passthrough_feature_keys})(dataset, args);
    if (options.merge_examples_to_reduce_padding) result = reduce_concat_tokens()(result, args);
    result = split_tokens({.max_tokens_per_segment = tokens,
                           .passthrough_feature_keys = options.passthrough_feature_keys})(result, args);
    auto mask = [spans](int64_t n, std::span<const Seed> seeds) {
      return random_spans_noise_mask(n, seeds, spans);
    };
    return denoise({.noise_mask = mask, .passthrough_feature_keys = options.passthrough_feature_keys})(result,
                                                                                                       args);
  };
  return Preprocessor("span_corruption", apply, true);
}

Preprocessor iid_denoising() {
  auto apply = [](const Dataset& dataset, const PreprocessorArgs& args) {
    Dataset result = select_random_chunk({.max_length = kChunkLength})(dataset, args);
    result = split_tokens_to_inputs_length()(reduce_concat_tokens()(result, args), args);
    auto mask = [](int64_t n, std::span<const Seed> seeds) { return iid_noise_mask(n, seeds, 0.15); };
    return denoise({.noise_mask = mask})(result, args);
  };
  return Preprocessor("iid_denoising", apply, true);
}

Preprocessor prefix_lm() {
  auto apply = [](const Dataset& dataset, const PreprocessorArgs& args) {
    Dataset result = select_random_chunk({.max_length = kChunkLength})(dataset, args);
    result = split_tokens_to_inputs_length()(result, args);
    DenoiseOptions options;
    options.noise_mask = [](int64_t n, std::span<const Seed> seeds) {
      return random_prefix_noise_mask(n, seeds, 0.5);
    };
    options.inputs_fn = [](auto tokens, const auto& mask, int64_t, auto) {
      return drop_nonnoise_tokens(tokens, mask);
    };
    options.targets_fn = [](auto tokens, const auto& mask, int64_t, auto) {
      return drop_noise_tokens(tokens, mask);
    };
    return denoise(options)(result, args);
  };
  return Preprocessor("prefix_lm", apply, true);
}

Preprocessor full_lm() {
  auto apply = [](const Dataset& dataset, const PreprocessorArgs& args) {
    auto length = args.sequence_length().find("targets");
    if (length == args.sequence_length().end())
      throw_error<ConfigError>("full_lm needs the length of feature 'targets'");
    Dataset result = append_eos()(select_random_chunk({.max_length = kChunkLength})(dataset, args), args);
    // Not less one: end-of-sequence is in already.
    return split_tokens({.max_tokens_per_segment = length->second})(reduce_concat_tokens()(result, args),
                                                                    args);
  };
  return Preprocessor("full_lm", apply, true);
}

}  // namespace t5x::seqio
