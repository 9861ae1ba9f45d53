#include "seqio/get_dataset.h"

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace t5x::seqio {
namespace {

int threads_for(const GetDatasetOptions& options) {
  if (options.prefetch_batches == 0 && options.num_threads < 0) return 0;
  if (options.num_threads >= 0) return options.num_threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

Dataset get_dataset(const DatasetProvider& provider, const FeatureConverter& converter,
                    const GetDatasetOptions& options) {
  check_lengths(options.task_feature_lengths, provider.output_features(), provider.name());
  DatasetRequest request{.sequence_length = options.task_feature_lengths,
                         .split = options.split,
                         .use_cached = options.use_cached,
                         .shuffle = options.shuffle,
                         .seed = options.seed,
                         .seed_was_drawn = options.seed_was_drawn,
                         .shard_info = options.shard_info,
                         .num_epochs = options.num_epochs,
                         .trim_output_features = options.trim_output_features,
                         .num_threads = threads_for(options)};
  return converter.convert(provider.get_dataset(request), options.task_feature_lengths);
}

BatchIterator::BatchIterator(std::function<Dataset(int64_t seed)> make, int64_t seed,
                             std::optional<int64_t> given_seed, std::shared_ptr<WaitCounter> waits)
    : make_(std::move(make)),
      seed_(seed),
      given_seed_(given_seed),
      waits_(std::move(waits)),
      iterator_(make_(seed_).iterator()) {}

std::optional<Batch> BatchIterator::next() {
  Example example;
  if (!iterator_->next(example)) {
    if (delivered_ == 0)
      throw_error<DataError>(
          "the data gave not a single batch: it is empty, or smaller than one batch; check the files, the "
          "split, the "
          "shard and the batch size");
    return std::nullopt;
  }
  ++delivered_;
  Batch batch;
  for (auto& [name, value] : example) {
    auto* array = std::get_if<Array>(&value);
    if (array == nullptr)
      throw_error<DataError>("feature '{}' is {}, so it cannot be fed", name, describe(value));
    batch.emplace(name, std::move(*array));
  }
  return batch;
}

Json BatchIterator::save() {
  return {{"version", 1}, {"seed", seed_}, {"batches", delivered_}, {"pipeline", iterator_->save()}};
}

void BatchIterator::restore(const Json& state) {
  try {
    auto seed = state.at("seed").get<int64_t>();
    if (given_seed_ && *given_seed_ != seed)
      throw_error<DataError>(
          "the saved data state was made with seed {}, this run has seed {}; use the same seed", seed,
          *given_seed_);
    auto restored = make_(seed).iterator();
    restored->restore(state.at("pipeline"));
    iterator_ = std::move(restored);
    seed_ = seed;
    delivered_ = state.at("batches").get<int64_t>();
  } catch (const Json::exception& e) {
    throw_error<DataError>("the saved data state is incomplete: {}", e.what());
  }
}

BatchIterator get_batches(std::shared_ptr<const DatasetProvider> provider, FeatureConverterPtr converter,
                          const GetDatasetOptions& options) {
  if (options.batch_size < 0)
    throw_error<ConfigError>("the batch size is {}; it must not be negative", options.batch_size);
  auto waits = std::make_shared<WaitCounter>();
  auto make = [=](int64_t seed) {
    GetDatasetOptions seeded = options;
    seeded.seed = seed;
    seeded.seed_was_drawn = !options.seed;
    Dataset dataset = get_dataset(*provider, *converter, seeded);
    if (options.batch_size > 0)
      dataset = dataset.batch(static_cast<size_t>(options.batch_size), options.drop_remainder);
    return dataset.prefetch(options.prefetch_batches, waits);
  };
  return BatchIterator(make, options.seed ? *options.seed : random_seed(), options.seed, waits);
}

BatchIterator get_batches(const std::string& mixture_or_task_name, FeatureConverterPtr converter,
                          const GetDatasetOptions& options) {
  return get_batches(get_mixture_or_task(mixture_or_task_name), std::move(converter), options);
}

}  // namespace t5x::seqio
