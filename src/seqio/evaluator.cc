#include "seqio/evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace t5x::seqio {
namespace {

constexpr int64_t kMostElementsInJson = 32;  // longer arrays are summarised

bool wanted(const Task& task, const std::string& split) {
  std::vector<std::string> splits = task.splits();
  return !task.metric_fns().empty() && std::find(splits.begin(), splits.end(), split) != splits.end();
}

// values[index] for every index once.
template <class T>
std::vector<T> in_order(std::vector<std::pair<int64_t, T>> indexed, size_t count, std::string_view what) {
  std::vector<T> ordered(count);
  std::vector<bool> seen(count, false);
  for (auto& [index, value] : indexed) {
    if (index < 0 || static_cast<size_t>(index) >= count)
      throw_error<DataError>(
          "the model returned {} of example {}, but there are {}; leave padding examples out", what, index,
          count);
    auto at = static_cast<size_t>(index);
    if (seen[at]) throw_error<DataError>("the model returned {} of example {} twice", what, index);
    seen[at] = true;
    ordered[at] = std::move(value);
  }
  if (indexed.size() != count)
    throw_error<DataError>("the model returned {} of {} examples, but there are {}; the first missing is {}",
                           what, indexed.size(), count,
                           std::find(seen.begin(), seen.end(), false) - seen.begin());
  return ordered;
}

Json printable(const FeatureValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<Strings>(&value)) return *texts;
  const Array& array = std::get<Array>(value);
  if (array.size() > kMostElementsInJson) return array.describe();
  Json list = Json::array();
  Array wide = array.cast(is_float(array.dtype()) ? DType::kFloat64 : DType::kInt64);
  if (is_float(array.dtype())) {
    for (double x : wide.values<double>()) list.push_back(x);
  } else {
    for (int64_t x : wide.values<int64_t>()) list.push_back(x);
  }
  return array.shape().rank() == 0 ? list[0] : list;
}

// Bytes that are no UTF-8 are shown as U+FFFD.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void merge(Metrics& into, const Metrics& from, const std::string& metric) {
  for (const auto& [key, value] : from)
    if (!into.emplace(key, value).second)
      throw_error<ConfigError>("metric '{}' returns '{}', which another metric returned already", metric,
                               key);
}

// What the model made of one task, in the order of its examples.
struct Outputs {
  Values decoded, predictions;
  std::vector<double> scores;
  AuxValues aux;
};

void write_results(const EvaluatorOptions& options, const std::string& task, int64_t step,
                   const std::vector<Example>& examples, const Values& targets, const Outputs& outputs,
                   const Metrics& metrics) {
  fs::path dir = options.log_dir;
  make_dirs(dir);
  std::string file_name = task;
  std::replace(file_name.begin(), file_name.end(), '/', '_');
  nlohmann::ordered_json line{{"step", step}};
  for (const auto& [name, value] : metrics) std::visit([&](const auto& v) { line[name] = v; }, value);
  fs::path metrics_path = dir / (file_name + "-metrics.jsonl");
  std::string before = is_file(metrics_path) ? read_file(metrics_path) : "";
  write_file_atomic(metrics_path, before + line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");

  std::string text;
  size_t count = std::min(examples.size(), options.write_n_results.value_or(examples.size()));
  for (size_t i = 0; i < count; ++i) {
    Json input = Json::object();
    for (const auto& [name, value] : examples[i]) input[name] = printable(value);
    Json result{{"input", std::move(input)}, {"target", targets[i]}};
    if (!outputs.predictions.empty()) result["prediction"] = outputs.predictions[i];
    if (!outputs.decoded.empty()) result["output"] = outputs.decoded[i];
    if (!outputs.scores.empty()) result["score"] = outputs.scores[i];
    for (const auto& [name, values] : outputs.aux) result["aux_" + name] = values[i];
    text += line_of(result);
  }
  write_file_atomic(dir / fmt::format("{}-{:06}.jsonl", file_name, step), text);
}

}  // namespace

Evaluator::Evaluator(std::shared_ptr<const DatasetProvider> provider, FeatureConverterPtr converter,
                     EvaluatorOptions options)
    : converter_(std::move(converter)), options_(std::move(options)) {
  if (converter_->pack()) throw_error<ConfigError>("evaluation needs a feature converter with pack = false");
  check_lengths(options_.sequence_length, provider->output_features(), provider->name());
  task_lengths_ = options_.sequence_length;
  for (const TaskPtr& task : get_subtasks(provider)) {
    if (!wanted(*task, options_.split)) continue;
    DatasetRequest request{.split = options_.split,
                           .use_cached = options_.use_cached,
                           .shuffle = false,
                           .seed = options_.seed,
                           .num_epochs = 1};
    if (!options_.sequence_length.empty()) request.sequence_length = options_.sequence_length;
    Dataset dataset = task->get_dataset(request);
    if (options_.num_examples) dataset = dataset.take(static_cast<uint64_t>(*options_.num_examples));
    TaskData data{.task = task,
                  .examples = collect(dataset),
                  .model = {.task = task->name(), .features = {}},
                  .targets = {}};
    if (data.examples.empty())
      throw_error<DataError>("task '{}' has no examples in split '{}' to evaluate", task->name(),
                             options_.split);
    for (const Example& example : data.examples) {
      for (const auto& [name, spec] : converter_->task_features()) {
        if (options_.sequence_length.contains(name)) continue;
        int64_t length = example.array(name).shape().dim(0);
        task_lengths_[name] = std::max({task_lengths_[name], length, int64_t{1}});
      }
    }
    tasks_.push_back(std::move(data));
  }
  if (tasks_.empty())
    throw_error<ConfigError>(
        "'{}' has no task with a split '{}' and a metric, so there is nothing to evaluate", provider->name(),
        options_.split);
  std::erase_if(task_lengths_,
                [&](const auto& item) { return !converter_->task_features().contains(item.first); });
  model_lengths_ = converter_->model_feature_lengths(task_lengths_);

  for (TaskData& data : tasks_) {
    Dataset model = converter_->convert(Dataset::in_memory(data.examples), task_lengths_);
    for (Example& example : collect(model)) {
      Batch features;
      for (auto& [name, value] : example) features.emplace(name, std::get<Array>(value));
      data.model.features.push_back(std::move(features));
    }
    const auto& output = data.task->output_features();
    auto feature = output.find(options_.target_feature);
    if (feature == output.end())
      throw_error<ConfigError>("task '{}' has no feature '{}' to compare with", data.task->name(),
                               options_.target_feature);
    for (const Example& example : data.examples) {
      const FeatureValue* text = example.find(options_.target_feature + "_pretokenized");
      Value target = text != nullptr && std::holds_alternative<std::string>(*text)
                         ? std::get<std::string>(*text)
                         : feature->second.vocabulary->decode(example.ints(options_.target_feature));
      data.targets.push_back(data.task->postprocess(std::move(target), example, true));
    }
  }
}

std::vector<std::string> Evaluator::task_names() const {
  std::vector<std::string> names;
  for (const TaskData& data : tasks_) names.push_back(data.task->name());
  return names;
}

const Evaluator::TaskData& Evaluator::data(const std::string& task) const {
  for (const TaskData& data : tasks_)
    if (data.task->name() == task) return data;
  throw_error<ConfigError>("task '{}' is not evaluated{}", task, did_you_mean(task, task_names()));
}

std::map<std::string, Metrics> Evaluator::evaluate(int64_t step, const ModelFns& model) const {
  std::map<std::string, Metrics> all;
  for (const TaskData& data : tasks_)
    all[data.task->name()] = in_context(fmt::format("the evaluation of task '{}'", data.task->name()),
                                        [&] { return evaluate_task(data, step, model); });
  return all;
}

Metrics Evaluator::evaluate_task(const TaskData& data, int64_t step, const ModelFns& model) const {
  size_t count = data.examples.size();
  Outputs outputs;
  auto needs = [&](ModelOutput output) {
    const auto& metrics = data.task->metric_fns();
    return std::any_of(metrics.begin(), metrics.end(), [&](const MetricFn& m) { return m.needs == output; });
  };
  auto require = [](const auto& fn, std::string_view what) {
    if (!fn)
      throw_error<ConfigError>("a metric needs the model to {}, but no function for it was given", what);
  };
  const Vocabulary& vocabulary = *data.task->output_features().at(options_.target_feature).vocabulary;
  auto decode = [&](IndexedTokens indexed) {
    std::vector<std::vector<int32_t>> tokens = in_order(std::move(indexed), count, "the prediction");
    outputs.decoded.clear();
    outputs.predictions.clear();
    for (size_t i = 0; i < count; ++i) {
      outputs.decoded.push_back(vocabulary.decode(tokens[i]));
      outputs.predictions.push_back(data.task->postprocess(outputs.decoded[i], data.examples[i], false));
    }
  };
  if (needs(ModelOutput::kPredictionsWithAux)) {
    require(model.predict_with_aux, "predict with auxiliary values");
    auto [indexed, aux] = model.predict_with_aux(data.model);
    // Auxiliary values come in the order of the predictions.
    for (auto& [name, values] : aux) {
      if (values.size() != indexed.size())
        throw_error<DataError>("the model returned {} predictions, but {} values of '{}'", indexed.size(),
                               values.size(), name);
      std::vector<std::pair<int64_t, Value>> pairs;
      for (size_t i = 0; i < values.size(); ++i) pairs.emplace_back(indexed[i].first, values[i]);
      outputs.aux[name] = in_order(std::move(pairs), count, "'" + name + "'");
    }
    decode(std::move(indexed));
  } else if (needs(ModelOutput::kPredictions)) {
    require(model.predict, "predict");
    decode(model.predict(data.model));
  }
  if (needs(ModelOutput::kScores)) {
    require(model.score, "score");
    outputs.scores = in_order(model.score(data.model), count, "the score");
  }
  Metrics metrics;
  MetricInputs inputs{data.targets, outputs.predictions, outputs.scores, outputs.aux};
  for (const MetricFn& metric : data.task->metric_fns())
    in_context(fmt::format("metric '{}'", metric.name),
               [&] { merge(metrics, metric.compute(inputs), metric.name); });
  if (!options_.log_dir.empty())
    write_results(options_, data.task->name(), step, data.examples, data.targets, outputs, metrics);
  return metrics;
}

}  // namespace t5x::seqio
