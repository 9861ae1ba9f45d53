#include "seqio/token_preprocessors.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "seqio/golden_test_util.h"

namespace t5x::seqio {
namespace {

std::string bits(const std::vector<bool>& mask) {
  std::string text;
  for (bool bit : mask) text += bit ? '1' : '0';
  return text;
}

TEST(RandomSpansHelper, LengthsAreT5s) {
  for (const Golden& golden : goldens("denoise.json"))
    for (const Json& row : golden.json.at("random_spans_helper")) {
      auto [tokens, targets] =
          random_spans_helper(row[0].get<int64_t>(), row[1].get<double>(), row[2].get<double>());
      EXPECT_EQ(tokens, row[3].get<int64_t>()) << row;
      EXPECT_EQ(targets, row[4].get<int64_t>()) << row;
    }
}

TEST(NoiseMasks, AreT5s) {
  for (const Golden& golden : goldens("denoise.json")) {
    for (const Json& c : golden.json.at("masks")) {
      auto n = c.at("length").get<int64_t>();
      auto seeds = c.at("seeds").get<std::vector<Seed>>();
      auto expect = [&](const std::string& key, const std::vector<bool>& mask) {
        EXPECT_EQ(Json(bits(mask)), c.value(key, Json(bits(mask)))) << key << " " << n;
      };
      expect("random_spans(.15,3)", random_spans_noise_mask(n, seeds));
      expect("random_spans(.5,3)", random_spans_noise_mask(n, seeds, {.noise_density = .5}));
      expect("random_spans(.15,8,roll)",
             random_spans_noise_mask(n, seeds, {.mean_noise_span_length = 8, .random_roll = true}));
      expect("iid(.15)", iid_noise_mask(n, seeds, .15));
      expect("regular(.25)", regular_noise_mask(n, seeds, .25));
      expect("random_prefix(.5)", random_prefix_noise_mask(n, seeds, .5));
      expect("random_prefix(.3)", random_prefix_noise_mask(n, seeds, .3));
    }
  }
}

TEST(NoiseFunctions, AreT5s) {
  for (const Golden& golden : goldens("denoise.json")) {
    for (const Json& c : golden.json.at("denoise_fns")) {
      auto tokens = c.at("tokens").get<std::vector<int32_t>>();
      auto size = c.at("vocab_size").get<int64_t>();
      std::vector<bool> mask;
      for (char bit : c.at("mask").get<std::string>()) mask.push_back(bit == '1');
      EXPECT_EQ(Json(noise_span_to_unique_sentinel(tokens, mask, size)),
                c.at("noise_span_to_unique_sentinel"));
      EXPECT_EQ(Json(nonnoise_span_to_unique_sentinel(tokens, mask, size)),
                c.at("nonnoise_span_to_unique_sentinel"));
      EXPECT_EQ(Json(drop_noise_tokens(tokens, mask)), c.at("drop_noise_tokens"));
      EXPECT_EQ(Json(drop_nonnoise_tokens(tokens, mask)), c.at("drop_nonnoise_tokens"));
    }
  }
}

Features features_of(int64_t vocab_size) {
  auto vocabulary = std::make_shared<PassThroughVocabulary>(vocab_size, 1);
  return {{"inputs", {.vocabulary = vocabulary}}, {"targets", {.vocabulary = vocabulary}}};
}

Dataset apply(const std::vector<Preprocessor>& steps, Dataset dataset, const Features& features,
              const SequenceLength& lengths, int64_t seed, int num_threads = 0) {
  SeedManager seeds(seed);
  PreprocessorArgs args{
      .output_features = features, .lengths = &lengths, .seeds = &seeds, .num_threads = num_threads};
  for (const Preprocessor& step : steps) dataset = step(dataset, args);
  return dataset;
}

std::map<std::string, std::vector<Preprocessor>> golden_cases() {
  return {
      {"select_random_chunk(max_length=20)", {select_random_chunk({.max_length = 20})}},
      {"select_random_chunk(max_length=20,uniform_random_start)",
       {select_random_chunk({.max_length = 20, .uniform_random_start = true})}},
      {"select_random_chunk(sequence_length=SL)", {select_random_chunk()}},
      {"select_random_chunk(max_length=30,min_length=5,uniform_random_start)",
       {select_random_chunk({.max_length = 30, .uniform_random_start = true, .min_length = 5})}},
      {"split_tokens(min=4,max=32)",
       {split_tokens({.min_tokens_per_segment = 4, .max_tokens_per_segment = 32})}},
      {"split_tokens(max=16)", {split_tokens({.max_tokens_per_segment = 16})}},
      {"split_tokens_to_targets_length", {split_tokens_to_targets_length()}},
      {"split_tokens_to_random_length", {split_tokens_to_random_length()}},
      {"reduce_concat_tokens(bs=4)", {reduce_concat_tokens("targets", 4)}},
      {"concatenate_and_split_to_fixed_length", {concatenate_and_split_to_fixed_length()}},
      {"append_eos", {append_eos()}},
      {"append_eos_after_trim(SL)", {append_eos_after_trim()}},
      {"span_corruption", {span_corruption()}},
      {"span_corruption(merge=False)", {span_corruption({.merge_examples_to_reduce_padding = false})}},
      {"span_corruption(reserved_for_packing=12)", {span_corruption({.reserved_for_packing = 12})}},
      {"span_corruption(mean=8,density=.3,seqlen 64/64)",
       {span_corruption({.mean_noise_span_length = 8, .noise_density = .3})}},
      {"span_corruption+append_eos_after_trim", {span_corruption(), append_eos_after_trim()}},
      {"iid_denoising", {iid_denoising()}},
      {"prefix_lm", {prefix_lm()}},
      {"full_lm", {full_lm()}},
  };
}

TEST(TokenPreprocessors, ExamplesAreT5s) {
  auto cases = golden_cases();
  for (const Golden& golden : goldens("token_preproc.json")) {
    Features features = features_of(golden.json.at("vocab_size").get<int64_t>());
    std::vector<Example> docs;
    for (const Json& doc : golden.json.at("docs"))
      docs.push_back({{"targets", ints(doc.get<std::vector<int32_t>>())}});
    size_t tested = 0;
    for (const auto& [key, expected] : golden.json.at("cases").items()) {
      size_t bar = key.find("|seed=");
      std::string name = key.substr(0, bar);
      if (!cases.contains(name)) continue;
      ++tested;
      SequenceLength lengths = golden.json.at("sequence_length").get<SequenceLength>();
      if (name.find("64/64") != std::string::npos) lengths = {{"inputs", 64}, {"targets", 64}};
      int64_t seed = bar == std::string::npos ? 42 : std::stoll(key.substr(bar + 6));
      for (int threads : {0, 2})
        expect_examples(apply(cases.at(name), Dataset::in_memory(docs), features, lengths, seed, threads),
                        expected, golden.full, key);
    }
    EXPECT_GE(tested, cases.size() - 2);
  }
}

TEST(ReduceConcatTokens, DropsZeros) {
  Dataset docs = Dataset::in_memory(
      {{{"targets", ints({5, 0, 6})}}, {{"targets", ints({0})}}, {{"targets", ints({8})}}});
  expect_examples(apply({reduce_concat_tokens()}, docs, features_of(100), {}, 1),
                  Json::parse(R"([{"targets": [5, 6, 8]}])"), true, "zeros");
}

TEST(SpanCorruption, TooShortTargetsSayWhatIsNeeded) {
  try {
    apply({span_corruption()}, counting(0), features_of(100), {{"inputs", 512}, {"targets", 50}}, 1);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(),
                testing::HasSubstr("inputs of length 512 need targets of length 114 or more, but 50"));
  }
}

}  // namespace
}  // namespace t5x::seqio
