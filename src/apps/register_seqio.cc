// seqio's own names: features, sources, tasks and mixtures (declared in a gin file as objects),
// feature converters and the evaluator.
#include "apps/register.h"
#include "base/error.h"
#include "base/file.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

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

void register_seqio(gin::Registry& registry) {
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
