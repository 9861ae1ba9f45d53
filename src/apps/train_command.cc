#include "apps/train_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "apps/program.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "nn/scope.h"
#include "train/progress.h"

namespace t5x::apps {
namespace {

constexpr const char* kDescription =
    "Trains a model as a gin configuration says, continuing from the last checkpoint in MODEL_DIR if there "
    "is "
    "one.\nCtrl-C saves a checkpoint and ends the run; the same command continues it.";

constexpr const char* kExamples = R"(
Configuration, in the language of gin (docs/gin.md, docs/configs.md):
  --gin.NAME=VALUE            sets a macro: --gin.TRAIN_STEPS=1000 --gin.MODEL_DIR='"/tmp/model"'
  --gin.SCOPE/NAME.PARAM=VALUE  sets a parameter: --gin.train/DatasetConfig.batch_size=64
  Flags win over files, later files and flags over earlier ones. Text values keep their quotes.
  Files are looked for in the current directory, in --gin_search_paths, then among those of the program.

Examples:
  # What would run: evaluates the whole configuration, loads no plugin and reads no data.
  t5x train --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"' --model_dir=/tmp/pronounce --dry_run
  # The same, for real.
  t5x train --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"' --model_dir=/tmp/pronounce
  # Two virtual CPU devices, data parallel.
  t5x train ... --cpu_devices=2
  # A model's sizes and a run's settings from separate files, as t5x has them.
  t5x train --gin_file=t5x/examples/t5/t5_1_1/small.gin --gin_file=t5x/configs/runs/pretrain.gin \
    --gin_file=my_task.gin --model_dir=/tmp/model

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted (the state is saved).
)";

struct Flags {
  GinFlags gin;
  bool dry_run = false, quiet = false;
  std::string model_dir, compile_cache, plugin;
  int64_t cpu_devices = 0;
};

// Nothing: help was printed.
std::optional<Flags> parse_flags(std::vector<std::string> arguments) {
  Flags flags;
  flags.gin.bindings = take_gin_bindings(arguments);
  CLI::App app(kDescription, "t5x train");
  app.footer(kExamples);
  std::vector<std::string> more;
  bool ignored = false;
  app.add_option("--gin_file", flags.gin.files, "a gin file; repeat it for more, later ones win")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--gin_bindings", more, "NAME=VALUE, as --gin.NAME=VALUE")
      ->type_name("BINDING")
      ->allow_extra_args(false);
  app.add_option("--gin_search_paths", flags.gin.search_paths,
                 "directories for gin files, separated by commas")
      ->type_name("DIRS")
      ->allow_extra_args(false);
  app.add_option("--model_dir", flags.model_dir, "checkpoints and logs: --gin.MODEL_DIR without the quotes")
      ->type_name("DIR");
  app.add_flag("--dry_run", flags.dry_run, "evaluate and check everything, print what would run, and end");
  app.add_option("--cpu_devices", flags.cpu_devices, "virtual devices of a CPU plugin (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_option("--plugin", flags.plugin,
                 "a PJRT plugin (default: $T5X_PJRT_PLUGIN, then the installed one)")
      ->type_name("FILE");
  app.add_option(
         "--compile_cache", flags.compile_cache,
         "where compiled programs are kept, or 'off' (default: $T5X_COMPILE_CACHE, then ~/.cache/t5x)")
      ->type_name("DIR");
  app.add_flag("--quiet", flags.quiet, "warnings and errors only");
  app.add_flag("--alsologtostderr,--logtostderr", ignored, "accepted; messages always go there")->group("");
  app.allow_extras();
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw_error<UsageError>("{}; see t5x train --help", e.what());
  }
  if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
    std::vector<std::string> known = {"--gin.NAME=VALUE"};
    for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    throw_unknown_arguments(unknown, known, "t5x train");
  }
  flags.gin.bindings.insert(flags.gin.bindings.begin(), more.begin(), more.end());
  if (flags.gin.files.empty()) {
    throw_error<UsageError>("which configuration? Name one: t5x train --gin_file=FILE; see t5x train --help");
  }
  return flags;
}

// The device mesh for that many devices.
void set_mesh(TrainConfig& config, int64_t devices, const char* hint) {
  Mesh& mesh = config.trainer.mesh;
  if (devices % mesh.model != 0) {
    throw_error<ConfigError>("num_partitions is {}, but there {} {} device{}, which is no multiple of it{}",
                             mesh.model, devices == 1 ? "is" : "are", devices, devices == 1 ? "" : "s", hint);
  }
  mesh.data = devices / mesh.model;
}
constexpr const char* kDevicesHint = "; set --cpu_devices=N for a CPU, or PjitPartitioner.num_partitions";

// Looks for the files of every split that will be read. A dry run only warns.
void check_data(const TrainConfig& config, bool dry_run) {
  for (const DatasetConfig* data :
       {&config.train_dataset, config.train_eval_dataset ? &*config.train_eval_dataset : nullptr,
        config.infer_eval_dataset ? &*config.infer_eval_dataset : nullptr}) {
    if (data == nullptr) continue;
    for (const seqio::TaskPtr& task : seqio::get_subtasks(data->mixture_or_task)) {
      try {
        for (const std::string& file : task->source().list_shards(data->split)) {
          if (file.find('/') != std::string::npos && !is_file(file))
            throw_error<DataError>("task '{}': there is no file '{}' for the split '{}'", task->name(), file,
                                   data->split);
        }
      } catch (const Error& e) {
        if (!dry_run) throw;
        log_warning("{}", e.message());
      }
    }
  }
}

std::string describe(const DatasetConfig& data) {
  std::string lengths;
  for (const auto& [feature, length] : data.task_feature_lengths)
    lengths += fmt::format(", {} {}", feature, length);
  return fmt::format("'{}' split '{}', batches of {}{}{}", data.mixture_or_task->name(), data.split,
                     data.batch_size, lengths.empty() ? ", as long as the longest example" : lengths,
                     data.pack ? ", packed" : "");
}

void print_summary(const TrainConfig& config) {
  const models::T5Config& net = config.trainer.model->network();
  auto line = [](const char* what, const std::string& text) { fmt::print("{:<14} {}\n", what, text); };
  line("model",
       fmt::format(
           "{} parameters: {}+{} layers, emb_dim {}, {} heads of {}, mlp_dim {} ({}), vocabulary {}, {}",
           format_count(nn::count_parameters(config.trainer.model->param_specs())), net.num_encoder_layers,
           net.num_decoder_layers, net.emb_dim, net.num_heads, net.head_dim, net.mlp_dim,
           fmt::join(net.mlp_activations, ", "), net.vocab_size, name(net.dtype)));
  line("devices", fmt::format("{} x {} (data x model)", config.trainer.mesh.data, config.trainer.mesh.model));
  line("train", describe(config.train_dataset));
  if (config.train_eval_dataset) line("train_eval", describe(*config.train_eval_dataset));
  if (config.infer_eval_dataset) line("infer_eval", describe(*config.infer_eval_dataset));
  line("steps", fmt::format("{}, evaluation every {}, {} microbatch{}", format_count(config.total_steps),
                            format_count(config.eval_period), config.trainer.num_microbatches,
                            config.trainer.num_microbatches == 1 ? "" : "es"));
  const auto& rate = config.trainer.learning_rate;
  line("learning rate", fmt::format("{:.3g} at step 1, {:.3g} halfway, {:.3g} at the end", rate(int64_t{1}),
                                    rate(config.total_steps / 2), rate(config.total_steps)));
  line("checkpoints",
       config.save ? fmt::format("every {} steps in {}", format_count(config.save->period), config.model_dir)
                   : "none");
  if (config.restore) line("starts from", config.restore->path);
}

// Large pages halve the time that memory costs, and the C library takes its tunables only when a process
// starts.
void start_with_large_pages() {
#ifndef T5X_SANITIZED
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  std::vector<char*> arguments;
  const std::string text = read_file("/proc/self/cmdline");
  for (size_t at = 0; at < text.size(); at += std::string_view(text.c_str() + at).size() + 1)
    arguments.push_back(const_cast<char*>(text.c_str() + at));
  arguments.push_back(nullptr);
  setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
  execv("/proc/self/exe", arguments.data());  // returns only when it failed: then it goes without
#endif
}

int run(const TrainConfig& from_gin, const Flags& flags) {
  TrainConfig config = from_gin;
  const pjrt::Client client =
      pjrt::Client::create({.plugin = flags.plugin, .cpu_device_count = flags.cpu_devices});
  set_mesh(config, static_cast<int64_t>(client.addressable_devices().size()), kDevicesHint);
  check_train_config(config);
  const CompileCache cache({.directory = flags.compile_cache});
  const TrainResult result = train(client, config, &cache);
  return result.interrupted ? kExitInterrupted : 0;
}

}  // namespace

int train_command(std::vector<std::string> arguments) {
  const std::optional<Flags> parsed = parse_flags(std::move(arguments));
  if (!parsed) return 0;
  Flags flags = *parsed;
  set_log_quiet(flags.quiet);
  if (!flags.dry_run) start_with_large_pages();
  if (flags.cpu_devices == 0)
    flags.cpu_devices = flags.plugin.empty() && std::getenv("T5X_PJRT_PLUGIN") == nullptr ? 1 : 0;

  Configuration configuration(flags.dry_run);
  configuration.parse(flags.gin);
  if (!flags.model_dir.empty()) configuration.config.bind_value("MODEL_DIR", gin::Value(flags.model_dir));
  configuration.config.finalize();
  const auto config = configuration.config.call("t5x.train.train").as_object().as<TrainConfig>();
  if (flags.cpu_devices > 0) set_mesh(*config, flags.cpu_devices, kDevicesHint);
  check_train_config(*config);
  check_data(*config, flags.dry_run);
  if (!flags.dry_run) return run(*config, flags);
  print_summary(*config);
  return 0;
}

}  // namespace t5x::apps
