#include "train/progress.h"

#include <cmath>

#include <fmt/format.h>

namespace t5x {
namespace {

double at(const std::map<std::string, double>& values, const std::string& name) {
  auto found = values.find(name);
  return found == values.end() ? NAN : found->second;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace

void MetricsWindow::add(const MetricSums& sums) {
  for (const auto& [name, value] : sums) {
    // Rates of learning are not sums: the latest counts.
    if (name == "learning_rate" || name == "gradient_norm") {
      sums_[name] = value;
    } else {
      sums_[name] += value;
    }
  }
  ++steps_;
}

double MetricsWindow::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::map<std::string, double> summarize(const MetricSums& sums, int64_t steps) {
  const double weight = at(sums, "weight"), tokens = at(sums, "tokens"), n = static_cast<double>(steps);
  std::map<std::string, double> out = {
      {"loss", ratio(at(sums, "loss"), n)},
      {"z_loss", ratio(at(sums, "z_loss"), n)},
      {"cross_ent_loss", ratio(at(sums, "cross_ent_loss"), n)},
      {"token_loss", ratio(at(sums, "token_loss"), weight)},
      {"loss_per_nonpadding_target_token", ratio(at(sums, "loss"), weight)},
      {"loss_per_all_target_tokens", ratio(at(sums, "loss"), tokens)},
      {"z_loss_per_all_target_tokens", ratio(at(sums, "z_loss"), tokens)},
      {"cross_ent_loss_per_all_target_tokens", ratio(at(sums, "cross_ent_loss"), tokens)},
      {"accuracy", ratio(at(sums, "correct"), weight)},
      {"non_padding_fraction/loss_weights", ratio(weight, tokens)},
      {"non_padding_fraction/decoder", ratio(at(sums, "nonpadding/decoder"), tokens)},
      {"non_padding_fraction/encoder", ratio(at(sums, "nonpadding/encoder"), at(sums, "encoder_tokens"))},
  };
  for (const char* name : {"learning_rate", "gradient_norm"}) {
    if (sums.contains(name)) out[name] = sums.at(name);
  }
  return out;
}

std::map<std::string, double> MetricsWindow::summary(double input_wait) const {
  std::map<std::string, double> out = summarize(sums_, steps_);
  const double time = seconds();
  out["timing/seconds"] = time;
  out["timing/steps_per_second"] = ratio(static_cast<double>(steps_), time);
  out["timing/target_tokens_per_second"] = ratio(at(sums_, "tokens"), time);
  out["timing/tokens_per_second"] = ratio(at(sums_, "tokens") + at(sums_, "encoder_tokens"), time);
  out["timing/input_wait_fraction"] = ratio(input_wait, time);
  return out;
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(std::abs(count)), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return (count < 0 ? "-" : "") + text;
}

std::string format_duration(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (s >= 3600) return fmt::format("{}h {:02}m", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

std::string progress_line(int64_t step, int64_t total_steps, const std::map<std::string, double>& summary) {
  const double rate = at(summary, "timing/steps_per_second");
  const double left = rate > 0 ? static_cast<double>(total_steps - step) / rate : 0;
  return fmt::format(
      "step {}/{} | loss {:.4f} | acc {:.1f}% | lr {:.2e} | grad {:.3g} | {} tok/s | {:.1f} ms/step | {} to "
      "go | input {:.1f}%",
      format_count(step), format_count(total_steps), at(summary, "token_loss"), 100 * at(summary, "accuracy"),
      at(summary, "learning_rate"), at(summary, "gradient_norm"),
      format_count(std::llround(at(summary, "timing/tokens_per_second"))), rate > 0 ? 1000 / rate : 0.0,
      format_duration(left), 100 * at(summary, "timing/input_wait_fraction"));
}

}  // namespace t5x
