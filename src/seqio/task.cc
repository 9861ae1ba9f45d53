#include "seqio/task.h"

#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "seqio/feature_converter.h"

namespace t5x::seqio {
namespace {

// Below this number of examples (times the shards) seqio keeps the source in memory, which freezes its order.
constexpr int64_t kMaxExamplesToMemCache = 10000;

bool is_valid_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u >= 0x80 || std::isalnum(u) != 0 || c == '_' || c == '.' || c == ':' || c == '#';
  });
}

void validate(const Example& example, const Features& features) {
  for (const auto& [name, feature] : features) {
    const FeatureValue* value = example.find(name);
    if (value == nullptr) {
      if (!feature.required) continue;
      throw_error<DataError>("output feature '{}' is missing; the preprocessors left {{{}}}", name,
                             example.describe());
    }
    const auto* array = std::get_if<Array>(value);
    if (array == nullptr)
      throw_error<DataError>("output feature '{}' should be {} of rank {}, but is {}; add seqio's tokenize",
                             name, t5x::name(feature.dtype), feature.rank, describe(*value));
    if (array->dtype() != feature.dtype)
      throw_error<DataError>("output feature '{}' should have dtype {}, but is {}", name,
                             t5x::name(feature.dtype), array->describe());
    if (array->shape().rank() != static_cast<size_t>(feature.rank))
      throw_error<DataError>("output feature '{}' should have rank {}, but is {}", name, feature.rank,
                             array->describe());
  }
}

}  // namespace

void check_lengths(const SequenceLength& lengths, const Features& features, const std::string& provider) {
  std::vector<std::string> names;
  for (const auto& [name, feature] : features) names.push_back(name);
  for (const auto& [name, length] : lengths) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw_error<ConfigError>("a length is given for feature '{}', but '{}' has only: {}{}", name, provider,
                               fmt::join(names, ", "), did_you_mean(name, names));
    if (length < 1)
      throw_error<ConfigError>("the length of feature '{}' is {}; it must be at least 1", name, length);
  }
}

Task::Task(TaskConfig config) : config_(std::move(config)) {
  if (!is_valid_name(config_.name))
    throw_error<ConfigError>("'{}' is no task name; use letters, digits and _ . : # only", config_.name);
  if (!config_.source) throw_error<ConfigError>("task '{}' has no source", config_.name);
  for (const auto& [name, feature] : config_.output_features)
    if (!feature.vocabulary)
      throw_error<ConfigError>(
          "task '{}': output feature '{}' has no vocabulary; PassThroughVocabulary is for ids", config_.name,
          name);
  auto is_cache = [](const Preprocessor& p) { return p.is_cache_placeholder(); };
  const auto& steps = config_.preprocessors;
  if (std::count_if(steps.begin(), steps.end(), is_cache) > 1)
    throw_error<ConfigError>("task '{}' has more than one cache_dataset_placeholder", config_.name);
  auto cache = cache_step();
  for (size_t i = 0; cache && i < *cache; ++i)
    if (steps[i].needs_sequence_length())
      throw_error<ConfigError>(
          "task '{}': preprocessor '{}' needs sequence lengths, so it must stand after the "
          "cache_dataset_placeholder",
          config_.name, steps[i].name());
  if (cache && !config_.source->caching_permitted())
    throw_error<ConfigError>("task '{}': its source must not be cached; remove the cache_dataset_placeholder",
                             config_.name);
}

std::optional<int64_t> Task::num_input_examples(const std::string& split) const {
  return config_.source->num_input_examples(split);
}

std::optional<size_t> Task::cache_step() const {
  for (size_t i = 0; i < config_.preprocessors.size(); ++i)
    if (config_.preprocessors[i].is_cache_placeholder()) return i;
  return std::nullopt;
}

bool Task::requires_caching() const {
  auto cache = cache_step();
  return cache && config_.preprocessors[*cache].cache_required();
}

Value Task::postprocess(Value decoded, const Example& example, bool is_target) const {
  return config_.postprocess_fn ? config_.postprocess_fn(std::move(decoded), example, is_target) : decoded;
}

Dataset Task::load_source(const DatasetRequest& request) const {
  const DataSource& source = *config_.source;
  SourceRequest from{
      .split = request.split, .shuffle = request.shuffle, .seed = request.seed, .shard_info = {}};
  std::vector<std::string> splits = source.splits();
  if (std::find(splits.begin(), splits.end(), request.split) == splits.end())
    throw_error<ConfigError>("there is no split '{}', only: {}{}", request.split, fmt::join(splits, ", "),
                             did_you_mean(request.split, splits));
  auto shard = request.shard_info;
  if (shard && (shard->num_shards < 1 || shard->index < 0 || shard->index >= shard->num_shards))
    throw_error<ConfigError>("shard {} of {} does not exist", shard->index, shard->num_shards);
  Dataset dataset;
  // By file where there are enough of them, else by example.
  if (!shard || source.supports_arbitrary_sharding() ||
      static_cast<int64_t>(source.list_shards(request.split).size()) >= shard->num_shards) {
    from.shard_info = shard;
    dataset = source.get_dataset(from);
  } else {
    dataset = source.get_dataset(from).shard(shard->num_shards, shard->index);
  }
  int64_t count = source.num_input_examples(request.split).value_or(0);
  if (count > 0 && count < kMaxExamplesToMemCache * (shard ? shard->num_shards : 1))
    dataset = dataset.freeze();
  return dataset;
}

Dataset Task::preprocess(Dataset dataset, size_t begin, size_t end, const DatasetRequest& request,
                         std::optional<int64_t> seed) const {
  SeedManager seeds(seed);
  PreprocessorArgs args{.output_features = config_.output_features,
                        .lengths = request.sequence_length ? &*request.sequence_length : nullptr,
                        .seeds = &seeds,
                        .num_threads = request.num_threads};
  for (size_t i = begin; i < end; ++i) {
    const Preprocessor& step = config_.preprocessors[i];
    dataset = in_context(fmt::format("preprocessor '{}'", step.name()), [&] { return step(dataset, args); });
  }
  return dataset;
}

Dataset Task::validate_and_trim(Dataset dataset, const DatasetRequest& request) const {
  SequenceLength lengths;
  if (request.sequence_length && request.trim_output_features) {
    for (const auto& [name, length] : *request.sequence_length)
      if (config_.output_features.contains(name)) lengths[name] = length;
  }
  auto check = [features = config_.output_features](Example& example, uint64_t) {
    validate(example, features);
  };
  return trim_dataset(dataset.map(check, {.name = "validation of the output features"}), lengths);
}

Dataset Task::get_dataset(const DatasetRequest& request) const {
  std::string place = fmt::format("task '{}', split '{}'", name(), request.split);
  Dataset dataset = in_context(place, [&] {
    auto cache = cache_step();
    if (request.use_cached && !cache)
      log_warning("task '{}' has no cache_dataset_placeholder; it is read from its source", name());
    if (request.use_cached && cache)
      throw_error<ConfigError>("reading an offline cache is not supported yet; set use_cached = false");
    if (!request.use_cached && requires_caching())
      throw_error<ConfigError>("the task must be cached before use; set use_cached = true");
    auto seed = request.seed;
    size_t steps = config_.preprocessors.size();
    Dataset made = load_source(request);
    DatasetRequest before = request;
    before.sequence_length.reset();
    if (cache) made = preprocess(made, 0, *cache, before, seed);
    if (request.num_epochs != 1) made = made.repeat(request.num_epochs);
    if (seed && cache) *seed += 42 * static_cast<int64_t>(*cache);
    made = preprocess(made, cache ? *cache + 1 : 0, steps, request, seed);
    made = validate_and_trim(made, request);
    if (!request.shuffle) return made;
    auto buffer = request.shuffle_buffer_size ? request.shuffle_buffer_size : config_.shuffle_buffer_size;
    if (buffer) return made.shuffle(*buffer, request.seed);
    if (!config_.source->performs_internal_shuffling())
      throw_error<ConfigError>(
          "no shuffle buffer size is set, and the source does not shuffle by itself; set "
          "shuffle_buffer_size");
    return made;
  });
  return dataset.context(place);
}

TaskRegistry& TaskRegistry::global() {
  static TaskRegistry registry;
  return registry;
}

MixtureRegistry& MixtureRegistry::global() {
  static MixtureRegistry registry;
  return registry;
}

std::shared_ptr<const DatasetProvider> get_mixture_or_task(const std::string& name, const TaskRegistry& tasks,
                                                           const MixtureRegistry& mixtures) {
  if (auto mixture = mixtures.find(name)) return mixture;
  if (auto task = tasks.find(name)) return task;
  std::vector<std::string> names = mixtures.names();
  for (std::string& task : tasks.names()) names.push_back(std::move(task));
  throw_error<ConfigError>("no mixture or task is called '{}'{}; {} are registered", name,
                           did_you_mean(name, names), names.size());
}

std::vector<TaskPtr> get_subtasks(const std::shared_ptr<const DatasetProvider>& provider) {
  if (auto mixture = std::dynamic_pointer_cast<const Mixture>(provider)) return mixture->tasks();
  if (auto task = std::dynamic_pointer_cast<const Task>(provider)) return {task};
  throw_error<ConfigError>("'{}' is neither a task nor a mixture", provider->name());
}

}  // namespace t5x::seqio
