// The way to batches: task or mixture -> feature converter -> batches, produced ahead on worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/array.h"
#include "seqio/dataset.h"
#include "seqio/feature_converter.h"
#include "seqio/task.h"

namespace t5x::seqio {

struct GetDatasetOptions {
  SequenceLength task_feature_lengths;
  std::string split = "train";
  bool use_cached = false;
  bool shuffle = false;
  std::optional<int64_t> num_epochs = 1;  // nothing: for ever
  std::optional<ShardInfo> shard_info = std::nullopt;
  std::optional<int64_t> seed = std::nullopt;  // nothing: not reproducible
  bool seed_was_drawn = false;                 // set by get_batches
  int64_t batch_size = 0;                      // 0: single examples, features [length]
  bool drop_remainder = true;
  bool trim_output_features = true;
  int num_threads = -1;         // for tokenizing; -1: by the number of cores; results do not depend on it
  size_t prefetch_batches = 2;  // 0: everything in the caller's thread
};

// The examples the converter makes, not batched and not prefetched.
Dataset get_dataset(const DatasetProvider& provider, const FeatureConverter& converter,
                    const GetDatasetOptions& options);

using Batch = std::map<std::string, Array>;

// Batches one by one. save() and restore() continue exactly after the last batch delivered, in this process
// or another, with another number of threads too.
class BatchIterator {
 public:
  // `make` builds the pipeline for a seed; `given_seed`: the user's own, nothing when `seed` was drawn.
  BatchIterator(std::function<Dataset(int64_t seed)> make, int64_t seed, std::optional<int64_t> given_seed,
                std::shared_ptr<WaitCounter> waits);
  // Features [batch_size, length]; nothing when the data is used up.
  std::optional<Batch> next();
  Json save();
  void restore(const Json& state);
  // How long next() stood waiting for data.
  const WaitCounter& waits() const { return *waits_; }
  int64_t batches_delivered() const { return delivered_; }

 private:
  std::function<Dataset(int64_t seed)> make_;
  int64_t seed_;
  std::optional<int64_t> given_seed_;
  std::shared_ptr<WaitCounter> waits_;
  std::unique_ptr<Iterator> iterator_;
  int64_t delivered_ = 0;  // since the beginning of the data, through all restores
};

// Throws ConfigError for a feature length of 0 (naming it), an unknown task, split or feature, and DataError
// when not even one batch can be made.
BatchIterator get_batches(std::shared_ptr<const DatasetProvider> provider, FeatureConverterPtr converter,
                          const GetDatasetOptions& options);
// The same by name in the global registries.
BatchIterator get_batches(const std::string& mixture_or_task_name, FeatureConverterPtr converter,
                          const GetDatasetOptions& options);

}  // namespace t5x::seqio
