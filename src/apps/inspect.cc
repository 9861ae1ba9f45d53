#include "apps/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/program.h"
#include "base/error.h"
#include "base/strings.h"
#include "seqio/get_dataset.h"

namespace t5x::apps {
namespace {

constexpr const char* kDescription =
    "Prints the first examples of a task: from its source, after its preprocessors, and as model features.";
constexpr const char* kExamples = R"(
TASK is a reference such as @pronounce/seqio.Task(), a macro's name, or the name of a registered task; without
it the macro MIXTURE_OR_TASK_NAME of the gin files says which.

Examples:
  seqio inspect --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"'
  seqio inspect --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"' --split=validation --num_examples=10
)";

struct Flags {
  GinFlags gin;
  std::string task, split = "train", lengths;
  uint64_t num_examples = 3;
  bool pack = false, shuffle = false;
  int64_t seed = 0;
};

std::optional<Flags> parse_flags(std::vector<std::string> arguments) {
  Flags flags;
  flags.gin.bindings = take_gin_bindings(arguments);
  CLI::App app(kDescription, "seqio inspect");
  app.footer(kExamples);
  app.add_option("task", flags.task, "which task")->type_name("TASK");
  app.add_option("--gin_file", flags.gin.files, "a gin file; repeat it for more")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--gin_search_paths", flags.gin.search_paths,
                 "directories for gin files, separated by commas")
      ->type_name("DIRS")
      ->allow_extra_args(false);
  app.add_option("--split", flags.split, "default: train")->type_name("NAME");
  app.add_option("--num_examples", flags.num_examples, "default: 3")->type_name("N");
  app.add_option("--task_feature_lengths", flags.lengths,
                 "inputs=32,targets=96 (default: TASK_FEATURE_LENGTHS)")
      ->type_name("LENGTHS");
  app.add_flag("--pack", flags.pack, "several examples in one");
  app.add_flag("--shuffle", flags.shuffle, "in the order that training with --seed sees");
  app.add_option("--seed", flags.seed, "default: 0")->type_name("N");
  app.allow_extras();
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw_error<UsageError>("{}; see seqio inspect --help", e.what());
  }
  if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    throw_unknown_arguments(unknown, known, "seqio inspect");
  }
  return flags;
}

std::shared_ptr<const seqio::DatasetProvider> find_provider(gin::Config& config, const std::string& task) {
  gin::Value value;
  if (!task.empty() && task[0] == '@') {
    config.bind("SEQIO_INSPECT_TASK=" + task);
    value = config.value("SEQIO_INSPECT_TASK");
  } else {
    const std::string key = task.empty() ? "MIXTURE_OR_TASK_NAME" : task;
    if (config.query(key) != nullptr)
      value = config.value(key);
    else if (task.empty())
      throw_error<UsageError>("which task? Name one, or a gin file that sets MIXTURE_OR_TASK_NAME");
    else
      value = gin::Value(task);
  }
  if (value.is(gin::Kind::kString)) return seqio::get_mixture_or_task(value.as_string());
  if (!gin::Convert<std::shared_ptr<const seqio::DatasetProvider>>::accepts(value))
    throw_error<ConfigError>("expected a task or mixture, found {}", value.describe());
  return gin::Convert<std::shared_ptr<const seqio::DatasetProvider>>::from(value);
}

seqio::SequenceLength find_lengths(gin::Config& config, const std::string& flag) {
  seqio::SequenceLength lengths;
  if (!flag.empty()) {
    for (const std::string& item : split(flag, ',')) {
      const std::vector<std::string> parts = split(item, '=');
      if (parts.size() != 2 || parts[1].empty() ||
          parts[1].find_first_not_of("0123456789") != std::string::npos || parts[1].size() > 9)
        throw_error<UsageError>("--task_feature_lengths: expected NAME=LENGTH, found '{}'", item);
      lengths[parts[0]] = std::stoll(parts[1]);
    }
    return lengths;
  }
  if (config.query("TASK_FEATURE_LENGTHS") == nullptr) return lengths;
  const gin::Value value = config.value("TASK_FEATURE_LENGTHS");
  if (value.is_none()) return lengths;
  if (!gin::Convert<seqio::SequenceLength>::accepts(value))
    throw_error<ConfigError>("TASK_FEATURE_LENGTHS: expected {}, found {}",
                             gin::Convert<seqio::SequenceLength>::expected(), value.describe());
  return gin::Convert<seqio::SequenceLength>::from(value);
}

// "   inputs        int32(7)  104 101 ...  'hello'"
void print_example(const seqio::Example& example, const seqio::Features& features) {
  for (const auto& [feature, value] : example) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      fmt::print("  {:<24} {}\n", feature, gin::Value(*text).repr());
      continue;
    }
    const auto* array = std::get_if<Array>(&value);
    if (array == nullptr || array->dtype() != DType::kInt32) {
      fmt::print("  {:<24} {}\n", feature, seqio::describe(value));
      continue;
    }
    const std::span<const int32_t> ids = array->values<int32_t>();
    constexpr size_t kShown = 40;
    fmt::print("  {:<24} {} {}{}\n", feature, array->describe(),
               fmt::join(ids.first(std::min(kShown, ids.size())), " "), ids.size() > kShown ? " ..." : "");
    // Of a model's features those of tokens are text as well.
    const bool inputs = feature == "encoder_input_tokens";
    const bool targets = feature == "decoder_target_tokens" || feature == "decoder_input_tokens";
    auto found = features.find(inputs ? "inputs" : targets ? "targets" : feature);
    if (found != features.end() && found->second.vocabulary)
      fmt::print("  {:<24} {}\n", "", gin::Value(found->second.vocabulary->decode(ids)).repr());
  }
}

void print_examples(const char* title, const seqio::Dataset& dataset, const Flags& flags,
                    const seqio::Features& features) {
  fmt::print("== {}\n", title);
  const std::vector<seqio::Example> examples = seqio::collect(dataset.take(flags.num_examples));
  for (size_t i = 0; i < examples.size(); ++i) {
    fmt::print("{}.\n", i + 1);
    print_example(examples[i], features);
  }
  if (examples.empty()) fmt::print("  (no examples)\n");
}

}  // namespace

int inspect_command(std::vector<std::string> arguments) {
  const std::optional<Flags> flags = parse_flags(std::move(arguments));
  if (!flags) return 0;
  Configuration configuration(/*dry_run=*/false);
  configuration.parse(flags->gin);
  const auto provider = find_provider(configuration.config, flags->task);
  const seqio::SequenceLength lengths = find_lengths(configuration.config, flags->lengths);
  const seqio::Features& features = provider->output_features();
  const auto count = provider->num_input_examples(flags->split);
  fmt::print("'{}', split '{}', {} examples\n", provider->name(), flags->split,
             count ? std::to_string(*count) : "an unknown number of");

  if (auto task = std::dynamic_pointer_cast<const seqio::Task>(provider)) {
    fmt::print("source: {}\n", task->source().describe());
    print_examples("from the source", task->source().get_dataset({.split = flags->split}), *flags, {});
  }
  seqio::DatasetRequest request;
  if (!lengths.empty()) request.sequence_length = lengths;
  request.split = flags->split;
  request.shuffle = flags->shuffle;
  request.seed = flags->seed;
  print_examples("after the preprocessors", provider->get_dataset(request), *flags, features);
  if (lengths.empty()) {
    fmt::print("== as model features\n  (needs --task_feature_lengths, such as inputs=32,targets=96)\n");
    return 0;
  }
  const seqio::EncDecFeatureConverter converter({.pack = flags->pack});
  print_examples(flags->pack ? "as model features, packed" : "as model features",
                 seqio::get_dataset(*provider, converter,
                                    {.task_feature_lengths = lengths,
                                     .split = flags->split,
                                     .shuffle = flags->shuffle,
                                     .seed = flags->seed}),
                 *flags, features);
  return 0;
}

}  // namespace t5x::apps
