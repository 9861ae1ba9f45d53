// Preprocessors of seqio and t5. In a task they stand as functions (`@preprocessors.tokenize`), whose
// parameters are bound like any others'; the arguments that seqio passes itself are listed, never bound.
#include "apps/register.h"
#include "base/error.h"
#include "seqio/token_preprocessors.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

using Make = std::function<seqio::Preprocessor(const Args&)>;

void add(gin::Registry& registry, const std::string& name, std::vector<gin::Param> params, Make make,
         std::string help, std::vector<std::string> aliases = {}) {
  registry.add({.name = name,
                .params = with_passed(std::move(params), {"dataset", "output_features", "sequence_length"}),
                .call =
                    [make = std::move(make)](const Args& args) {
                      return Value::object(std::make_shared<seqio::Preprocessor>(make(args)));
                    },
                .help = std::move(help),
                .aliases = std::move(aliases),
                .cheap = true});
}

char one_character(const Args& args, const char* name) {
  const auto text = args.get<std::string>(name);
  if (text.size() != 1) args.fail(name, "expected one character");
  return text[0];
}

void register_seqio_preprocessors(gin::Registry& registry) {
  add(registry, "seqio.preprocessors.rekey", {gin::required<std::map<std::string, Value>>("key_map")},
      [](const Args& args) {
        std::map<std::string, std::string> keys;
        for (const auto& [key, from] : args.get<std::map<std::string, Value>>("key_map")) {
          if (!from.is_none() && !from.is(gin::Kind::kString))
            args.fail("key_map", "expected the name of a feature or None, found " + from.describe());
          keys[key] = from.is_none() ? "" : from.as_string();
        }
        return seqio::rekey(std::move(keys));
      },
      "renames features", {"t5.data.preprocessors.rekey"});
  add(
      registry, "seqio.preprocessors.tokenize",
      {param<bool>("copy_pretokenized", true), param<bool>("with_eos", false)},
      [](const Args& args) {
        return seqio::tokenize({.copy_pretokenized = args.get<bool>("copy_pretokenized"),
                                .with_eos = args.get<bool>("with_eos")});
      },
      "text to ids");
  add(
      registry, "seqio.preprocessors.append_eos", {}, [](const Args&) { return seqio::append_eos(); },
      "end-of-sequence after each feature");
  add(
      registry, "seqio.preprocessors.append_eos_after_trim", {},
      [](const Args&) { return seqio::append_eos_after_trim(); }, "the same, after cutting to length - 1");
  add(
      registry, "seqio.preprocessors.truncate_inputs_left", {},
      [](const Args&) { return seqio::truncate_inputs_left(); }, "keeps the last tokens of the inputs");
  add(
      registry, "seqio.CacheDatasetPlaceholder", {param<bool>("required", false)},
      [](const Args& args) { return seqio::cache_dataset_placeholder(args.get<bool>("required")); },
      "where the offline cache is cut");
}

void register_t5_preprocessors(gin::Registry& registry) {
  add(
      registry, "t5.data.preprocessors.parse_tsv",
      {param<std::vector<std::string>>("field_names", Value::tuple({"inputs", "targets"})),
       param<std::string>("field_delim", "\t"), param<Value>("field_columns", nullptr)},
      [](const Args& args) {
        reject(args, "field_columns", "name all columns in field_names");
        return seqio::parse_tsv({.field_names = args.get<std::vector<std::string>>("field_names"),
                                 .delimiter = one_character(args, "field_delim")});
      },
      "a line to one text for each column");
  add(
      registry, "t5.data.preprocessors.preprocess_tsv",
      {param<std::string>("field_delim", "\t"), param<int32_t>("num_fields", 2),
       param<std::string>("inputs_format", "{0}"), param<std::string>("targets_format", "{1}"),
       param<std::vector<std::string>>("field_names", nullptr)},
      [](const Args& args) {
        seqio::PreprocessTsvOptions options;
        options.delimiter = one_character(args, "field_delim");
        options.num_fields = args.get<int32_t>("num_fields");
        options.inputs_format = args.get<std::string>("inputs_format");
        options.targets_format = args.get<std::string>("targets_format");
        if (!args.value("field_names").is_none())
          options.field_names = args.get<std::vector<std::string>>("field_names");
        return seqio::preprocess_tsv(std::move(options));
      },
      "a line to inputs and targets by templates");
  add(
      registry, "t5.data.preprocessors.span_corruption",
      {param<double>("mean_noise_span_length", 3.0), param<double>("noise_density", 0.15),
       param<Value>("input_feature_key", "inputs"), param<bool>("merge_examples_to_reduce_padding", true),
       param<int64_t>("reserved_for_packing", nullptr),
       param<std::vector<std::string>>("passthrough_feature_keys", nullptr)},
      [](const Args& args) {
        if (!(args.value("input_feature_key") == Value("inputs")))
          args.fail("input_feature_key", "only 'inputs' is supported");
        seqio::SpanCorruptionOptions options;
        options.mean_noise_span_length = args.get<double>("mean_noise_span_length");
        options.noise_density = args.get<double>("noise_density");
        options.merge_examples_to_reduce_padding = args.get<bool>("merge_examples_to_reduce_padding");
        options.reserved_for_packing = args.get_optional<int64_t>("reserved_for_packing");
        if (!args.value("passthrough_feature_keys").is_none())
          options.passthrough_feature_keys = args.get<std::vector<std::string>>("passthrough_feature_keys");
        return seqio::span_corruption(std::move(options));
      },
      "T5's pre-training objective");
  add(
      registry, "t5.data.preprocessors.iid_denoising", {}, [](const Args&) { return seqio::iid_denoising(); },
      "denoising of single tokens");
  add(
      registry, "t5.data.preprocessors.prefix_lm", {}, [](const Args&) { return seqio::prefix_lm(); },
      "the second part of a text from its first");
  add(
      registry, "t5.data.preprocessors.full_lm", {}, [](const Args&) { return seqio::full_lm(); },
      "whole texts as targets");
}

}  // namespace

void register_preprocessors(gin::Registry& registry) {
  register_seqio_preprocessors(registry);
  register_t5_preprocessors(registry);
}

}  // namespace t5x::apps
