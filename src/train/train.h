// The training program: t5x.train.train. Restores or initialises, trains, evaluates, saves; can be stopped
// and started again at any time and then continues as if it had not been stopped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seqio/evaluator.h"
#include "seqio/get_dataset.h"
#include "train/trainer.h"

namespace t5x {

// t5x.utils.DatasetConfig.
struct DatasetConfig {
  std::shared_ptr<const seqio::DatasetProvider> mixture_or_task;
  seqio::SequenceLength task_feature_lengths;
  std::string split = "train";
  int64_t batch_size = 0;
  bool shuffle = true;
  std::optional<int64_t> seed = std::nullopt;
  bool use_cached = false;
  bool pack = false;
};

// t5x.utils.SaveCheckpointConfig.
struct SaveCheckpointConfig {
  int64_t period = 1000;  // steps
  DType dtype = DType::kFloat32;
  std::optional<int64_t> keep = std::nullopt;  // nothing: all
  int64_t keep_period = 0;                     // steps whose checkpoints always stay; 0: none
  bool save_dataset = true;
};

// t5x.utils.RestoreCheckpointConfig: what to start from when model_dir holds no checkpoint.
struct RestoreCheckpointConfig {
  std::string path;          // a checkpoint_<step> directory, or a model directory for mode 'latest'
  bool params_only = false;  // takes the parameters alone; step and optimizer start anew
};

struct TrainConfig {
  TrainerConfig trainer;
  seqio::VocabularyPtr input_vocabulary, output_vocabulary;
  DatasetConfig train_dataset;
  std::optional<DatasetConfig> train_eval_dataset = std::nullopt;
  std::optional<DatasetConfig> infer_eval_dataset = std::nullopt;
  decode::PredictOptions decode = {};
  std::string model_dir;
  int64_t total_steps = 0;   // of the whole run, not of this start
  int64_t eval_steps = 0;    // batches of train_eval; 0: the whole split
  int64_t eval_period = 0;   // steps; 0: only at the end
  int64_t stats_period = 0;  // steps between TensorBoard entries; 0: eval_period, or 100
  bool run_eval_before_training = false;
  std::optional<SaveCheckpointConfig> save = SaveCheckpointConfig{};
  std::optional<RestoreCheckpointConfig> restore = std::nullopt;
  std::optional<int64_t> infer_eval_examples = std::nullopt;  // nothing: the whole split
  int64_t sample_predictions = 0;                             // printed after each inference evaluation
  double progress_seconds = 5;                                // between progress lines
  std::string config_text;                                    // written to model_dir/config.gin
};

// How a run ended.
struct TrainResult {
  int64_t step = 0;
  bool interrupted = false;                             // by SIGINT or SIGTERM, after saving
  std::map<std::string, seqio::Metrics> infer_metrics;  // of the last inference evaluation, by task
};

// Throws ConfigError before anything is compiled when the configuration cannot work, TrainError when the loss
// stops being finite (naming the first step; checkpoints saved before it stay), and what data and devices
// throw.
TrainResult train(const pjrt::Client& client, const TrainConfig& config, const CompileCache* cache = nullptr);

// The checks of the above that need neither devices nor data.
void check_train_config(const TrainConfig& config);

}  // namespace t5x
