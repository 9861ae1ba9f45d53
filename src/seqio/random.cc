// Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11). What TensorFlow makes
// of its words: stateless_random_ops.cc, random_dataset_op.cc, shuffle_dataset_op.cc, multinomial_op.cc
// there.
#include "seqio/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

namespace t5x::seqio {
namespace {

constexpr uint64_t kDefaultGraphSeed = 87654321;
constexpr int64_t kMaxInt32 = 2147483647;

uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// The seed of a stateless op is scrambled by one Philox block.
Philox stateless_generator(Seed seed) {
  auto s0 = static_cast<uint64_t>(seed[0]), s1 = static_cast<uint64_t>(seed[1]);
  Philox::Block mix = Philox({0x3ec8f720, 0x02461e29}, {low(s0), high(s0), low(s1), high(s1)}).block(0);
  return Philox({mix[0], mix[1]}, {0, 0, mix[2], mix[3]});
}

uint64_t word_pair(WordStream& words) {
  uint64_t first = words.next();
  return first | static_cast<uint64_t>(words.next()) << 32;
}

}  // namespace

Philox Philox::from_seeds(uint64_t lo, uint64_t hi) {
  return Philox({low(lo), high(lo)}, {0, 0, low(hi), high(hi)});
}

Philox::Block Philox::block(uint64_t n) const {
  auto pair = [](uint32_t lo, uint32_t hi) { return static_cast<uint64_t>(hi) << 32 | lo; };
  uint64_t lo = pair(counter_[0], counter_[1]) + n;
  uint64_t hi = pair(counter_[2], counter_[3]) + (lo < n ? 1 : 0);
  Block c{low(lo), high(lo), low(hi), high(hi)};
  uint32_t k0 = key_[0], k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = 0xd2511f53ull * c[0], p1 = 0xcd9e8d57ull * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

void WordStream::load() {
  block_ = generator_.block(position_ / 4);
  loaded_ = true;
}

std::vector<float> stateless_uniform(size_t n, Seed seed, float low_bound, float high_bound) {
  WordStream words(stateless_generator(seed));
  std::vector<float> values(n);
  // The range is applied with two roundings, never fused.
  volatile float range = high_bound - low_bound;
  for (float& value : values) {
    value = std::bit_cast<float>(127u << 23 | (words.next() & 0x7fffff)) - 1.0f;
    if (low_bound != 0 || high_bound != 1) {
      volatile float scaled = value * range;
      value = scaled + low_bound;
    }
  }
  return values;
}

std::vector<int32_t> stateless_uniform_int32(size_t n, Seed seed, int32_t low_bound, int32_t high_bound) {
  WordStream words(stateless_generator(seed));
  auto from = static_cast<uint32_t>(low_bound);
  uint32_t range = static_cast<uint32_t>(high_bound) - from;
  std::vector<int32_t> values(n);
  for (int32_t& value : values) value = static_cast<int32_t>(from + (range == 0 ? 0 : words.next() % range));
  return values;
}

std::vector<int64_t> stateless_uniform_int64(size_t n, Seed seed, int64_t low_bound, int64_t high_bound) {
  WordStream words(stateless_generator(seed));
  auto from = static_cast<uint64_t>(low_bound);
  uint64_t range = static_cast<uint64_t>(high_bound) - from;
  std::vector<int64_t> values(n);
  for (int64_t& value : values)
    value = static_cast<int64_t>(from + (range == 0 ? 0 : word_pair(words) % range));
  return values;
}

std::vector<int64_t> stateless_full_int64(size_t n, Seed seed) {
  WordStream words(stateless_generator(seed));
  std::vector<int64_t> values(n);
  for (int64_t& value : values) value = static_cast<int64_t>(word_pair(words));
  return values;
}

std::vector<Seed> stateless_split(Seed seed, size_t n) {
  std::vector<int64_t> values = stateless_full_int64(2 * n, seed);
  std::vector<Seed> seeds(n);
  for (size_t i = 0; i < n; ++i) seeds[i] = {values[2 * i], values[2 * i + 1]};
  return seeds;
}

std::vector<size_t> stateless_shuffle_order(size_t n, Seed seed) {
  std::vector<float> keys = stateless_uniform(n, seed);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

Philox dataset_generator(int64_t seed) {
  // Python's remainder: never negative.
  int64_t op_seed = (seed % kMaxInt32 + kMaxInt32) % kMaxInt32;
  return Philox::from_seeds(kDefaultGraphSeed, static_cast<uint64_t>(op_seed));
}

SeedStreams::SeedStreams(int64_t first_seed, size_t num_seeds) {
  for (size_t i = 0; i < 2 * num_seeds; ++i)
    generators_.push_back(dataset_generator(first_seed + static_cast<int64_t>(i)));
}

Seed SeedStreams::get(uint64_t example, size_t k) const {
  return {generators_[2 * k].block(example / 4)[example % 4],
          generators_[2 * k + 1].block(example / 4)[example % 4]};
}

SeedManager::SeedManager(std::optional<int64_t> seed) : next_(seed ? *seed : random_seed()) {}

SeedStreams SeedManager::streams(size_t num_seeds) {
  SeedStreams streams(next_, num_seeds);
  next_ += static_cast<int64_t>(2 * num_seeds);
  return streams;
}

Multinomial::Multinomial(std::span<const double> weights) {
  std::vector<float> logits;
  for (double weight : weights) logits.push_back(std::log(static_cast<float>(weight)));
  float largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (float logit : logits)
    cumulative_.push_back(total += std::exp(static_cast<double>(logit) - static_cast<double>(largest)));
}

size_t Multinomial::pick(Seed seed) const {
  WordStream words(stateless_generator(seed));
  uint64_t upper = words.next() & 0xfffff;
  double uniform = std::bit_cast<double>(uint64_t{1023} << 52 | upper << 32 | words.next()) - 1.0;
  auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), uniform * cumulative_.back());
  // Rounding may leave the product at the total itself.
  return std::min(static_cast<size_t>(found - cumulative_.begin()), cumulative_.size() - 1);
}

int64_t random_seed() {
  std::random_device device;
  return static_cast<int64_t>(device() & 0x7fffffff);
}

}  // namespace t5x::seqio
