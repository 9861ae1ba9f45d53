#include <algorithm>
#include <cmath>
#include <set>

#include "base/log.h"
#include "seqio/task.h"

namespace t5x::seqio {
namespace {

constexpr int64_t kUnseededSample = 42;  // seqio's when nothing is shuffled and no seed is given

double rate_for(const MixtureRate& rate, const Task& task) {
  if (const auto* number = std::get_if<double>(&rate)) return *number;
  return std::get<std::function<double(const Task&)>>(rate)(task);
}

std::vector<std::string> names_of(const Features& features) {
  std::vector<std::string> names;
  for (const auto& [name, feature] : features) names.push_back(name);
  return names;
}

bool has_split(const Task& task, const std::string& split) {
  std::vector<std::string> splits = task.splits();
  return std::find(splits.begin(), splits.end(), split) != splits.end();
}

}  // namespace

Mixture::Mixture(MixtureConfig config, const TaskRegistry& tasks, const MixtureRegistry& mixtures)
    : config_(std::move(config)) {
  std::map<std::string, TaskPtr> leaves;
  for (const MixtureEntry& entry : config_.tasks) {
    auto rate = entry.rate ? entry.rate : config_.default_rate;
    if (!rate)
      throw_error<ConfigError>("mixture '{}': '{}' has no rate and there is no default rate", config_.name,
                               entry.name);
    auto provider = in_context(fmt::format("mixture '{}'", config_.name),
                               [&] { return get_mixture_or_task(entry.name, tasks, mixtures); });
    for (const TaskPtr& task : get_subtasks(provider)) leaves[task->name()] = task;
    if (auto mixture = std::dynamic_pointer_cast<const Mixture>(provider)) {
      if (!std::holds_alternative<double>(*rate))
        throw_error<ConfigError>("mixture '{}': the rate of mixture '{}' must be a number", config_.name,
                                 entry.name);
      children_.emplace_back(mixture, *rate);
    } else {
      children_.emplace_back(leaves.at(provider->name()), *rate);
    }
  }
  if (leaves.empty()) throw_error<ConfigError>("mixture '{}' has no tasks", config_.name);
  for (const auto& [name, task] : leaves) {
    leaves_.push_back(task);
    if (names_of(task->output_features()) != names_of(leaves_[0]->output_features()))
      throw_error<ConfigError>(
          "mixture '{}': all tasks must have the same output features, but '{}' has [{}] and '{}' has [{}]",
          config_.name, leaves_[0]->name(), fmt::join(names_of(leaves_[0]->output_features()), ", "), name,
          fmt::join(names_of(task->output_features()), ", "));
  }
}

const Features& Mixture::output_features() const { return leaves_[0]->output_features(); }

std::vector<std::string> Mixture::splits() const {
  std::set<std::string> all;
  for (const TaskPtr& task : leaves_)
    for (const std::string& split : task->splits()) all.insert(split);
  return {all.begin(), all.end()};
}

std::optional<int64_t> Mixture::num_input_examples(const std::string& split) const {
  int64_t total = 0;
  for (const TaskPtr& task : leaves_) {
    if (!has_split(*task, split)) continue;
    auto count = task->num_input_examples(split);
    if (!count) return std::nullopt;
    total += *count;
  }
  return total;
}

double Mixture::get_rate(const Task& task) const {
  double own = 0, nested = 0;
  for (const auto& [child, rate] : children_) {
    if (const auto* mixture = std::get_if<MixturePtr>(&child)) {
      const auto& among = (*mixture)->tasks();
      if (std::any_of(among.begin(), among.end(), [&](const TaskPtr& t) { return t->name() == task.name(); }))
        nested += std::get<double>(rate) * (*mixture)->get_rate(task) / (*mixture)->total_rate();
    } else if (std::get<TaskPtr>(child)->name() == task.name()) {
      own += rate_for(rate, task);
    }
  }
  return nested + own;
}

double Mixture::total_rate() const {
  double total = 0;
  for (const auto& [child, rate] : children_) {
    const auto* task = std::get_if<TaskPtr>(&child);
    total += task != nullptr ? rate_for(rate, **task) : std::get<double>(rate);
  }
  return total;
}

Dataset Mixture::get_dataset(const DatasetRequest& request) const {
  std::vector<Dataset> datasets;
  std::vector<double> rates;
  const Features& features = output_features();
  for (const TaskPtr& task : leaves_) {
    if (!has_split(*task, request.split)) {
      log_warning("mixture '{}': task '{}' has no split '{}' and is left out", name(), task->name(),
                  request.split);
      continue;
    }
    for (const auto& [key, feature] : task->output_features()) {
      const Feature& first = features.at(key);
      if (!(*feature.vocabulary == *first.vocabulary) || feature.dtype != first.dtype)
        throw_error<ConfigError>(
            "mixture '{}': feature '{}' must have one vocabulary and dtype in all tasks, but '{}' has {} and "
            "'{}' {}",
            name(), key, leaves_[0]->name(), first.vocabulary->describe(), task->name(),
            feature.vocabulary->describe());
    }
    auto only_output = [features](Example& example, uint64_t) {
      Example kept;
      for (auto& [key, value] : example)
        if (features.contains(key)) kept.set(key, std::move(value));
      example = std::move(kept);
    };
    datasets.push_back(task->get_dataset(request).map(only_output, {.name = "output features"}));
    rates.push_back(get_rate(*task));
  }
  if (datasets.empty())
    throw_error<ConfigError>("mixture '{}': no task has the split '{}'", name(), request.split);
  std::optional<int64_t> seed = request.seed;
  if (!request.shuffle && (!seed || request.seed_was_drawn)) seed = kUnseededSample;
  return Dataset::sample(std::move(datasets), std::move(rates), seed, true)
      .context(fmt::format("mixture '{}'", name()));
}

MixtureRate mixing_rate_num_examples(MixingRateOptions options) {
  return std::function<double(const Task&)>([options](const Task& task) {
    auto count = task.num_input_examples(options.split);
    if (!count)
      throw_error<ConfigError>(
          "task '{}' does not know its number of examples in split '{}'; give num_input_examples or a fixed "
          "rate",
          task.name(), options.split);
    double rate = static_cast<double>(*count) * options.scale;
    if (options.maximum) rate = std::min(rate, *options.maximum);
    return options.temperature == 1 ? rate : std::pow(rate, 1 / options.temperature);
  });
}

}  // namespace t5x::seqio
