#include "decode/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "decode/testing.h"
#include "graph/trace.h"
#include "runtime/run.h"

namespace t5x::decode {
namespace {

using Inputs = std::vector<std::vector<int32_t>>;
constexpr int64_t kVocab = 7;

std::vector<Array> sample(const ToyDecoder& decoder, const Inputs& inputs, const SampleOptions& options,
                          std::vector<int32_t> initial_index = {}, std::vector<float> temperatures = {},
                          uint32_t seed = 42) {
  std::vector<int32_t> flat;
  for (const auto& row : inputs) flat.insert(flat.end(), row.begin(), row.end());
  const auto batch = static_cast<int64_t>(inputs.size()), length = static_cast<int64_t>(inputs[0].size());
  auto graph = trace({{DType::kInt32, {batch, length}}}, [&](const std::vector<Tensor>& args) {
    const uint32_t key[2] = {0, seed};
    Tensor index, temperature;
    if (!initial_index.empty()) index = constant(Array::from<int32_t>(initial_index, {batch}));
    if (!temperatures.empty()) temperature = constant(Array::from<float>(temperatures, {batch}));
    const Decoded d = temperature_sample(args[0], decoder.empty_cache(batch), decoder.traced(), options,
                                         constant(Array::from<uint32_t>(key, {2})), index, temperature);
    return std::vector<Tensor>{d.sequences, d.scores};
  });
  return run(*graph, {Array::from<int32_t>(flat, {batch, length})});
}

std::vector<int32_t> row(const Array& sequences, size_t index) {
  const auto length = static_cast<size_t>(sequences.shape().dim(-1));
  const auto values = sequences.values<int32_t>().subspan(index * length, length);
  return {values.begin(), values.end()};
}

int32_t argmax(const std::vector<double>& values) {
  return static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Greedy decoding of one example: tokens after the start, and the sum of their log probabilities.
std::pair<std::vector<int32_t>, double> host_greedy(const ToyDecoder& decoder,
                                                    const std::vector<int32_t>& input, size_t limit) {
  const auto eos_in = [](const std::vector<int32_t>& t) { return std::count(t.begin(), t.end(), 1); };
  std::vector<int32_t> prefix = {0}, output(input.size(), 0);
  double log_prob = 0;
  int64_t ends = 0;
  for (size_t i = 0; i < limit; ++i) {
    const auto log_probs = host_log_softmax(decoder.logits(prefix));
    const int32_t given = i + 1 < input.size() ? input[i + 1] : 0;
    const int32_t token = given != 0 ? given : argmax(log_probs);
    if (given == 0) log_prob += log_probs[static_cast<size_t>(token)];
    output[i] = token;
    prefix.push_back(token);
    ends += token == 1 ? 1 : 0;
    if (ends > eos_in(input)) break;
  }
  return {output, log_prob};
}

SampleOptions greedy_options() {
  SampleOptions options;
  options.temperature = 0;
  options.rescale_log_probs = false;
  return options;
}

void expect_greedy(const ToyDecoder& decoder, const Inputs& inputs, const std::vector<size_t>& limits,
                   const std::vector<Array>& got) {
  for (size_t b = 0; b < inputs.size(); ++b) {
    const auto [tokens, log_prob] = host_greedy(decoder, inputs[b], limits[b]);
    EXPECT_EQ(row(got[0], b), tokens) << b;
    EXPECT_NEAR(got[1].values<float>()[b], log_prob, 1e-5 * (1 + std::abs(log_prob))) << b;
  }
}

TEST(Greedy, FollowsTheMostProbableTokenAndPadsAfterTheEnd) {
  const Inputs inputs(2, std::vector<int32_t>(10, 0));
  for (uint32_t seed : {1u, 2u, 3u}) {
    const ToyDecoder decoder(kVocab, seed, 1.0f);
    expect_greedy(decoder, inputs, {10, 10}, sample(decoder, inputs, greedy_options()));
  }
}

TEST(Greedy, PromptTokensAreKeptAndNotScored) {
  const Inputs inputs = {{0, 5, 1, 3, 0, 0, 0}, {0, 2, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}};
  const ToyDecoder decoder(kVocab, 4, 0.0f);
  expect_greedy(decoder, inputs, {7, 7, 7}, sample(decoder, inputs, greedy_options()));
}

TEST(Greedy, MaxDecodeStepsCountsBeyondThePrompt) {
  const Inputs inputs = {{0, 5, 4, 3, 0, 0, 0, 0}, {0, 2, 0, 0, 0, 0, 0, 0}};
  const ToyDecoder decoder(kVocab, 5, -50.0f);
  SampleOptions options = greedy_options();
  options.max_decode_steps = 3;
  expect_greedy(decoder, inputs, {6, 4}, sample(decoder, inputs, options));
  options.max_decode_steps_hard_limit = 2;
  expect_greedy(decoder, inputs, {5, 3}, sample(decoder, inputs, options));
}

TEST(Greedy, RescaledScoresAreZero) {
  SampleOptions options = greedy_options();
  options.rescale_log_probs = true;
  const auto got = sample(ToyDecoder(kVocab, 6, 0.0f), Inputs(2, std::vector<int32_t>(5, 0)), options);
  EXPECT_EQ(got[1].values<float>()[0], 0.0f);
}

// With a cache that knows nothing of the prompt, decoding at an index equals decoding its token from empty.
TEST(Greedy, InitialIndexStartsInsideTheSequence) {
  const Inputs inputs = {{0, 5, 4, 0, 0, 0}, {0, 2, 0, 0, 0, 0}};
  const ToyDecoder decoder(kVocab, 7, -50.0f);
  const auto got = sample(decoder, inputs, greedy_options(), {2, 1});
  const std::vector<size_t> starts = {2, 1};
  for (size_t b = 0; b < 2; ++b) {
    std::vector<int32_t> prefix = {inputs[b][starts[b]]}, want(inputs[b].begin() + 1, inputs[b].end());
    want.push_back(0);
    for (size_t i = starts[b]; i < 6; ++i) {
      want[i] = argmax(decoder.logits(prefix));
      prefix.push_back(want[i]);
    }
    EXPECT_EQ(row(got[0], b), want) << b;
  }
}

TEST(Sample, TopOneEqualsGreedy) {
  const Inputs inputs(3, std::vector<int32_t>(8, 0));
  const ToyDecoder decoder(kVocab, 8, 0.0f);
  SampleOptions options;
  options.topk = 1;
  EXPECT_TRUE(sample(decoder, inputs, options)[0].identical(sample(decoder, inputs, greedy_options())[0]));
}

// Every step splits the key: the first draws, the second goes on. jax.random.categorical with that key.
TEST(Sample, DrawsAsCategoricalWithTheFirstHalfOfTheKey) {
  const Inputs inputs(3, std::vector<int32_t>(1, 0));
  const ToyDecoder decoder(kVocab, 9, 0.0f);
  SampleOptions options;
  options.topk = 0;
  options.temperature = 2.0;
  const auto got = sample(decoder, inputs, options);
  std::vector<float> logits;
  for (double x : decoder.logits({0})) logits.push_back(static_cast<float>(x / 2.0));
  const ops::Key key = ops::host_split({0, 42}, 2)[0];
  auto graph = trace({}, [&](const std::vector<Tensor>&) {
    Tensor row_logits = constant(Array::from<float>(logits, {1, kVocab}));
    return std::vector<Tensor>{ops::categorical(constant(Array::from<uint32_t>(key, {2})),
                                                ops::broadcast_to(row_logits, {3, kVocab}))};
  });
  const Array want = run(*graph, {})[0];
  for (size_t b = 0; b < 3; ++b) EXPECT_EQ(row(got[0], b)[0], want.values<int32_t>()[b]) << b;
}

// Scores of what was drawn, recomputed on the host from the tokens.
TEST(Sample, ScoresAreLogProbabilitiesOfTheDrawnTokens) {
  const Inputs inputs(4, std::vector<int32_t>(6, 0));
  const ToyDecoder decoder(kVocab, 10, 0.0f);
  for (bool rescale : {true, false}) {
    SampleOptions options;
    options.topk = 0;
    options.temperature = 2.0;
    options.num_decodes = 3;
    options.rescale_log_probs = rescale;
    const auto got = sample(decoder, inputs, options);
    ASSERT_EQ(got[0].shape(), (Shape{4, 3, 6}));
    for (size_t r = 0; r < 12; ++r) {
      std::vector<int32_t> prefix = {0};
      double want = 0;
      for (int32_t token : row(got[0], r)) {
        auto logits = decoder.logits(prefix);
        if (rescale) {
          for (double& x : logits) x /= 2.0;
        }
        want += host_log_softmax(logits)[static_cast<size_t>(token)];
        prefix.push_back(token);
        if (token == 1) break;
      }
      const auto scores = got[1].values<float>();
      EXPECT_NEAR(scores[r], want, 1e-5 * (1 + std::abs(want))) << r;
      if (r % 3 != 0) {
        EXPECT_LE(scores[r - 1], scores[r]) << "ascending within an example";
      }
    }
  }
}

TEST(Sample, TemperaturePerExample) {
  const Inputs inputs(2, std::vector<int32_t>(6, 0));
  const ToyDecoder decoder(kVocab, 11, 0.0f);
  SampleOptions options;
  options.topk = 0;
  options.rescale_log_probs = false;
  const auto got = sample(decoder, inputs, options, {}, {0.0f, 5.0f});
  EXPECT_EQ(row(got[0], 0), host_greedy(decoder, inputs[0], 6).first);
  EXPECT_NE(row(got[0], 1), row(got[0], 0));
}

std::vector<float> masked(const std::vector<float>& logits, const std::function<Tensor(Tensor)>& mask) {
  const auto n = static_cast<int64_t>(logits.size());
  auto graph = trace({{DType::kFloat32, {1, n}}},
                     [&](const std::vector<Tensor>& args) { return std::vector<Tensor>{mask(args[0])}; });
  const Array out = run(*graph, {Array::from<float>(logits, {1, n})})[0];
  return {out.values<float>().begin(), out.values<float>().end()};
}

TEST(TopK, TiesWithTheLastStay) {
  const float no = -1.0e7f;
  EXPECT_EQ(masked({3, 1, 2, 2, 0}, [](Tensor x) { return topk_mask(x, 2); }),
            (std::vector<float>{3, no, 2, 2, no}));
}

TEST(TopK, MoreThanTheVocabularyKeepsAll) {
  EXPECT_EQ(masked({3, 1}, [](Tensor x) { return topk_mask(x, 9); }), (std::vector<float>{3, 1}));
}

TEST(TopP, KeepsTheFewestThatReachTheProbability) {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.05f), std::log(0.15f)};
  const auto kept = [&](double p) {
    std::string pattern;
    for (float x : masked(logits, [&](Tensor t) { return topp_mask(t, p); }))
      pattern += x > -1e6f ? 'x' : '.';
    return pattern;
  };
  EXPECT_EQ(kept(0.4), ".x..");
  EXPECT_EQ(kept(0.6), "xx..");
  EXPECT_EQ(kept(0.9), "xx.x");
  EXPECT_EQ(kept(0.99), "xxxx");
  EXPECT_EQ(kept(2.0), "xxxx");
}

TEST(SampleOptions, TopKWithTopPThrows) {
  SampleOptions options;
  options.topp = 0.9;
  EXPECT_THROW(sample(ToyDecoder(kVocab, 1, 0.0f), Inputs(1, {0, 0}), options), ConfigError);
}

TEST(SampleOptions, MoreStepsThanTokensThrows) {
  SampleOptions options;
  options.max_decode_steps = 3;
  EXPECT_THROW(sample(ToyDecoder(kVocab, 1, 0.0f), Inputs(1, {0, 0}), options), ConfigError);
}

}  // namespace
}  // namespace t5x::decode
