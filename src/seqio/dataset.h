// Datasets: a Dataset describes a pipeline, its iterator pulls examples through it. Any iterator can be saved
// and another one of the same pipeline continued from there exactly; a state holds positions and the examples
// inside buffers (shuffle, prefetch), never more. Orders and seeds are those of tf.data.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "seqio/example.h"
#include "seqio/random.h"

namespace t5x::seqio {

class Iterator {
 public:
  virtual ~Iterator() = default;
  // The next example, or false at the end of the epoch (and on every later call until restart()).
  virtual bool next(Example& out) = 0;
  // Begins the next epoch: shuffles draw their next order, as they do below tf.data's repeat.
  virtual void restart() = 0;
  virtual Json save() = 0;
  // Continues where `state` was saved. Throws DataError when another pipeline saved it.
  virtual void restore(const Json& state) = 0;
};

// How long the consumer of a prefetch stood waiting. One may be read while the pipeline runs.
class WaitCounter {
 public:
  void add(double seconds, bool waited);
  double seconds() const;    // waited in all, in seconds
  int64_t elements() const;  // delivered
  int64_t waits() const;     // of these, not ready when asked for

 private:
  std::atomic<int64_t> nanoseconds_{0}, elements_{0}, waits_{0};
};

struct MapOptions {
  std::string name = "map";  // named in errors, with the index of the example
  int num_threads = 0;       // 0: in the caller's thread; order is kept whatever the number
};

class Dataset {
 public:
  using Factory = std::function<std::unique_ptr<Iterator>()>;
  using MapFn = std::function<void(Example& example, uint64_t index)>;
  using FilterFn = std::function<bool(const Example&)>;
  using FlatMapFn = std::function<void(std::span<Example> in, uint64_t group, std::vector<Example>& out)>;
  using ExpandFn = std::function<Dataset(const Example&)>;

  Dataset() : Dataset(in_memory({})) {}
  explicit Dataset(Factory factory) : factory_(std::move(factory)) {}
  static Dataset in_memory(std::vector<Example> examples);
  // 0, 1, ... n-1: example(i) makes the i-th.
  static Dataset generate(uint64_t n, std::function<Example(uint64_t)> example);

  std::unique_ptr<Iterator> iterator() const { return factory_(); }

  Dataset map(MapFn fn, MapOptions options = {}) const;
  Dataset filter(FilterFn keep, std::string name = "filter") const;
  // Every `group` examples in (fewer at the end, unless dropped), any number out.
  Dataset flat_map(FlatMapFn fn, size_t group = 1, bool drop_remainder = false,
                   std::string name = "flat_map") const;
  // Every count-th example from `index` on.
  Dataset shard(int64_t count, int64_t index) const;
  Dataset take(uint64_t n) const;
  Dataset skip(uint64_t n) const;
  // tf.data's shuffle: the same seed gives the same order; every epoch has its own.
  Dataset shuffle(size_t buffer_size, std::optional<int64_t> seed) const;
  // Nothing: for ever. Throws DataError when asked to repeat an empty dataset for ever.
  Dataset repeat(std::optional<int64_t> epochs) const;
  // Every epoch is the first one again: the effect of tf.data's cache(), without its memory.
  Dataset freeze() const;
  // Deterministic interleave: `cycle` inputs open, `block` examples of each in turn.
  Dataset interleave(ExpandFn open, size_t cycle = 16, size_t block = 16) const;
  // Stacks equal shapes: feature [..] becomes [n, ..].
  Dataset batch(size_t n, bool drop_remainder = true) const;
  // Pads the first axis of each feature with zeros to `lengths`, or to the longest of the batch.
  Dataset padded_batch(size_t n, std::map<std::string, int64_t> lengths = {},
                       bool drop_remainder = true) const;
  // Runs what is above in a thread of its own, `depth` examples ahead.
  Dataset prefetch(size_t depth, std::shared_ptr<WaitCounter> waits = nullptr) const;
  // Adds `place` to every error that comes from above.
  Dataset context(std::string place) const;

  // tf.data.Dataset.sample_from_datasets over those of weight > 0. Without a seed: drawn from the system.
  static Dataset sample(std::vector<Dataset> datasets, std::vector<double> weights,
                        std::optional<int64_t> seed, bool stop_on_empty = true);

 private:
  Factory factory_;
};

// All examples of one epoch; for tests and small data.
std::vector<Example> collect(const Dataset& dataset, size_t limit = std::numeric_limits<size_t>::max());

}  // namespace t5x::seqio
