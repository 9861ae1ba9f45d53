// Evaluator: runs the metrics of a task, or of every task of a mixture, over what a model makes of the
// evaluation split. Examples keep their order, targets are computed once, metrics join both by index.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seqio/get_dataset.h"
#include "seqio/metrics.h"
#include "seqio/task.h"

namespace t5x::seqio {

struct EvaluatorOptions {
  std::string split = "validation";
  bool use_cached = false;
  int64_t seed = 42;
  std::optional<int64_t> num_examples = std::nullopt;  // nothing: all
  // Missing features get the longest example's length.
  SequenceLength sequence_length = {};
  std::string target_feature = "targets";
  // Directory for <task>-metrics.jsonl and <task>-<step>.jsonl; empty: none are written.
  std::string log_dir = "";
  std::optional<size_t> write_n_results = std::nullopt;  // examples per jsonl; nothing: all
};

// Index of an example in its task's evaluation set, and what the model made of it.
using IndexedTokens = std::vector<std::pair<int64_t, std::vector<int32_t>>>;
using IndexedScores = std::vector<std::pair<int64_t, double>>;

// The model's features of a task, in order: feed these, unbatched ([length] int32), and return one entry for
// each index, in any order. Padding examples of a last batch must be left out.
struct EvalExamples {
  std::string task;
  std::vector<Batch> features;
};
struct ModelFns {
  std::function<IndexedTokens(const EvalExamples&)> predict = {};
  std::function<IndexedScores(const EvalExamples&)> score = {};
  std::function<std::pair<IndexedTokens, AuxValues>(const EvalExamples&)> predict_with_aux = {};
};

class Evaluator {
 public:
  // Reads every task's split once. Throws ConfigError when no task has the split and a metric, or the
  // converter packs.
  Evaluator(std::shared_ptr<const DatasetProvider> provider, FeatureConverterPtr converter,
            EvaluatorOptions options);

  // Tasks that are evaluated.
  std::vector<std::string> task_names() const;
  const EvalExamples& examples(const std::string& task) const { return data(task).model; }
  const Values& targets(const std::string& task) const { return data(task).targets; }
  // Lengths of the model's features.
  const SequenceLength& model_feature_lengths() const { return model_lengths_; }
  // Task -> metrics. Only the model outputs that the metrics need are asked for. Throws DataError when the
  // model left an example out or returned one twice.
  std::map<std::string, Metrics> evaluate(int64_t step, const ModelFns& model) const;

 private:
  struct TaskData {
    TaskPtr task;
    std::vector<Example> examples;
    EvalExamples model;
    Values targets;
  };
  const TaskData& data(const std::string& task) const;
  Metrics evaluate_task(const TaskData& data, int64_t step, const ModelFns& model) const;

  FeatureConverterPtr converter_;
  EvaluatorOptions options_;
  SequenceLength task_lengths_, model_lengths_;
  std::vector<TaskData> tasks_;
};

}  // namespace t5x::seqio
