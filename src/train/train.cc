#include "train/train.h"

#include <cmath>
#include <csignal>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "checkpoint/manager.h"
#include "train/evaluation.h"
#include "train/model_info.h"
#include "train/progress.h"
#include "train/summary_writer.h"

namespace t5x {
namespace {

// t5x's name for the input pipeline's state inside a checkpoint.
constexpr const char* kDatasetFile = "train_ds-00000-of-00001";

volatile std::sig_atomic_t stop_signal = 0;

// Notes SIGINT and SIGTERM while it lives; a second one ends the process as usual.
class SignalGuard {
 public:
  SignalGuard() {
    stop_signal = 0;
    old_int_ = std::signal(SIGINT, &note);
    old_term_ = std::signal(SIGTERM, &note);
  }
  ~SignalGuard() {
    std::signal(SIGINT, old_int_);
    std::signal(SIGTERM, old_term_);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static void note(int signal) {
    stop_signal = signal;
    std::signal(signal, SIG_DFL);
  }
  using Handler = void (*)(int);
  Handler old_int_, old_term_;
};

seqio::BatchIterator training_batches(const TrainConfig& config) {
  const DatasetConfig& data = config.train_dataset;
  seqio::GetDatasetOptions options;
  options.task_feature_lengths = data.task_feature_lengths;
  options.split = data.split;
  options.use_cached = data.use_cached;
  options.shuffle = data.shuffle;
  options.num_epochs = std::nullopt;
  options.seed = data.seed;
  options.batch_size = data.batch_size;
  return seqio::get_batches(
      data.mixture_or_task,
      std::make_shared<seqio::EncDecFeatureConverter>(seqio::ConverterOptions{.pack = data.pack}), options);
}

// Throws TrainError if an array holds a number that is not finite: a step's loss is that of the state before
// its update, so a state can be broken although the loss is not. `kept`: what can be continued from.
void check_finite(const NamedArrays& state, int64_t step, const std::string& kept) {
  for (const auto& [name, array] : state) {
    if (array.dtype() != DType::kFloat32) continue;
    for (float value : array.values<float>()) {
      if (std::isfinite(value)) continue;
      throw_error<TrainError>(
          "the update of step {} left '{}' with a value of {}, so that state is not saved; {}. Lower the "
          "learning rate or lengthen the warm-up",
          step, name, value, kept);
    }
  }
}

class Run {
 public:
  Run(const pjrt::Client& client, const TrainConfig& config, const CompileCache* cache);
  TrainResult train();

 private:
  void restore();
  void step_until(int64_t stop);
  // Reads the metrics of the step before the last one: the device works on the last one meanwhile.
  void collect();
  void report();
  void evaluate();
  void save();
  int64_t next_stop() const;
  std::string describe_kept() const;
  bool stopping() const { return stop_signal != 0; }

  const TrainConfig& config_;
  fs::path dir_;
  std::optional<checkpoint::CheckpointManager> checkpoints_;
  Trainer trainer_;
  seqio::BatchIterator batches_;
  Evaluation evaluation_;
  SummaryWriter summaries_;
  MetricsWindow window_, progress_;
  double window_wait_ = 0, progress_wait_ = 0;
  int64_t stats_period_;
  std::optional<PendingMetrics> pending_;
  int64_t pending_step_ = 0;
  int64_t saved_step_ = -1;
  bool reported_compile_ = false;
  TrainResult result_;
};

checkpoint::ManagerOptions manager_options(const SaveCheckpointConfig& save) {
  checkpoint::ManagerOptions options;
  options.keep = save.keep.value_or(0);
  options.keep_period = save.keep_period;
  options.write.save_dtype = save.dtype;
  return options;
}

Run::Run(const pjrt::Client& client, const TrainConfig& config, const CompileCache* cache)
    : config_(config),
      dir_(config.model_dir),
      checkpoints_(std::in_place, config.model_dir,
                   manager_options(config.save.value_or(SaveCheckpointConfig{}))),
      trainer_(client, config.trainer, cache),
      batches_(training_batches(config)),
      evaluation_(config),
      summaries_(fs::path(config.model_dir) / "train"),
      stats_period_(config.stats_period > 0  ? config.stats_period
                    : config.eval_period > 0 ? config.eval_period
                                             : 100) {}

void Run::restore() {
  if (auto found = checkpoints_->restore_latest()) {
    trainer_.load(found->contents.arrays, found->path.string());
    auto state = found->contents.files.find(kDatasetFile);
    if (state != found->contents.files.end()) {
      in_context("the input state of " + found->path.string(),
                 [&] { batches_.restore(seqio::from_bytes(state->second)); });
    } else if (trainer_.step() > 0) {
      log_warning("{} has no input state; the data starts from its beginning", found->path.string());
    }
    saved_step_ = trainer_.step();
    log_info("continuing from {} at step {}", found->path.string(), format_count(trainer_.step()));
    return;
  }
  if (!config_.restore) {
    trainer_.initialize();
    return;
  }
  const checkpoint::RestoredCheckpoint found = checkpoint::restore_path(config_.restore->path);
  if (config_.restore->params_only) {
    trainer_.initialize();
    trainer_.load_params(found.contents.arrays, found.path.string());
  } else {
    trainer_.load(found.contents.arrays, found.path.string());
  }
  log_info("starting from {} at step {}", found.path.string(), format_count(trainer_.step()));
}

int64_t Run::next_stop() const {
  int64_t stop = config_.total_steps;
  if (config_.eval_period > 0)
    stop = std::min(stop, (trainer_.step() / config_.eval_period + 1) * config_.eval_period);
  return stop;
}

std::string Run::describe_kept() const {
  return saved_step_ < 0
             ? "no checkpoint had been saved"
             : fmt::format("the checkpoint of step {} in '{}' is kept", saved_step_, dir_.string());
}

void Run::collect() {
  if (!pending_) return;
  const MetricSums sums = pending_->get();
  pending_.reset();
  if (!std::isfinite(sums.at("loss")) || !std::isfinite(sums.at("gradient_norm"))) {
    throw_error<TrainError>(
        "the loss is not finite at step {} (loss {}, gradient norm {}); {}. Lower the learning rate, "
        "lengthen the warm-up, or look "
        "at the batch of that step; a restart continues from the last checkpoint",
        pending_step_, sums.at("loss"), sums.at("gradient_norm"), describe_kept());
  }
  window_.add(sums);
  progress_.add(sums);
}

void Run::report() {
  const double waited = batches_.waits().seconds();
  const int64_t done = pending_step_;
  if (window_.steps() > 0 && (done % stats_period_ == 0 || done == config_.total_steps)) {
    summaries_.scalars(done, window_.summary(waited - window_wait_));
    window_ = MetricsWindow();
    window_wait_ = waited;
  }
  const bool last = done == config_.total_steps;
  if (progress_.steps() == 0 ||
      (!last && reported_compile_ && progress_.seconds() < config_.progress_seconds))
    return;
  std::string line = progress_line(done, config_.total_steps, progress_.summary(waited - progress_wait_));
  if (!reported_compile_) {
    line +=
        fmt::format(" | compiled in {:.1f} s ({} of {} programs from the cache)", trainer_.compile_seconds(),
                    trainer_.programs_from_cache(), trainer_.programs_compiled());
    reported_compile_ = true;
  }
  log_info("{}", line);
  progress_ = MetricsWindow();
  progress_wait_ = waited;
}

void Run::step_until(int64_t stop) {
  while (trainer_.step() < stop && !stopping()) {
    std::optional<seqio::Batch> batch = batches_.next();
    if (!batch)
      throw_error<DataError>("the training data ended at step {}; it should repeat for ever",
                             trainer_.step());
    PendingMetrics running = trainer_.train_step(*batch);
    collect();
    if (pending_step_ > 0) report();
    pending_.emplace(std::move(running));
    pending_step_ = trainer_.step();
    const bool due = config_.save && trainer_.step() % config_.save->period == 0;
    if (due) save();
  }
  collect();
  if (pending_step_ > 0) report();
}

void Run::save() {
  if (!config_.save || saved_step_ == trainer_.step()) return;
  collect();  // a state whose loss is not finite is not saved
  checkpoint::CheckpointContents contents{.arrays = trainer_.snapshot(), .files = {}};
  check_finite(contents.arrays, trainer_.step(), describe_kept());
  if (config_.save->save_dataset) contents.files[kDatasetFile] = seqio::to_bytes(batches_.save());
  checkpoints_->save_async(trainer_.step(), std::move(contents));
  saved_step_ = trainer_.step();
}

void Run::evaluate() {
  const auto start = std::chrono::steady_clock::now();
  evaluation_.train_eval(trainer_);
  result_.infer_metrics = evaluation_.infer_eval(trainer_);
  // Time spent here belongs to no step.
  const double waited = batches_.waits().seconds();
  window_ = MetricsWindow();
  progress_ = MetricsWindow();
  window_wait_ = progress_wait_ = waited;
  log_info("evaluated in {}",
           format_duration(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
}

TrainResult Run::train() {
  SignalGuard signals;
  restore();
  write_file_atomic(dir_ / "model-info.txt", model_info(trainer_));
  if (!config_.config_text.empty()) write_file_atomic(dir_ / "config.gin", config_.config_text);
  log_info("{} parameters, mesh {} x {} (data x model), model directory {}",
           format_count(nn::count_parameters(trainer_.param_specs())), config_.trainer.mesh.data,
           config_.trainer.mesh.model, dir_.string());
  // A run that is finished already is evaluated again, so that another split can be looked at.
  const bool finished = trainer_.step() >= config_.total_steps;
  if (finished || (config_.run_eval_before_training && trainer_.step() == 0)) evaluate();
  while (trainer_.step() < config_.total_steps && !stopping()) {
    step_until(next_stop());
    if (!stopping()) evaluate();
  }
  save();
  checkpoints_->wait();
  result_.step = trainer_.step();
  result_.interrupted = stopping();
  if (stopping()) {
    log_info("stopped at step {}{}; start again with the same arguments to continue",
             format_count(trainer_.step()), config_.save ? ", saved" : "");
  }
  return result_;
}

}  // namespace

void check_train_config(const TrainConfig& config) {
  if (config.model_dir.empty())
    throw_error<ConfigError>("MODEL_DIR is empty; name the directory for checkpoints and logs");
  if (config.total_steps <= 0)
    throw_error<ConfigError>("total_steps must be positive, found {}", config.total_steps);
  const std::pair<const char*, int64_t> counts[] = {{"eval_period", config.eval_period},
                                                    {"eval_steps", config.eval_steps},
                                                    {"stats_period", config.stats_period}};
  for (const auto& [name, value] : counts) {
    if (value < 0) throw_error<ConfigError>("{} must not be negative, found {}", name, value);
  }
  if (config.save && config.save->period <= 0) {
    throw_error<ConfigError>("SaveCheckpointConfig.period must be positive, found {}", config.save->period);
  }
  const int64_t vocab = config.trainer.model->network().vocab_size;
  for (const seqio::VocabularyPtr& vocabulary : {config.input_vocabulary, config.output_vocabulary}) {
    if (vocabulary && vocabulary->vocab_size() > vocab) {
      throw_error<ConfigError>(
          "the vocabulary {} has {} ids, the model's embedding {}; set T5Config.vocab_size to at least {}",
          vocabulary->describe(), vocabulary->vocab_size(), vocab, vocabulary->vocab_size());
    }
  }
  auto check_data = [&](const DatasetConfig& data, const char* what) {
    if (!data.mixture_or_task) throw_error<ConfigError>("{}: no mixture or task", what);
    if (data.batch_size <= 0)
      throw_error<ConfigError>("{}: batch_size must be positive, found {}", what, data.batch_size);
    seqio::check_lengths(data.task_feature_lengths, data.mixture_or_task->output_features(),
                         data.mixture_or_task->name());
    for (const auto& [feature, spec] : data.mixture_or_task->output_features()) {
      if (spec.vocabulary && spec.vocabulary->vocab_size() > vocab) {
        throw_error<ConfigError>(
            "{}: the vocabulary of feature '{}' has {} ids, the model's embedding {}; set "
            "T5Config.vocab_size to "
            "at least {}",
            what, feature, spec.vocabulary->vocab_size(), vocab, spec.vocabulary->vocab_size());
      }
    }
    const int64_t ways = config.trainer.mesh.data;
    if (data.batch_size % ways != 0) {
      throw_error<ConfigError>("{}: batch_size {} is not a multiple of the {} data-parallel devices", what,
                               data.batch_size, ways);
    }
  };
  check_data(config.train_dataset, "train_dataset_cfg");
  if (config.train_eval_dataset) check_data(*config.train_eval_dataset, "train_eval_dataset_cfg");
  if (config.infer_eval_dataset) check_data(*config.infer_eval_dataset, "infer_eval_dataset_cfg");
  const int64_t micro = config.trainer.num_microbatches;
  if (micro < 1 || config.train_dataset.batch_size % micro != 0) {
    throw_error<ConfigError>("batch_size {} is not a multiple of num_microbatches {}",
                             config.train_dataset.batch_size, micro);
  }
}

TrainResult train(const pjrt::Client& client, const TrainConfig& config, const CompileCache* cache) {
  check_train_config(config);
  return Run(client, config, cache).train();
}

}  // namespace t5x
