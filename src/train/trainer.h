// The training state on the devices and the programs that act on it: initialise, train step, evaluation step,
// prediction. A state is a flat map under the names a checkpoint has: "target/<parameter>",
// "state/param_states/<parameter>/<slot>", "state/step".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/predict.h"
#include "models/encoder_decoder.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "runtime/program.h"

namespace t5x {

using NamedArrays = std::map<std::string, Array>;
// A batch as seqio gives it: int32 [batch, length] by feature name.
using HostBatch = std::map<std::string, Array>;
// Sums over a batch by name, see models::LossMetrics; after a train step also "learning_rate" and
// "gradient_norm".
using MetricSums = std::map<std::string, double>;

struct TrainerConfig {
  std::shared_ptr<const models::EncoderDecoderModel> model;
  std::shared_ptr<const optim::Optimizer> optimizer;
  optim::LearningRateSchedule learning_rate{{}};
  Mesh mesh = {};
  AxisRules rules = standard_logical_axis_rules();
  int64_t num_microbatches = 1;
  uint64_t seed = 0;
};

// The metrics of a step that may still be running.
class PendingMetrics {
 public:
  PendingMetrics(std::vector<std::string> names, DeviceArray values)
      : names_(std::move(names)), values_(std::move(values)) {}
  // Waits for the step. Throws DeviceError if it failed.
  MetricSums get() const;

 private:
  std::vector<std::string> names_;
  DeviceArray values_;
};

class Trainer {
 public:
  // `client` and `cache` (which may be null) must outlive the trainer. Throws ConfigError for what does not
  // fit.
  Trainer(const pjrt::Client& client, TrainerConfig config, const CompileCache* cache = nullptr);

  const TrainerConfig& config() const { return config_; }
  const nn::ParamSpecs& param_specs() const { return params_; }
  // Type and layout of every entry of the state, by name.
  struct StateEntry {
    TensorType type;
    PartitionSpec spec;
    AxisNames axes;
  };
  const std::map<std::string, StateEntry>& state_entries() const { return entries_; }

  // Fills the state from the seed; step 0.
  void initialize();
  // Fills the state from a checkpoint's arrays. Throws CheckpointError that lists missing, extra and
  // misshapen names.
  void load(const NamedArrays& arrays, const std::string& source);
  // Fills the parameters only, as fine-tuning does with other optimizer states; the rest comes from
  // initialize().
  void load_params(const NamedArrays& arrays, const std::string& source);
  // Copies of the state on the host.
  NamedArrays snapshot() const;
  int64_t step() const { return step_; }
  // Continues counting (and the learning rate) from here.
  void set_step(int64_t step);

  // Compiles for batches of these types; implied by the first step.
  const Program& compile_train(const models::BatchTypes& batch);
  // One update; returns before it has finished where the plugin is asynchronous.
  PendingMetrics train_step(const HostBatch& batch);
  // Sums of the deterministic model over a batch.
  MetricSums eval_step(const HostBatch& batch);
  // Decoded ids int32 [batch, length] of the best decode, and its score float32 [batch].
  struct Prediction {
    Array ids, scores;
  };
  Prediction predict(const HostBatch& batch, const decode::PredictOptions& options = {});
  // Log probability of the targets: float32 [batch].
  Array score(const HostBatch& batch);

  // Seconds spent compiling or loading programs, and how many came out of the cache.
  double compile_seconds() const { return compile_seconds_; }
  int64_t programs_compiled() const { return programs_compiled_; }
  int64_t programs_from_cache() const { return programs_from_cache_; }

 private:
  using ForwardFunction =
      std::function<std::vector<Tensor>(const nn::TensorMap& params, const nn::TensorMap& batch)>;
  // Runs a program that reads the parameters and a batch; `name` and the batch's types identify it.
  std::vector<DeviceArray> run_forward(const std::string& name, const HostBatch& batch, size_t num_results,
                                       const ForwardFunction& function);
  const Program& program(const std::string& key, const std::function<ProgramSpec()>& spec);
  std::map<std::string, DeviceArray> to_devices(const HostBatch& batch) const;
  void fill(const NamedArrays& arrays);

  const pjrt::Client& client_;
  TrainerConfig config_;
  const CompileCache* cache_;
  nn::ParamSpecs params_;
  optim::ParamInfos infos_;
  nn::ActivationRules activations_;
  std::map<std::string, StateEntry> entries_;
  std::map<std::string, DeviceArray> state_;
  std::map<std::string, Program> programs_;
  std::vector<std::string> sum_names_;
  DeviceArray rng_;
  int64_t step_ = 0;
  double compile_seconds_ = 0;
  int64_t programs_compiled_ = 0, programs_from_cache_ = 0;
};

// Types of a host batch.
models::BatchTypes types_of(const HostBatch& batch);

}  // namespace t5x
