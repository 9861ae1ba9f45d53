// Tasks and mixtures, and the registries that hold them by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/strings.h"
#include "seqio/dataset.h"
#include "seqio/feature.h"
#include "seqio/metrics.h"
#include "seqio/preprocessor.h"
#include "seqio/source.h"

namespace t5x::seqio {

// What is asked of a task or mixture.
struct DatasetRequest {
  std::optional<SequenceLength> sequence_length = std::nullopt;
  std::string split = "train";
  bool use_cached = false;
  bool shuffle = true;
  std::optional<size_t> shuffle_buffer_size = std::nullopt;  // nothing: the task's
  std::optional<int64_t> seed = std::nullopt;                // nothing: not reproducible
  bool seed_was_drawn = false;  // the caller had no seed and drew one, so that the data can be continued
  std::optional<ShardInfo> shard_info = std::nullopt;
  std::optional<int64_t> num_epochs = 1;  // nothing: for ever
  bool trim_output_features = true;
  int num_threads = 0;  // for parallel maps; results do not depend on it
};

class DatasetProvider {
 public:
  virtual ~DatasetProvider() = default;
  virtual const std::string& name() const = 0;
  virtual const Features& output_features() const = 0;
  virtual std::vector<std::string> splits() const = 0;
  virtual std::optional<int64_t> num_input_examples(const std::string& split) const = 0;
  virtual Dataset get_dataset(const DatasetRequest& request) const = 0;
};

struct TaskConfig {
  std::string name;
  DataSourcePtr source;
  std::vector<Preprocessor> preprocessors = {};
  Features output_features = {};
  PostprocessFn postprocess_fn = {};  // empty: identity
  std::vector<MetricFn> metric_fns = {};
  std::optional<size_t> shuffle_buffer_size = 1000;  // nothing: the source shuffles by itself
};

class Task : public DatasetProvider {
 public:
  // Throws ConfigError for a bad name, a missing source or a misplaced cache point.
  explicit Task(TaskConfig config);
  const std::string& name() const override { return config_.name; }
  const Features& output_features() const override { return config_.output_features; }
  std::vector<std::string> splits() const override { return config_.source->splits(); }
  std::optional<int64_t> num_input_examples(const std::string& split) const override;
  // In this order: source, shard, preprocess up to the cache point, repeat, preprocess, validate, trim,
  // shuffle.
  Dataset get_dataset(const DatasetRequest& request) const override;

  const TaskConfig& config() const { return config_; }
  const DataSource& source() const { return *config_.source; }
  const std::vector<MetricFn>& metric_fns() const { return config_.metric_fns; }
  Value postprocess(Value decoded, const Example& example, bool is_target) const;
  bool requires_caching() const;

 private:
  std::optional<size_t> cache_step() const;
  Dataset load_source(const DatasetRequest& request) const;
  Dataset preprocess(Dataset dataset, size_t begin, size_t end, const DatasetRequest& request,
                     std::optional<int64_t> seed) const;
  Dataset validate_and_trim(Dataset dataset, const DatasetRequest& request) const;

  TaskConfig config_;
};
using TaskPtr = std::shared_ptr<const Task>;

class Mixture;
using MixtureRate = std::variant<double, std::function<double(const Task&)>>;
struct MixtureEntry {
  std::string name;                                // of a task or mixture
  std::optional<MixtureRate> rate = std::nullopt;  // nothing: the default rate
};

struct MixtureConfig {
  std::string name;
  std::vector<MixtureEntry> tasks;
  std::optional<MixtureRate> default_rate = std::nullopt;
};

class TaskRegistry;
class MixtureRegistry;

class Mixture : public DatasetProvider {
 public:
  // Throws ConfigError for an unknown entry, a missing rate, or tasks of different output features.
  Mixture(MixtureConfig config, const TaskRegistry& tasks, const MixtureRegistry& mixtures);
  const std::string& name() const override { return config_.name; }
  const Features& output_features() const override;
  std::vector<std::string> splits() const override;
  std::optional<int64_t> num_input_examples(const std::string& split) const override;
  // Note: num_epochs counts epochs of every task; with a finite number the mixture ends with its first task.
  Dataset get_dataset(const DatasetRequest& request) const override;

  // All leaf tasks, sorted by name.
  const std::vector<TaskPtr>& tasks() const { return leaves_; }
  double get_rate(const Task& task) const;
  double total_rate() const;

 private:
  using Child = std::pair<std::variant<TaskPtr, std::shared_ptr<const Mixture>>, MixtureRate>;
  MixtureConfig config_;
  std::vector<Child> children_;
  std::vector<TaskPtr> leaves_;
};
using MixturePtr = std::shared_ptr<const Mixture>;

struct MixingRateOptions {
  std::optional<double> maximum = std::nullopt;
  double scale = 1, temperature = 1;
  std::string split = "train";
};
// A rate by the number of examples, as seqio.mixing_rate_num_examples.
MixtureRate mixing_rate_num_examples(MixingRateOptions options = {});

// Name -> provider, in the order added.
template <class T>
class ProviderRegistry {
 public:
  explicit ProviderRegistry(std::string kind) : kind_(std::move(kind)) {}
  // Throws ConfigError when the name is taken.
  std::shared_ptr<const T> add(std::shared_ptr<const T> provider) {
    if (find(provider->name()))
      throw_error<ConfigError>("{} '{}' is registered already; choose another name or remove the first",
                               kind_, provider->name());
    providers_.push_back(provider);
    return provider;
  }
  std::shared_ptr<const T> find(const std::string& name) const {
    for (const auto& p : providers_)
      if (p->name() == name) return p;
    return nullptr;
  }
  // Throws ConfigError with close matches.
  std::shared_ptr<const T> get(const std::string& name) const {
    if (auto p = find(name)) return p;
    throw_error<ConfigError>("no {} is called '{}'{}", kind_, name, did_you_mean(name, names()));
  }
  void remove(const std::string& name) {
    std::erase_if(providers_, [&](const auto& p) { return p->name() == name; });
  }
  void reset() { providers_.clear(); }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& p : providers_) result.push_back(p->name());
    return result;
  }

 private:
  std::string kind_;
  std::vector<std::shared_ptr<const T>> providers_;
};

class TaskRegistry : public ProviderRegistry<Task> {
 public:
  TaskRegistry() : ProviderRegistry("task") {}
  // The one that programs use by default.
  static TaskRegistry& global();
  using ProviderRegistry::add;
  TaskPtr add(TaskConfig config) { return add(std::make_shared<const Task>(std::move(config))); }
};

class MixtureRegistry : public ProviderRegistry<Mixture> {
 public:
  MixtureRegistry() : ProviderRegistry("mixture") {}
  static MixtureRegistry& global();
  using ProviderRegistry::add;
  MixturePtr add(MixtureConfig config, const TaskRegistry& tasks = TaskRegistry::global()) {
    return add(std::make_shared<const Mixture>(std::move(config), tasks, *this));
  }
};

// A mixture when both have the name. Throws ConfigError with close matches among both.
std::shared_ptr<const DatasetProvider> get_mixture_or_task(
    const std::string& name, const TaskRegistry& tasks = TaskRegistry::global(),
    const MixtureRegistry& mixtures = MixtureRegistry::global());
// A task itself, or a mixture's leaves.
std::vector<TaskPtr> get_subtasks(const std::shared_ptr<const DatasetProvider>& provider);

}  // namespace t5x::seqio
