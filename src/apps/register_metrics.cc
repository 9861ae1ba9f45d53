// Metrics and postprocessors of t5, and our error rate. In a task they stand as functions
// (`@metrics.accuracy`).
#include "apps/register.h"
#include "base/error.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

void add_metric(gin::Registry& registry, const std::string& name, std::vector<gin::Param> params,
                std::function<seqio::MetricFn(const Args&)> make, std::string help) {
  registry.add(
      {.name = name,
       .params = with_passed(std::move(params), {"targets", "predictions"}),
       .call = [make = std::move(make)](
                   const Args& args) { return Value::object(std::make_shared<seqio::MetricFn>(make(args))); },
       .help = std::move(help),
       .cheap = true});
}

void add_postprocessor(gin::Registry& registry, const std::string& name, std::vector<gin::Param> params,
                       std::function<seqio::PostprocessFn(const Args&)> make, std::string help) {
  registry.add(
      {.name = name,
       .params = with_passed(std::move(params), {"decoded_model_output", "string", "example", "is_target"}),
       .call =
           [make = std::move(make)](const Args& args) {
             return Value::object(std::make_shared<seqio::PostprocessFn>(make(args)));
           },
       .help = std::move(help),
       .cheap = true});
}

}  // namespace

void register_metrics(gin::Registry& registry) {
  add_metric(
      registry, "t5.evaluation.metrics.accuracy", {}, [](const Args&) { return seqio::accuracy_metric(); },
      "share of equal values, in percent");
  add_metric(
      registry, "t5.evaluation.metrics.sequence_accuracy", {},
      [](const Args&) { return seqio::sequence_accuracy_metric(); }, "share of equal texts, in percent");
  add_metric(
      registry, "t5.evaluation.metrics.edit_distance", {param<bool>("lower", true)},
      [](const Args& args) {
        return seqio::predict_metric("edit_distance",
                                     [lower = args.get<bool>("lower")](const seqio::Values& targets,
                                                                       const seqio::Values& predictions) {
                                       return seqio::edit_distance(targets, predictions, lower);
                                     });
      },
      "edits over words");
  add_metric(
      registry, "seqio.metrics.error_rate",
      {param<std::string>("name", "wer"), param<bool>("per_word", true)},
      [](const Args& args) {
        return seqio::error_rate_metric(
            {.name = args.get<std::string>("name"), .per_word = args.get<bool>("per_word")});
      },
      "edits for each 100 words, phonemes or characters of the targets");
  add_postprocessor(
      registry, "t5.data.postprocessors.lower_text", {}, [](const Args&) { return seqio::lower_text(); },
      "lower case");
  add_postprocessor(
      registry, "t5.data.postprocessors.string_to_float", {param<double>("default_value", -1.0)},
      [](const Args& args) { return seqio::string_to_float(args.get<double>("default_value")); },
      "a number from a text");
  add_postprocessor(
      registry, "t5.data.postprocessors.string_label_to_class_id",
      {gin::required<std::vector<std::string>>("label_classes")},
      [](const Args& args) {
        return seqio::string_label_to_class_id(args.get<std::vector<std::string>>("label_classes"));
      },
      "the index of a label");
}

}  // namespace t5x::apps
