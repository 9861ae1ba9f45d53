// TensorFlow's random numbers as tf.data and seqio use them, bit for bit: Philox4x32-10, the stateless ops
// with their scrambled seeds, Dataset.random streams, the seeds of shuffle and of map_over_dataset, and the
// pick of sample_from_datasets. Values were checked against TensorFlow 2.21 on the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace t5x::seqio {

using Seed = std::array<int64_t, 2>;  // the seed of a stateless op

// Philox4x32-10 with a 128 bit counter: the n-th block is a function of the key and n alone.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  Philox() = default;
  Philox(std::array<uint32_t, 2> key, Block counter) : key_(key), counter_(counter) {}
  // PhiloxRandom(seed, seed2): the key is `lo`, the upper half of the counter `hi`.
  static Philox from_seeds(uint64_t lo, uint64_t hi);
  Block block(uint64_t n) const;

 private:
  std::array<uint32_t, 2> key_{};
  Block counter_{};
};

// The uint32 words of a Philox generator one by one. Its state is the position.
class WordStream {
 public:
  WordStream() = default;
  explicit WordStream(Philox generator) : generator_(generator) {}
  uint32_t next() {
    if (position_ % 4 == 0 || !loaded_) load();
    return block_[position_++ % 4];
  }
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position, loaded_ = false; }

 private:
  void load();
  Philox generator_;
  Philox::Block block_{};
  uint64_t position_ = 0;
  bool loaded_ = false;
};

// Stateless ops: n values from a seed. Ranges are [low, high).
std::vector<float> stateless_uniform(size_t n, Seed seed, float low = 0, float high = 1);
std::vector<int32_t> stateless_uniform_int32(size_t n, Seed seed, int32_t low, int32_t high);
std::vector<int64_t> stateless_uniform_int64(size_t n, Seed seed, int64_t low, int64_t high);
std::vector<int64_t> stateless_full_int64(size_t n, Seed seed);
// tf.random.experimental.stateless_split of an int64 seed.
std::vector<Seed> stateless_split(Seed seed, size_t n = 2);
// seqio.stateless_shuffle: order[i] is the index of the element that comes i-th.
std::vector<size_t> stateless_shuffle_order(size_t n, Seed seed);

// The generator behind an op of tf.data with that op seed and no global seed set.
Philox dataset_generator(int64_t seed);
// tf.data.Dataset.random(seed).
inline WordStream dataset_random(int64_t seed) { return WordStream(dataset_generator(seed)); }

// The seeds one stochastic map takes: pair k of example i. Any example's seeds are had at once.
class SeedStreams {
 public:
  SeedStreams() = default;
  SeedStreams(int64_t first_seed, size_t num_seeds);
  Seed get(uint64_t example, size_t k = 0) const;

 private:
  std::vector<Philox> generators_;
};

// seqio.map_seed_manager: hands out op seeds while a pipeline is built. Without a seed it draws from the
// system.
class SeedManager {
 public:
  explicit SeedManager(std::optional<int64_t> seed = std::nullopt);
  SeedStreams streams(size_t num_seeds);

 private:
  int64_t next_ = 0;
};

// The picks of sample_from_datasets, which are those of stateless_multinomial over log(weights).
class Multinomial {
 public:
  explicit Multinomial(std::span<const double> weights);
  size_t pick(Seed seed) const;

 private:
  std::vector<double> cumulative_;
};

// A seed from the operating system, for pipelines without one.
int64_t random_seed();

}  // namespace t5x::seqio
