#include "decode/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "decode/testing.h"
#include "graph/trace.h"
#include "runtime/run.h"

namespace t5x::decode {
namespace {

constexpr double kNegative = -1.0e7;
constexpr int32_t kEos = 1;

struct Hypothesis {
  std::vector<int32_t> tokens;  // start token first
  double value = kNegative;
  bool real = false;  // a finished decode, not a filler
};

struct HostResult {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<double> scores;
};

double penalty(double length, double alpha) { return std::pow((5.0 + length) / 6.0, alpha); }

void best_first(std::vector<Hypothesis>& list, size_t keep) {
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
  if (list.size() > keep) list.resize(keep);
}

// The search for one example with lists of hypotheses, best first, over the steps that the whole batch takes.
struct HostBeams {
  const ToyDecoder& decoder;
  std::vector<int32_t> prompt;  // start token first; 0 where free
  size_t k, length;
  double alpha;
  std::vector<Hypothesis> live, finished;

  void begin() {
    live.assign(k, {{0}, kNegative, false});
    live[0].value = 0;
    finished.assign(k, {std::vector<int32_t>(1, 0), kNegative, false});
  }
  bool settled() const {
    const double best_live = live.front().value / penalty(static_cast<double>(length + 1), alpha);
    return std::all_of(finished.begin(), finished.end(),
                       [&](const Hypothesis& h) { return h.real && finished.back().value > best_live; });
  }
  void step(size_t position) {
    // Candidates in the order of the flattened (beam, token), where beams are kept worst first.
    std::vector<Hypothesis> candidates;
    for (auto beam = live.rbegin(); beam != live.rend(); ++beam) {
      const std::vector<double> log_probs = host_log_softmax(decoder.logits(beam->tokens));
      for (int32_t t = 0; t < decoder.vocab; ++t) {
        Hypothesis next = *beam;
        next.tokens.push_back(t);
        next.value += log_probs[static_cast<size_t>(t)];
        candidates.push_back(next);
      }
    }
    best_first(candidates, 2 * k);
    const int32_t given = prompt[std::min(position + 1, prompt.size() - 1)];
    if (given != 0) {
      for (size_t i = 0; i < candidates.size(); ++i) {
        candidates[i].tokens.back() = given;
        candidates[i].value = i == 0 ? 0.0 : kNegative;
      }
    }
    std::vector<Hypothesis> next_live = candidates, ended = finished;
    std::reverse(ended.begin(), ended.end());
    for (Hypothesis& h : next_live) h.value += h.tokens.back() == kEos ? kNegative : 0.0;
    for (Hypothesis h : candidates) {
      h.real = h.tokens.back() == kEos;
      h.value = h.value / penalty(static_cast<double>(position + 1), alpha) + (h.real ? 0.0 : kNegative);
      ended.push_back(h);
    }
    best_first(next_live, k);
    best_first(ended, k);
    live = next_live;
    finished = ended;
  }
  HostResult result() const {
    const bool any = std::any_of(finished.begin(), finished.end(), [](const auto& h) { return h.real; });
    std::vector<Hypothesis> chosen = any ? finished : live;
    std::reverse(chosen.begin(), chosen.end());
    HostResult r;
    for (Hypothesis& h : chosen) {
      h.tokens.resize(length + 1, 0);
      r.sequences.emplace_back(h.tokens.begin() + 1, h.tokens.end());
      r.scores.push_back(h.value);
    }
    return r;
  }
};

std::vector<HostResult> host_search(const ToyDecoder& decoder,
                                    const std::vector<std::vector<int32_t>>& inputs, size_t k, double alpha) {
  std::vector<HostBeams> all;
  const size_t length = inputs[0].size();
  for (const auto& prompt : inputs) {
    all.push_back({decoder, prompt, k, length, alpha, {}, {}});
    all.back().begin();
  }
  for (size_t i = 0; i < length; ++i) {
    if (std::all_of(all.begin(), all.end(), [](const auto& s) { return s.settled(); })) break;
    for (HostBeams& s : all) s.step(i);
  }
  std::vector<HostResult> results;
  for (const HostBeams& s : all) results.push_back(s.result());
  return results;
}

std::vector<Array> search(const ToyDecoder& decoder, const std::vector<std::vector<int32_t>>& inputs,
                          const BeamSearchOptions& options) {
  std::vector<int32_t> flat;
  for (const auto& row : inputs) flat.insert(flat.end(), row.begin(), row.end());
  const auto batch = static_cast<int64_t>(inputs.size()), length = static_cast<int64_t>(inputs[0].size());
  auto graph = trace({{DType::kInt32, {batch, length}}}, [&](const std::vector<Tensor>& args) {
    const Decoded d = beam_search(args[0], decoder.empty_cache(batch), decoder.traced(), options);
    return std::vector<Tensor>{d.sequences, d.scores};
  });
  return run(*graph, {Array::from<int32_t>(flat, {batch, length})});
}

using Inputs = std::vector<std::vector<int32_t>>;

struct Case {
  std::string name;
  uint32_t seed;
  int64_t beams;
  double alpha;
  float eos_bonus;
  Inputs inputs = Inputs(3, std::vector<int32_t>(9, 0));
};

class BeamSearch : public testing::TestWithParam<Case> {};

// Tokens equal; scores within float32's rounding of about ten sums of logarithms.
TEST_P(BeamSearch, EqualsTheSearchOnTheHost) {
  const Case& c = GetParam();
  const ToyDecoder decoder(7, c.seed, c.eos_bonus);
  const auto k = static_cast<size_t>(c.beams);
  const auto got = search(decoder, c.inputs, {.eos_id = kEos, .num_decodes = c.beams, .alpha = c.alpha});
  const auto want = host_search(decoder, c.inputs, k, c.alpha);
  const auto tokens = got[0].values<int32_t>();
  const auto scores = got[1].values<float>();
  const size_t length = c.inputs[0].size();
  ASSERT_EQ(tokens.size(), want.size() * k * length);
  for (size_t b = 0; b < want.size(); ++b) {
    for (size_t j = 0; j < k; ++j) {
      const auto row = tokens.subspan((b * k + j) * length, length);
      EXPECT_EQ(std::vector<int32_t>(row.begin(), row.end()), want[b].sequences[j]) << b << " " << j;
      const double score = want[b].scores[j];
      EXPECT_NEAR(scores[b * k + j], score, 1e-5 * (1.0 + std::abs(score))) << b << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BeamSearch,
    testing::Values(Case{"OneBeam", 1, 1, 0.6, 0.0f}, Case{"FourBeams", 2, 4, 0.6, 0.0f},
                    Case{"NoPenalty", 3, 4, 0.0, 0.5f}, Case{"FullPenalty", 4, 4, 1.0, 0.5f},
                    Case{"StopsEarly", 5, 4, 0.6, 4.0f}, Case{"NeverEnds", 6, 3, 0.6, -50.0f},
                    Case{"Prompts", 7, 4, 0.6, 0.0f,
                         Inputs{{0, 5, 3, 0, 0, 0, 0}, {0, 2, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}}},
                    Case{"PromptToTheEnd", 8, 2, 0.6, 0.0f, Inputs{{0, 5, 3, 4}, {0, 2, 0, 0}}}),
    [](const auto& test) { return test.param.name; });

TEST(BeamSearchOptions, MaxDecodeLenShortensTheResult) {
  const auto got = search(ToyDecoder(7, 1, 0.0f), Inputs(2, std::vector<int32_t>(9, 0)),
                          {.num_decodes = 2, .max_decode_len = 4});
  EXPECT_EQ(got[0].shape(), (Shape{2, 2, 4}));
}

TEST(BeamSearchOptions, NoBeamsThrows) {
  EXPECT_THROW(search(ToyDecoder(7, 1, 0.0f), Inputs(1, {0, 0}), {.num_decodes = 0}), ConfigError);
}

TEST(BeamSearchOptions, StepThatLosesACacheEntryThrows) {
  EXPECT_THROW(
      trace({{DType::kInt32, {1, 3}}},
            [](const std::vector<Tensor>& args) {
              const ToyDecoder decoder(7, 1, 0.0f);
              auto step = [&](Tensor ids, const Tensors& cache, Tensor index) {
                auto [logits, next] = decoder.traced()(ids, cache, index);
                next.pop_back();
                return std::pair(logits, next);
              };
              return std::vector<Tensor>{beam_search(args[0], decoder.empty_cache(1), step, {}).scores};
            }),
      ShapeError);
}

}  // namespace
}  // namespace t5x::decode
