// The training program's configuration: t5x/utils.py and t5x/train.py.
#include <algorithm>
#include <chrono>

#include "apps/register.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "gin/config.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

constexpr const char* kPython = "this is Python code";

std::shared_ptr<const seqio::DatasetProvider> provider(const Args& args) {
  const Value& value = args.value("mixture_or_task_name");
  if (!value.is(gin::Kind::kString))
    return make<const seqio::DatasetProvider>(args, "mixture_or_task_name", value);
  try {
    return seqio::get_mixture_or_task(value.as_string());
  } catch (const Error& e) {
    args.fail("mixture_or_task_name",
              e.message() + "; a gin file declares a task as @seqio.Task() (see docs/configs.md)");
  }
}

Value make_dataset(const Args& args) {
  auto made = std::make_shared<DatasetConfig>();
  made->mixture_or_task = provider(args);
  // None: as long as the longest example.
  made->task_feature_lengths =
      args.get_optional<seqio::SequenceLength>("task_feature_lengths").value_or(seqio::SequenceLength{});
  made->split = args.get<std::string>("split");
  made->batch_size = args.get<int64_t>("batch_size");
  made->shuffle = args.get<bool>("shuffle");
  made->seed = args.get_optional<int64_t>("seed");
  made->use_cached = args.get<bool>("use_cached");
  made->pack = args.get<bool>("pack");
  if (made->batch_size < 1)
    args.fail("batch_size", fmt::format("expected 1 or more, found {}", made->batch_size));
  const std::vector<std::string> splits = made->mixture_or_task->splits();
  if (std::find(splits.begin(), splits.end(), made->split) == splits.end()) {
    args.fail("split", fmt::format("'{}' has the splits {}, not '{}'{}", made->mixture_or_task->name(),
                                   fmt::join(splits, ", "), made->split, did_you_mean(made->split, splits)));
  }
  if (!args.get<bool>("trim_output_features"))
    args.fail("trim_output_features", "False is not supported: features are always cut to their lengths");
  try {
    seqio::check_lengths(made->task_feature_lengths, made->mixture_or_task->output_features(),
                         made->mixture_or_task->name());
  } catch (const Error& e) {
    args.fail("task_feature_lengths", e.message());
  }
  return Value::object(made);
}

Value make_save(const Args& args) {
  reject(args, "checkpoint_steps", "checkpoints are written every `period` steps");
  reject(args, "state_transformation_fns", kPython);
  auto made = std::make_shared<SaveCheckpointConfig>();
  const auto period = args.get_optional<int64_t>("period");
  if (!period) return Value();
  if (*period < 1) args.fail("period", fmt::format("expected 1 or more steps, found {}", *period));
  made->period = *period;
  made->dtype = args.value("dtype").is_none() ? DType::kFloat32 : dtype_argument(args, "dtype");
  if (made->dtype != DType::kFloat32 && made->dtype != DType::kBFloat16)
    args.fail("dtype", "expected 'float32' or 'bfloat16'");
  made->keep = args.get_optional<int64_t>("keep");
  if (made->keep && *made->keep < 1) args.fail("keep", "expected 1 or more, or None to keep all");
  made->keep_period = args.get_optional<int64_t>("keep_period").value_or(0);
  made->save_dataset = args.get<bool>("save_dataset");
  return Value::object(made);
}

Value make_restore(const Args& args) {
  Value path = args.value("path");
  if (path.is(gin::Kind::kList) || path.is(gin::Kind::kTuple)) {
    if (path.items().size() > 1) args.fail("path", "expected one path; several checkpoints are not merged");
    path = path.items().empty() ? Value() : path.items()[0];
  }
  if (path.is_none() || (path.is(gin::Kind::kString) && path.as_string().empty())) return Value();
  if (!path.is(gin::Kind::kString)) args.fail("path", "expected a str, found " + path.describe());
  const auto mode = args.get<std::string>("mode");
  if (mode != "specific" && mode != "latest")
    args.fail("mode", fmt::format("expected 'specific' or 'latest', found '{}'", mode));
  reject(args, "assignment_map", "names of the checkpoint and the model must be the same");
  reject(args, "state_transformation_fns", kPython);
  reject(args, "fallback_to_scratch", "every parameter must be in the checkpoint");
  reject(args, "restore_dataset", "the input state is restored when the run itself is continued");
  if (!args.value("dtype").is_none() && dtype_argument(args, "dtype") != DType::kFloat32)
    args.fail("dtype", "expected 'float32' or None: parameters are float32");
  return Value::object(std::make_shared<RestoreCheckpointConfig>(
      RestoreCheckpointConfig{.path = path.as_string(), .params_only = !args.get<bool>("strict")}));
}

void register_utils(gin::Registry& registry) {
  registry.add({.name = "t5x.utils.DatasetConfig",
                .params = {gin::required<Value>("mixture_or_task_name"),
                           param<seqio::SequenceLength>("task_feature_lengths", nullptr),
                           gin::required<std::string>("split"), gin::required<int64_t>("batch_size"),
                           gin::required<bool>("shuffle"), param<int64_t>("seed", nullptr),
                           param<bool>("use_cached", false), param<bool>("pack", false),
                           param<Value>("use_custom_packing_ops", false), param<Value>("module", nullptr),
                           param<Value>("use_memory_cache", true), param<bool>("trim_output_features", true),
                           param<Value>("runtime_preprocessors", nullptr),
                           param<Value>("num_prefetch_threads", nullptr), param<Value>("num_workers", 0)},
                .call = make_dataset,
                .help = "batches of a task or mixture",
                .cheap = true});
  registry.add(
      {.name = "t5x.utils.SaveCheckpointConfig",
       .params = {param<Value>("dtype", "float32"), param<int64_t>("period", nullptr),
                  param<Value>("checkpoint_steps", nullptr), param<int64_t>("keep", nullptr),
                  param<int64_t>("keep_period", nullptr), param<Value>("keep_dataset_checkpoints", nullptr),
                  param<bool>("save_dataset", false), param<Value>("checkpointer_cls", nullptr),
                  param<Value>("state_transformation_fns", nullptr),
                  param<Value>("checkpoint_manager_cls", nullptr)},
       .call = make_save,
       .help = "when checkpoints are written",
       .cheap = true});
  registry.add({.name = "t5x.utils.RestoreCheckpointConfig",
                .params = {gin::required<Value>("path"), param<std::string>("mode", "latest"),
                           param<Value>("assignment_map", nullptr), param<bool>("strict", true),
                           param<bool>("fallback_to_scratch", false), param<Value>("dtype", nullptr),
                           param<bool>("restore_dataset", false), param<Value>("checkpointer_cls", nullptr),
                           param<Value>("state_transformation_fns", nullptr),
                           param<Value>("checkpoint_manager_cls", nullptr)},
                .call = make_restore,
                .help = "the checkpoint that a new run begins from",
                .cheap = true});
  registry.add(
      {.name = "t5x.utils.CheckpointConfig",
       .params = {param<Value>("save", nullptr), param<Value>("restore", nullptr)},
       .call =
           [](const Args& args) {
             return Value::object(std::make_shared<CheckpointSettings>(CheckpointSettings{
                 make<SaveCheckpointConfig>(args, "save"), make<RestoreCheckpointConfig>(args, "restore")}));
           },
       .cheap = true});
  for (const char* name :
       {"get_dataset", "get_training_eval_datasets", "verify_matching_vocabs", "TrainStateInitializer"}) {
    registry.add({.name = std::string("t5x.utils.") + name,
                  .params = {},
                  .call = {},
                  .help = "accepted as an argument; this program has its own",
                  .any_params = true,
                  .cheap = true});
  }
}

// t5x.utils.verify_matching_vocabs: ids of the task must mean to the model what they mean to the task.
void check_vocabularies(const Args& args, const char* name, const DatasetConfig& data,
                        const TrainConfig& config) {
  const std::pair<const char*, const seqio::VocabularyPtr*> expected[] = {
      {"inputs", &config.input_vocabulary}, {"targets", &config.output_vocabulary}};
  for (const auto& [feature, vocabulary] : expected) {
    auto found = data.mixture_or_task->output_features().find(feature);
    if (found == data.mixture_or_task->output_features().end() || *found->second.vocabulary == **vocabulary)
      continue;
    args.fail(name,
              fmt::format("feature '{}' of '{}' has the vocabulary {}, the model {}; make them the same "
                          "(VOCABULARY, or the model's {}_vocabulary)",
                          feature, data.mixture_or_task->name(), found->second.vocabulary->describe(),
                          (*vocabulary)->describe(), feature == std::string("inputs") ? "input" : "output"));
  }
}

std::optional<DatasetConfig> dataset(const Args& args, const char* name, const TrainConfig& config,
                                     bool lengths_required) {
  auto made = make<DatasetConfig>(args, name);
  if (!made) return std::nullopt;
  if (lengths_required && made->task_feature_lengths.empty())
    args.fail(name, "task_feature_lengths must be given, such as {'inputs': 512, 'targets': 114}");
  if (!args.value("verify_matching_vocabs_fn").is_none()) check_vocabularies(args, name, *made, config);
  return *made;
}

void add_seed(const Args& args, TrainConfig& config) {
  const auto seed = args.get_optional<int64_t>("random_seed");
  if (seed && *seed < 0) args.fail("random_seed", "expected 0 or more, or None");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  config.trainer.seed =
      static_cast<uint64_t>(seed.value_or(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  if (!seed) log_info("random_seed is None: this run draws the seed {}", config.trainer.seed);
  if (args.get<bool>("use_hardware_rng"))
    log_warning("use_hardware_rng has no effect: random numbers are threefry's, the same on every device");
}

Value make_train(const Args& args) {
  for (const char* name : {"actions", "hooks"}) reject(args, name, kPython);
  reject(args, "relative_steps", "set total_steps (TRAIN_STEPS), which counts all steps of the model");
  auto made = std::make_shared<TrainConfig>();
  TrainConfig& config = *made;
  const auto model = args.get<std::shared_ptr<ModelSettings>>("model");
  config.trainer.model = model->model;
  config.trainer.optimizer = model->optimizer;
  config.input_vocabulary = model->input_vocabulary;
  config.output_vocabulary = model->output_vocabulary;
  config.decode = model->decode;
  const auto trainer = make<TrainerSettings>(args, "trainer_cls");
  if (!trainer) args.fail("trainer_cls", "expected @trainer.Trainer");
  config.trainer.learning_rate = trainer->learning_rate;
  config.trainer.num_microbatches = trainer->num_microbatches;
  const auto partitioner = make<PartitionerSettings>(args, "partitioner");
  if (!partitioner) args.fail("partitioner", "expected @partitioning.PjitPartitioner()");
  config.trainer.mesh.model = partitioner->model_size;
  config.trainer.rules = partitioner->rules;
  add_seed(args, config);

  config.train_dataset = *dataset(args, "train_dataset_cfg", config, true);
  config.train_eval_dataset = dataset(args, "train_eval_dataset_cfg", config, true);
  config.infer_eval_dataset = dataset(args, "infer_eval_dataset_cfg", config, false);
  if (config.infer_eval_dataset && config.infer_eval_dataset->pack)
    args.fail("infer_eval_dataset_cfg", "pack must be False: predictions are made example by example");
  const auto checkpoints = make<CheckpointSettings>(args, "checkpoint_cfg");
  config.save.reset();
  if (checkpoints && checkpoints->save) config.save = *checkpoints->save;
  if (checkpoints && checkpoints->restore) config.restore = *checkpoints->restore;
  if (auto evaluator = make<EvaluatorSettings>(args, "inference_evaluator_cls"))
    config.infer_eval_examples = evaluator->num_examples;

  config.model_dir = args.get<std::string>("model_dir");
  config.total_steps = args.get<int64_t>("total_steps");
  config.eval_steps = args.get_optional<int64_t>("eval_steps").value_or(0);
  config.eval_period = args.get<int64_t>("eval_period");
  config.stats_period = args.get_optional<int64_t>("stats_period").value_or(0);
  config.run_eval_before_training = args.get<bool>("run_eval_before_training");
  config.sample_predictions = args.get<int64_t>("sample_predictions");
  config.progress_seconds = args.get<double>("progress_seconds");
  config.config_text = args.config().config_str();
  return Value::object(made);
}

}  // namespace

void register_train(gin::Registry& registry) {
  register_utils(registry);
  gin::Reference evaluator;
  evaluator.name = "seqio.Evaluator";
  registry.add({.name = "t5x.train.train",
                .params = {gin::required<std::shared_ptr<ModelSettings>>("model"),
                           gin::required<std::shared_ptr<DatasetConfig>>("train_dataset_cfg"),
                           param<std::shared_ptr<DatasetConfig>>("train_eval_dataset_cfg", nullptr),
                           param<std::shared_ptr<DatasetConfig>>("infer_eval_dataset_cfg", nullptr),
                           gin::required<std::shared_ptr<CheckpointSettings>>("checkpoint_cfg"),
                           gin::required<Value>("partitioner"),
                           gin::required<Value>("trainer_cls"),
                           gin::required<std::string>("model_dir"),
                           gin::required<int64_t>("total_steps"),
                           param<int64_t>("eval_steps", nullptr),
                           gin::required<int64_t>("eval_period"),
                           param<int64_t>("relative_steps", nullptr),
                           param<int64_t>("stats_period", nullptr),
                           param<int64_t>("random_seed", nullptr),
                           param<bool>("use_hardware_rng", false),
                           param<Value>("summarize_config_fn", nullptr),
                           param<Value>("inference_evaluator_cls", Value(evaluator)),
                           param<Value>("get_dataset_fn", nullptr),
                           param<Value>("concurrent_metrics", true),
                           param<Value>("actions", nullptr),
                           param<Value>("hooks", nullptr),
                           param<Value>("train_eval_get_dataset_fn", nullptr),
                           param<bool>("run_eval_before_training", false),
                           param<Value>("train_state_initializer_cls", nullptr),
                           param<Value>("use_orbax", true),
                           param<Value>("verify_matching_vocabs_fn", true),
                           param<Value>("gc_period", 0),
                           param<int64_t>("sample_predictions", 3, "examples printed after each evaluation"),
                           param<double>("progress_seconds", 5.0, "between progress lines")},
                .call = make_train,
                .help = "trains a model",
                .cheap = true});
}

void register_all(gin::Registry& registry, const ContextPtr& context) {
  register_vocabularies(registry, context);
  register_seqio(registry);
  register_preprocessors(registry);
  register_metrics(registry);
  register_models(registry);
  register_optimizers(registry);
  register_trainer(registry);
  register_train(registry);
}

}  // namespace t5x::apps
