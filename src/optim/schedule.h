// Learning rates as products of named factors: t5x.utils.create_learning_rate_scheduler, with its names,
// defaults and arithmetic (float32 on integer steps).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace t5x::optim {

struct LearningRateOptions {
  // Joined by '*', any of: constant, linear_warmup, linear_decay, rsqrt_decay, rsqrt_normalized_decay,
  // decay_every, cosine_decay.
  std::string factors = "constant * linear_warmup * rsqrt_decay";
  double base_learning_rate = 0.5;
  int64_t warmup_steps = 1000;
  double decay_factor = 0.5;
  int64_t steps_per_decay = 20000;
  int64_t steps_per_cycle = 100000;
  int64_t step_offset = 0;
  double min_learning_rate = 1e-8;
};

class LearningRateSchedule {
 public:
  // Throws ConfigError for an unknown factor (with close matches) and for step counts that would divide by
  // zero.
  explicit LearningRateSchedule(LearningRateOptions options);
  // float32 scalar at an int32 scalar step.
  Tensor operator()(Tensor step) const;
  // The same formula on the host, for what people read; a device's cos, pow and sqrt may differ in the last
  // bit.
  float operator()(int64_t step) const;

 private:
  template <class Real, class Int>
  Real evaluate(Int step) const;

  LearningRateOptions options_;
  std::vector<std::string> factors_;
};

LearningRateSchedule create_learning_rate_scheduler(const LearningRateOptions& options = {});

}  // namespace t5x::optim
