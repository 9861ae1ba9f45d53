// What the trainer's programs compute, as traced functions.
#pragma once

#include <string>
#include <vector>

#include "train/trainer.h"

namespace t5x {

struct TrainStepInputs {
  nn::TensorMap params, opt_state, batch;
  Tensor step;  // int32 scalar, 0 for the first update
  Tensor rng;   // the trainer's key
};
struct TrainStepOutputs {
  nn::TensorMap params, opt_state;
  Tensor step, metrics;  // metrics: float32 [metric_names.size()]
  std::vector<std::string> metric_names;
};
// Gradients of the loss (over microbatches one after the other, if there are several), then one optimizer
// update. The dropout key of a step is the trainer's key with the step folded in, split once per microbatch.
TrainStepOutputs trace_train_step(const TrainerConfig& config, const optim::ParamInfos& infos,
                                  const nn::ActivationRules& activations, const TrainStepInputs& inputs);

// key (2) -> the initial value of one parameter.
ProgramSpec initializer_program(const Mesh& mesh, const nn::ParamSpec& param, const PartitionSpec& layout);

// Entries whose names start with `prefix`, without it.
nn::TensorMap strip_prefix(const nn::TensorMap& all, const std::string& prefix);
// float32 scalars in the order of their names: [n].
Tensor stack_scalars(const nn::TensorMap& scalars);
// The last (best) decode of every example: ids [batch, length], scores [batch].
std::vector<Tensor> best_decode(const decode::Decoded& decoded);

// Texts that tell programs apart.
std::string describe_types(const models::BatchTypes& types);
std::string describe(const decode::PredictOptions& options);

}  // namespace t5x
