// For tests: a small recurrent decoder, once as a traced step with a cache and once on the host.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "decode/cache.h"
#include "ops/ops.h"

namespace t5x::decode {

// logits = table[token] + state * mix, state' = state / 2 + features[token]. The state lies in the cache
// twice: with the batch first, and under a leading axis of two layers; a third entry counts the steps.
struct ToyDecoder {
  int64_t vocab, width = 3;
  std::vector<float> table, features, mix;

  ToyDecoder(int64_t v, uint32_t seed, float eos_bonus) : vocab(v) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, 1.5f);
    auto fill = [&](std::vector<float>& to, int64_t size) {
      to.resize(static_cast<size_t>(size));
      for (float& x : to) x = normal(generator);
    };
    fill(table, vocab * vocab);
    fill(features, vocab * width);
    fill(mix, width * vocab);
    for (int64_t t = 0; t < vocab; ++t) table[static_cast<size_t>(t * vocab + 1)] += eos_bonus;
  }

  Cache empty_cache(int64_t batch) const {
    return {.entries = {zeros({DType::kFloat32, {batch, width}}), zeros({DType::kFloat32, {2, batch, width}}),
                        zeros({DType::kInt32, {}})},
            .batch_axes = {0, 1, -1}};
  }

  TokensToLogits traced() const {
    return [*this](Tensor ids, const Tensors& cache, Tensor) {
      const auto matrix = [](const std::vector<float>& values, int64_t rows, int64_t columns) {
        return constant(Array::from<float>(values, {rows, columns}));
      };
      Tensor token = ops::squeeze(ids, 1);
      Tensor state = cache[0] * 0.5 + ops::take(matrix(features, vocab, width), token);
      Tensor stacked = cache[1] * 0.5 + ops::expand_dims(ops::take(matrix(features, vocab, width), token), 0);
      // Half of the state from each copy: logits are right only if both are gathered alike.
      Tensor second = ops::squeeze(ops::slice_in_dim(cache[1], 1, 2, 0), 0);
      Tensor seen = cache[0] * 0.5 + second * 0.5;
      Tensor logits =
          ops::take(matrix(table, vocab, vocab), token) + ops::matmul(seen, matrix(mix, width, vocab));
      return std::pair(logits, Tensors{state, stacked, cache[2] + 1.0});
    };
  }

  // Logits after the tokens of a prefix, the start token included.
  std::vector<double> logits(const std::vector<int32_t>& prefix) const {
    std::vector<double> state(static_cast<size_t>(width), 0.0);
    for (size_t i = 0; i + 1 < prefix.size(); ++i) {
      for (int64_t d = 0; d < width; ++d) {
        double& s = state[static_cast<size_t>(d)];
        s = s * 0.5 + features[static_cast<size_t>(prefix[i] * width + d)];
      }
    }
    std::vector<double> result;
    for (int64_t v = 0; v < vocab; ++v) {
      double x = table[static_cast<size_t>(prefix.back() * vocab + v)];
      for (int64_t d = 0; d < width; ++d)
        x += state[static_cast<size_t>(d)] * mix[static_cast<size_t>(d * vocab + v)];
      result.push_back(x);
    }
    return result;
  }
};

inline std::vector<double> host_log_softmax(const std::vector<double>& logits) {
  double sum = 0;
  for (double x : logits) sum += std::exp(x);
  std::vector<double> result;
  for (double x : logits) result.push_back(x - std::log(sum));
  return result;
}

}  // namespace t5x::decode
