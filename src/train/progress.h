// What a person and TensorBoard read while a run trains.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "train/trainer.h"

namespace t5x {

// Sums of steps since the last report, and the rates and means made of them.
class MetricsWindow {
 public:
  MetricsWindow() : start_(std::chrono::steady_clock::now()) {}
  void add(const MetricSums& sums);
  int64_t steps() const { return steps_; }
  double seconds() const;
  // The names that t5x logs: loss, loss_per_nonpadding_target_token, accuracy, z_loss, learning_rate,
  // timing/..., ... `input_wait`: seconds spent waiting for batches in this window.
  std::map<std::string, double> summary(double input_wait) const;

 private:
  std::chrono::steady_clock::time_point start_;
  MetricSums sums_;
  int64_t steps_ = 0;
};

// Means of an evaluation, without rates.
std::map<std::string, double> summarize(const MetricSums& sums, int64_t steps);

// "step 1,200/5,000 | loss 0.412 | acc 87.1% | lr 1.0e-03 | grad 0.83 | 41,200 tok/s | 24.9 ms/step | 1m 35s
// to go | input 0.1%"
std::string progress_line(int64_t step, int64_t total_steps, const std::map<std::string, double>& summary);
// "1h 02m", "3m 05s", "12s"
std::string format_duration(double seconds);
// "1,234,567"
std::string format_count(int64_t count);

}  // namespace t5x
