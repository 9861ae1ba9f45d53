#include "seqio/metrics.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::seqio {
namespace {

void check_same_size(std::string_view metric, const Values& targets, size_t predictions) {
  if (targets.empty()) throw_error<DataError>("{}: there are no targets to compare with", metric);
  if (targets.size() != predictions)
    throw_error<DataError>("{}: {} targets, but {} predictions", metric, targets.size(), predictions);
}

double percent_equal(std::string_view metric, const Values& targets, const Values& predictions) {
  check_same_size(metric, targets, predictions.size());
  size_t equal = 0;
  for (size_t i = 0; i < targets.size(); ++i) equal += targets[i] == predictions[i];
  return 100.0 * static_cast<double>(equal) / static_cast<double>(targets.size());
}

const std::string& text_of(std::string_view metric, const Value& value) {
  if (const auto* text = value.get_ptr<const std::string*>()) return *text;
  throw_error<DataError>("{} compares texts, but got a {}; check the task's postprocessor", metric,
                         value.type_name());
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t begin = text.find_first_not_of(" \t\r\n\f\v", at);
    if (begin == std::string_view::npos) break;
    at = std::min(text.find_first_of(" \t\r\n\f\v", begin), text.size());
    parts.emplace_back(text.substr(begin, at - begin));
  }
  return parts;
}

// UTF-8 sequences; stray bytes count as characters of their own.
std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> parts;
  for (char c : text) {
    bool continues = (static_cast<uint8_t>(c) & 0xc0) == 0x80;
    if (continues && !parts.empty())
      parts.back().push_back(c);
    else
      parts.emplace_back(1, c);
  }
  return parts;
}

std::string lower(const std::string& text) {
  std::string lowered;
  icu::UnicodeString::fromUTF8(text).toLower(icu::Locale::getRoot()).toUTF8String(lowered);
  return lowered;
}

}  // namespace

MetricFn predict_metric(std::string name, std::function<Metrics(const Values&, const Values&)> fn) {
  return {.name = std::move(name),
          .needs = ModelOutput::kPredictions,
          .compute = [fn](const MetricInputs& in) { return fn(in.targets, in.predictions); }};
}

MetricFn score_metric(std::string name,
                      std::function<Metrics(const Values&, const std::vector<double>&)> fn) {
  return {.name = std::move(name), .needs = ModelOutput::kScores, .compute = [fn](const MetricInputs& in) {
            return fn(in.targets, in.scores);
          }};
}

Metrics accuracy(const Values& targets, const Values& predictions) {
  return {{"accuracy", percent_equal("accuracy", targets, predictions)}};
}

Metrics sequence_accuracy(const Values& targets, const Values& predictions) {
  return {{"sequence_accuracy", percent_equal("sequence_accuracy", targets, predictions)}};
}

int64_t edits_between(std::span<const std::string> a, std::span<const std::string> b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int64_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

Metrics edit_distance(const Values& targets, const Values& predictions, bool lower_case) {
  check_same_size("edit_distance", targets, predictions.size());
  std::vector<int64_t> edits;
  for (size_t i = 0; i < targets.size(); ++i) {
    std::string target = text_of("edit_distance", targets[i]),
                prediction = text_of("edit_distance", predictions[i]);
    if (lower_case) target = lower(target), prediction = lower(prediction);
    edits.push_back(edits_between(words(target), words(prediction)));
  }
  std::sort(edits.begin(), edits.end());
  size_t n = edits.size();
  auto sum = static_cast<double>(std::accumulate(edits.begin(), edits.end(), int64_t{0}));
  return {{"min_edit", static_cast<double>(edits.front())},
          {"max_edit", static_cast<double>(edits.back())},
          {"mean_edit", sum / static_cast<double>(n)},
          {"median_edit", static_cast<double>(edits[(n - 1) / 2] + edits[n / 2]) / 2},
          {"sum_edit", sum}};
}

Metrics error_rate(const Values& targets, const Values& predictions, ErrorRateOptions options) {
  check_same_size(options.name, targets, predictions.size());
  int64_t edits = 0, symbols = 0;
  auto split_text = options.per_word ? words : characters;
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<std::string> target = split_text(text_of(options.name, targets[i]));
    edits += edits_between(target, split_text(text_of(options.name, predictions[i])));
    symbols += static_cast<int64_t>(target.size());
  }
  if (symbols == 0)
    throw_error<DataError>("{}: all targets are empty, so a rate means nothing", options.name);
  return {{options.name, 100.0 * static_cast<double>(edits) / static_cast<double>(symbols)}};
}

MetricFn accuracy_metric() { return predict_metric("accuracy", accuracy); }
MetricFn sequence_accuracy_metric() { return predict_metric("sequence_accuracy", sequence_accuracy); }
MetricFn error_rate_metric(ErrorRateOptions options) {
  return predict_metric(options.name, [options](const Values& targets, const Values& predictions) {
    return error_rate(targets, predictions, options);
  });
}

PostprocessFn lower_text() {
  return [](Value decoded, const Example&, bool) -> Value { return lower(text_of("lower_text", decoded)); };
}

PostprocessFn string_to_float(double error_value) {
  return [error_value](Value decoded, const Example&, bool) -> Value {
    std::string_view text = strip(text_of("string_to_float", decoded));
    if (text.starts_with('+')) text.remove_prefix(1);
    double number = error_value;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : error_value;
  };
}

PostprocessFn string_label_to_class_id(std::vector<std::string> label_classes) {
  return [label_classes](Value decoded, const Example&, bool) -> Value {
    auto found =
        std::find(label_classes.begin(), label_classes.end(), text_of("string_label_to_class_id", decoded));
    return found == label_classes.end() ? -1 : static_cast<int>(found - label_classes.begin());
  };
}

}  // namespace t5x::seqio
