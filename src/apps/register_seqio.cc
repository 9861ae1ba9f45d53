// seqio's own names: vocabularies, features, sources, tasks and mixtures (declared in a gin file as objects),
// feature converters and the evaluator.
#include "apps/register.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

// Stands for a vocabulary whose file is not here, in a dry run.
class MissingVocabulary : public seqio::Vocabulary {
 public:
  explicit MissingVocabulary(std::string file) : file_(std::move(file)) {}
  using seqio::Vocabulary::encode;
  std::optional<int32_t> eos_id() const override { return 1; }
  std::optional<int32_t> unk_id() const override { return 2; }
  void encode(std::string_view, std::vector<int32_t>&) const override { fail(); }
  std::string describe() const override { return "SentencePieceVocabulary('" + file_ + "', not read)"; }

 protected:
  int64_t base_vocab_size() const override { return 0; }
  std::string decode_ids(std::span<const int32_t>) const override { fail(); }

 private:
  [[noreturn]] void fail() const { throw_error<InternalError>("the vocabulary '{}' was not read", file_); }
  std::string file_;
};

Value vocabulary_value(const seqio::VocabularyPtr& vocabulary) { return Value::object(vocabulary); }

Value sentencepiece(const Args& args, const ContextPtr& context, const std::string& file,
                    const seqio::SentencePieceOptions& options) {
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}", file, options.extra_ids, options.reverse_extra_ids,
                  static_cast<int>(options.normalizer.add_dummy_prefix.value_or(2)),
                  static_cast<int>(options.normalizer.remove_extra_whitespaces.value_or(2)),
                  static_cast<int>(options.normalizer.escape_whitespaces.value_or(2)));
  seqio::VocabularyPtr& known = context->vocabularies[key];
  if (known) return vocabulary_value(known);
  if (!is_file(file)) {
    const std::string what = fmt::format(
        "the vocabulary '{}' is not a file here{}; fetch it and set "
        "--gin.SentencePieceVocabulary.sentencepiece_model_file='\"PATH\"'",
        file, file.starts_with("gs://") ? " (buckets are not read)" : "");
    if (!context->dry_run) {
      context->vocabularies.erase(key);
      if (args.find("sentencepiece_model_file") == nullptr) throw ConfigError(what);
      args.fail("sentencepiece_model_file", what);
    }
    log_warning("{}", what);
    known = std::make_shared<const MissingVocabulary>(file);
  } else {
    known = std::make_shared<const seqio::SentencePieceVocabulary>(file, options);
  }
  return vocabulary_value(known);
}

seqio::SentencePieceOptions sentencepiece_options(const Args& args) {
  for (const char* name :
       {"modality_extra_id_n_frames", "hack_to_t5_start_tokens", "prefix_as_special_token"})
    reject(args, name, "it is for models of other modalities");
  seqio::SentencePieceOptions options;
  options.extra_ids = args.get_optional<int32_t>("extra_ids").value_or(0);
  options.reverse_extra_ids = args.get<bool>("reverse_extra_ids");
  if (!args.value("normalizer_options_override").is_none()) {
    for (const auto& [key, value] : args.get<std::map<std::string, bool>>("normalizer_options_override")) {
      if (key == "add_dummy_prefix")
        options.normalizer.add_dummy_prefix = value;
      else if (key == "remove_extra_whitespaces")
        options.normalizer.remove_extra_whitespaces = value;
      else if (key == "escape_whitespaces")
        options.normalizer.escape_whitespaces = value;
      else
        args.fail("normalizer_options_override", fmt::format("there is no option '{}'", key));
    }
  }
  return options;
}

void register_vocabularies(gin::Registry& registry, const ContextPtr& context) {
  registry.add(
      {.name = "seqio.SentencePieceVocabulary",
       .params = {gin::required<std::string>("sentencepiece_model_file"),
                  param<int32_t>("extra_ids", nullptr),
                  param<std::map<std::string, bool>>("normalizer_options_override", nullptr),
                  param<bool>("reverse_extra_ids", true), param<Value>("modality_extra_id_n_frames", nullptr),
                  param<Value>("hack_to_t5_start_tokens", nullptr),
                  param<Value>("prefix_as_special_token", nullptr),
                  param<Value>("use_fast_tokenizer", false)},
       .call =
           [context](const Args& args) {
             return sentencepiece(args, context, args.get<std::string>("sentencepiece_model_file"),
                                  sentencepiece_options(args));
           },
       .help = "a SentencePiece model",
       .aliases = {"seqio.vocabularies.SentencePieceVocabulary"},
       .cheap = true});
  registry.add({.name = "t5.data.get_default_vocabulary",
                .params = {},
                .call =
                    [context](const Args& args) {
                      return sentencepiece(args, context,
                                           "gs://t5-data/vocabs/cc_all.32000/sentencepiece.model",
                                           {.extra_ids = 100});
                    },
                .help = "the vocabulary of T5 with 100 extra ids",
                .aliases = {"t5.data.utils.get_default_vocabulary"},
                .cheap = true});
  registry.add({.name = "seqio.ByteVocabulary",
                .params = {param<int32_t>("extra_ids", 0)},
                .call =
                    [](const Args& args) {
                      return vocabulary_value(
                          std::make_shared<seqio::ByteVocabulary>(args.get<int32_t>("extra_ids")));
                    },
                .help = "UTF-8 bytes",
                .aliases = {"seqio.vocabularies.ByteVocabulary"},
                .cheap = true});
  registry.add({.name = "seqio.PassThroughVocabulary",
                .params = {gin::required<int64_t>("size"), param<int32_t>("eos_id", nullptr)},
                .call =
                    [](const Args& args) {
                      return vocabulary_value(std::make_shared<seqio::PassThroughVocabulary>(
                          args.get<int64_t>("size"), args.get_optional<int32_t>("eos_id")));
                    },
                .help = "ids that are ids already",
                .aliases = {"seqio.vocabularies.PassThroughVocabulary"},
                .cheap = true});
}

// A pattern or a list of them for each split, below `directory` if that is given.
seqio::SplitFiles split_files(const Args& args) {
  const auto directory = args.get_optional<std::string>("directory");
  seqio::SplitFiles files;
  for (const auto& [split, value] : args.get<std::map<std::string, Value>>("split_to_filepattern")) {
    Value::Items patterns = {value};
    if (value.is(gin::Kind::kList) || value.is(gin::Kind::kTuple)) patterns = value.items();
    for (const Value& pattern : patterns) {
      if (!pattern.is(gin::Kind::kString))
        args.fail("split_to_filepattern",
                  "expected a pattern or a list of them for each split, found " + pattern.describe());
      files[split].push_back(directory ? (fs::path(*directory) / pattern.as_string()).string()
                                       : pattern.as_string());
    }
  }
  return files;
}

seqio::FileSourceOptions file_options(const Args& args) {
  seqio::FileSourceOptions options;
  if (!args.value("num_input_examples").is_none())
    options.num_input_examples = args.get<std::map<std::string, int64_t>>("num_input_examples");
  options.file_shuffle_buffer_size = args.get_optional<uint64_t>("file_shuffle_buffer_size");
  return options;
}

void register_sources(gin::Registry& registry) {
  const std::vector<gin::Param> files = {
      gin::required<std::map<std::string, Value>>("split_to_filepattern"),
      param<std::string>("directory", nullptr, "what relative patterns are relative to"),
      param<uint64_t>("skip_header_lines", 0),
      param<std::map<std::string, int64_t>>("num_input_examples", nullptr),
      param<Value>("caching_permitted", true),
      param<uint64_t>("file_shuffle_buffer_size", nullptr)};
  registry.add({.name = "seqio.TextLineDataSource",
                .params = files,
                .call =
                    [](const Args& args) {
                      return Value::object(seqio::text_line_source(
                          split_files(args), {.files = file_options(args),
                                              .skip_header_lines = args.get<uint64_t>("skip_header_lines")}));
                    },
                .help = "lines of text files",
                .cheap = true});
  std::vector<gin::Param> tsv = files;
  tsv.push_back(
      param<std::vector<std::string>>("columns", Value::tuple({}), "empty: the header line names them"));
  tsv.push_back(param<std::string>("delimiter", "\t"));
  registry.add({.name = "seqio.TsvDataSource",
                .params = tsv,
                .call =
                    [](const Args& args) {
                      const auto delimiter = args.get<std::string>("delimiter");
                      if (delimiter.size() != 1) args.fail("delimiter", "expected one character");
                      return Value::object(seqio::tsv_source(
                          split_files(args), {.files = file_options(args),
                                              .columns = args.get<std::vector<std::string>>("columns"),
                                              .skip_header_lines = args.get<uint64_t>("skip_header_lines"),
                                              .delimiter = delimiter[0]}));
                    },
                .help = "rows of tab separated files, a feature for each column",
                .cheap = true});
}

Value make_feature(const Args& args) {
  auto made = std::make_shared<seqio::Feature>();
  made->vocabulary = args.get<std::shared_ptr<const seqio::Vocabulary>>("vocabulary");
  made->add_eos = args.get<bool>("add_eos");
  made->required = args.get<bool>("required");
  made->dtype = dtype_argument(args, "dtype");
  made->rank = args.get<int32_t>("rank");
  return Value::object(made);
}

Value make_task(const Args& args) {
  seqio::TaskConfig config;
  config.name = args.get<std::string>("name");
  config.source = make<const seqio::DataSource>(args, "source");
  for (const auto& preprocessor : make_all<seqio::Preprocessor>(args, "preprocessors"))
    config.preprocessors.push_back(*preprocessor);
  for (const auto& [name, feature] : args.get<std::map<std::string, Value>>("output_features"))
    config.output_features[name] = *make<seqio::Feature>(args, "output_features", feature);
  if (auto postprocess = make<seqio::PostprocessFn>(args, "postprocess_fn"))
    config.postprocess_fn = *postprocess;
  for (const auto& metric : make_all<seqio::MetricFn>(args, "metric_fns"))
    config.metric_fns.push_back(*metric);
  config.shuffle_buffer_size = args.get_optional<uint64_t>("shuffle_buffer_size");
  return Value::object(std::make_shared<const seqio::Task>(std::move(config)));
}

// Tasks are names, task objects, or pairs of either with a rate.
Value make_mixture(const Args& args) {
  seqio::TaskRegistry tasks;
  seqio::MixtureConfig config;
  config.name = args.get<std::string>("name");
  if (!args.value("default_rate").is_none()) config.default_rate = args.get<double>("default_rate");
  auto task_name = [&](const Value& item) {
    seqio::TaskPtr task = item.is(gin::Kind::kString) ? seqio::TaskRegistry::global().get(item.as_string())
                                                      : make<const seqio::Task>(args, "tasks", item);
    if (!tasks.find(task->name())) tasks.add(task);
    return task->name();
  };
  for (const Value& item : args.get<std::vector<Value>>("tasks")) {
    if (!item.is(gin::Kind::kTuple) && !item.is(gin::Kind::kList)) {
      config.tasks.push_back({.name = task_name(item)});
      continue;
    }
    const bool pair = item.items().size() == 2 && gin::Convert<double>::accepts(item.items()[1]);
    if (!pair) args.fail("tasks", "expected a task or a pair (task, rate), found " + item.describe());
    config.tasks.push_back(
        {.name = task_name(item.items()[0]), .rate = gin::Convert<double>::from(item.items()[1])});
  }
  const seqio::MixtureRegistry mixtures;
  return Value::object(std::make_shared<const seqio::Mixture>(std::move(config), tasks, mixtures));
}

// Classes that t5x's configurations mention and this program has its own of.
void register_accepted(gin::Registry& registry) {
  const std::pair<const char*, std::vector<gin::Param>> accepted[] = {
      {"seqio.PyLoggingLogger", {}},
      {"seqio.TensorBoardLogger", {}},
      {"seqio.TensorBoardLoggerV1", {}},
      {"seqio.JSONLogger",
       {param<int64_t>("write_n_results", nullptr), param<Value>("non_serializable_keys", nullptr)}},
      {"seqio.EncDecFeatureConverter",
       {param<Value>("pack", true), param<Value>("use_custom_packing_ops", false),
        param<Value>("apply_length_check", true), param<Value>("bos_id", 0),
        param<Value>("passthrough_features", nullptr)}}};
  for (const auto& [name, params] : accepted) {
    registry.add(
        {.name = name,
         .params = with_passed(params, {"output_dir", "summary_dir"}),
         .call = [name = std::string(name)](
                     const Args&) { return Value::object(std::make_shared<Accepted>(Accepted{name})); },
         .help = "accepted; this program has its own",
         .cheap = true});
  }
  registry.add({.name = "seqio.Evaluator",
                .params = with_passed(
                    {param<int64_t>("num_examples", nullptr), param<Value>("logger_cls", nullptr),
                     param<Value>("use_memory_cache", true), param<Value>("target_field_name", "targets"),
                     param<Value>("shuffle", false), param<Value>("log_dir", nullptr)},
                    {"mixture_or_task_name", "feature_converter", "eval_split", "use_cached", "seed",
                     "sequence_length"}),
                .call =
                    [](const Args& args) {
                      return Value::object(std::make_shared<EvaluatorSettings>(
                          EvaluatorSettings{args.get_optional<int64_t>("num_examples")}));
                    },
                .help = "evaluation by a task's own metrics",
                .cheap = true});
}

}  // namespace

void register_seqio(gin::Registry& registry, const ContextPtr& context) {
  register_vocabularies(registry, context);
  register_sources(registry);
  registry.add({.name = "seqio.Feature",
                .params = {gin::required<std::shared_ptr<const seqio::Vocabulary>>("vocabulary"),
                           param<bool>("add_eos", true), param<bool>("required", true),
                           param<Value>("dtype", "int32"), param<int32_t>("rank", 1)},
                .call = make_feature,
                .help = "what a feature is made of",
                .cheap = true});
  registry.add(
      {.name = "seqio.Task",
       .params = {gin::required<std::string>("name"), gin::required<Value>("source"),
                  gin::required<std::map<std::string, Value>>("output_features"),
                  param<std::vector<Value>>("preprocessors", nullptr),
                  param<Value>("postprocess_fn", nullptr), param<std::vector<Value>>("metric_fns", nullptr),
                  param<uint64_t>("shuffle_buffer_size", 1000), param<Value>("source_info", nullptr)},
       .call = make_task,
       .help = "a task, declared where it is used",
       .cheap = true});
  registry.add({.name = "seqio.Mixture",
                .params = {gin::required<std::string>("name"), gin::required<std::vector<Value>>("tasks"),
                           param<double>("default_rate", nullptr)},
                .call = make_mixture,
                .help = "several tasks with their rates",
                .cheap = true});
  register_accepted(registry);
}

}  // namespace t5x::apps
