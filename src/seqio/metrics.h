// Metrics and postprocessors: functions over the targets and predictions of a whole evaluation split.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "seqio/example.h"

namespace t5x::seqio {

// What a postprocessor makes of a decoded text: usually a string, but a number, list or object too.
using Value = nlohmann::json;
using Values = std::vector<Value>;
using MetricValue = std::variant<double, std::string>;  // a scalar, or a text
using Metrics = std::map<std::string, MetricValue>;

enum class ModelOutput { kPredictions, kScores, kPredictionsWithAux };

// Feature name -> one value per example: what a model returns beside its predictions.
using AuxValues = std::map<std::string, Values>;
struct MetricInputs {
  const Values& targets;
  const Values& predictions;          // postprocessed; empty for kScores
  const std::vector<double>& scores;  // empty unless kScores
  const AuxValues& aux_values;
};

struct MetricFn {
  std::string name;
  ModelOutput needs = ModelOutput::kPredictions;
  std::function<Metrics(const MetricInputs&)> compute;
};
// A metric over targets and predictions.
MetricFn predict_metric(std::string name,
                        std::function<Metrics(const Values& targets, const Values& predictions)> fn);
MetricFn score_metric(std::string name,
                      std::function<Metrics(const Values& targets, const std::vector<double>& scores)> fn);

// 100 x the share of predictions equal to their target: {"accuracy"}.
Metrics accuracy(const Values& targets, const Values& predictions);
// 100 x the share of equal texts: {"sequence_accuracy"}.
Metrics sequence_accuracy(const Values& targets, const Values& predictions);

// Edits (substitutions, insertions, deletions) that turn `b` into `a`, over their symbols.
int64_t edits_between(std::span<const std::string> a, std::span<const std::string> b);
// t5's: {"min_edit", "max_edit", "mean_edit", "median_edit", "sum_edit"} over words.
Metrics edit_distance(const Values& targets, const Values& predictions, bool lower = true);
struct ErrorRateOptions {
  std::string name = "wer";
  bool per_word = true;  // false: per Unicode character
};
// 100 x edits / symbols of the targets, over the whole set: {"wer"}; with blanks separating words or
// phonemes.
Metrics error_rate(const Values& targets, const Values& predictions, ErrorRateOptions options = {});

MetricFn accuracy_metric();
MetricFn sequence_accuracy_metric();
// Word or phoneme error rate.
MetricFn error_rate_metric(ErrorRateOptions options = {});

using PostprocessFn = std::function<Value(Value decoded, const Example& example, bool is_target)>;
PostprocessFn lower_text();
// A number, or `error_value` when the text is none.
PostprocessFn string_to_float(double error_value = -1.0);
// The index of the text among `label_classes`, or -1.
PostprocessFn string_label_to_class_id(std::vector<std::string> label_classes);

}  // namespace t5x::seqio
