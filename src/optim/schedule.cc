#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/error.h"
#include "base/strings.h"
#include "ops/ops.h"

namespace t5x::optim {

namespace {

// The arithmetic that the formula is written with, once for the host and once for a traced program.
float real(int64_t x) { return static_cast<float>(x); }
int64_t at_least(int64_t x, int64_t y) { return std::max(x, y); }
int64_t quotient(int64_t x, int64_t y) { return x / y; }
int64_t minus(int64_t x, int64_t y) { return x - y; }
int64_t minus_from(int64_t x, int64_t y) { return x - y; }
float number(double x, float) { return static_cast<float>(x); }
float lesser(float a, float b) { return std::min(a, b); }
float greater(float a, float b) { return std::max(a, b); }
float root(float x) { return std::sqrt(x); }
float cosine(float x) { return std::cos(x); }
float power(float x, float y) { return std::pow(x, y); }
float fraction(float x) { return x - std::floor(x); }

Tensor real(Tensor x) { return ops::convert(x, DType::kFloat32); }
Tensor at_least(Tensor x, int64_t y) { return ops::maximum(x, static_cast<double>(y)); }
Tensor quotient(Tensor x, int64_t y) { return x / static_cast<double>(y); }
Tensor minus(Tensor x, int64_t y) { return x - static_cast<double>(y); }
Tensor minus_from(int64_t x, Tensor y) { return static_cast<double>(x) - y; }
Tensor number(double x, Tensor) { return full({DType::kFloat32, {}}, x); }
Tensor lesser(Tensor a, Tensor b) { return ops::minimum(a, b); }
Tensor greater(Tensor a, Tensor b) { return ops::maximum(a, b); }
Tensor root(Tensor x) { return ops::sqrt(x); }
Tensor cosine(Tensor x) { return ops::cos(x); }
Tensor power(Tensor x, Tensor y) { return ops::pow(x, y); }
Tensor fraction(Tensor x) { return x - ops::floor(x); }

const std::vector<std::string>& known_factors() {
  static const std::vector<std::string> kKnown = {"constant",    "linear_warmup",          "linear_decay",
                                                  "rsqrt_decay", "rsqrt_normalized_decay", "decay_every",
                                                  "cosine_decay"};
  return kKnown;
}

void require_positive(int64_t value, const char* name, const std::string& factor) {
  if (value <= 0) {
    throw_error<ConfigError>("the learning rate factor '{}' needs {} of at least 1, not {}", factor, name,
                             value);
  }
}

}  // namespace

LearningRateSchedule::LearningRateSchedule(LearningRateOptions options) : options_(std::move(options)) {
  for (const std::string& part : split(options_.factors, '*')) {
    const std::string factor(strip(part));
    const auto& known = known_factors();
    if (std::find(known.begin(), known.end(), factor) == known.end()) {
      throw_error<ConfigError>("unknown learning rate factor '{}' in \"{}\"{}; known are {}", factor,
                               options_.factors, did_you_mean(factor, known), fmt::join(known, ", "));
    }
    if (factor == "linear_warmup" || factor == "linear_decay" || factor == "rsqrt_decay" ||
        factor == "rsqrt_normalized_decay") {
      require_positive(options_.warmup_steps, "warmup_steps", factor);
    }
    if (factor == "decay_every") require_positive(options_.steps_per_decay, "steps_per_decay", factor);
    if (factor == "cosine_decay") require_positive(options_.steps_per_cycle, "steps_per_cycle", factor);
    factors_.push_back(factor);
  }
}

// Numbers multiply in double until the first factor that depends on the step, as Python's do.
template <class Real, class Int>
Real LearningRateSchedule::evaluate(Int absolute_step) const {
  const LearningRateOptions& o = options_;
  const int64_t warmup = o.warmup_steps;
  const Int step = at_least(minus(absolute_step, o.step_offset), 0);
  const Real none{};
  auto num = [&](double x) { return number(x, none); };
  double leading = 1.0;
  std::optional<Real> value;
  auto current = [&] { return value ? *value : num(leading); };
  auto multiply = [&](Real factor) { value = current() * factor; };

  for (const std::string& factor : factors_) {
    if (factor == "constant") {
      if (value) {
        multiply(num(o.base_learning_rate));
      } else {
        leading *= o.base_learning_rate;
      }
    } else if (factor == "linear_warmup") {
      multiply(lesser(num(1.0), real(step) / num(static_cast<double>(warmup))));
    } else if (factor == "linear_decay") {
      Real falling = num(1.0) + num(o.decay_factor) * real(minus_from(warmup, step));
      multiply(num(o.base_learning_rate) * lesser(real(step) / num(static_cast<double>(warmup)), falling));
    } else if (factor == "rsqrt_decay") {
      value = current() / root(real(at_least(step, warmup)));
    } else if (factor == "rsqrt_normalized_decay") {
      multiply(num(std::sqrt(static_cast<float>(warmup))));
      value = current() / root(real(at_least(step, warmup)));
    } else if (factor == "decay_every") {
      multiply(power(num(o.decay_factor), real(quotient(step, o.steps_per_decay))));
    } else if (factor == "cosine_decay") {
      Real cycles = real(minus(step, warmup)) / num(static_cast<double>(o.steps_per_cycle));
      Real progress = fraction(greater(num(0.0), cycles));
      Real wave = num(0.5) * (num(1.0) + cosine(num(std::numbers::pi) * progress));
      multiply(greater(num(0.0), wave));
    }
  }
  return greater(current(), num(o.min_learning_rate));
}

Tensor LearningRateSchedule::operator()(Tensor step) const {
  NameScope scope("learning_rate");
  return evaluate<Tensor>(ops::convert(step, DType::kInt32));
}

float LearningRateSchedule::operator()(int64_t step) const { return evaluate<float>(step); }

LearningRateSchedule create_learning_rate_scheduler(const LearningRateOptions& options) {
  return LearningRateSchedule(options);
}

}  // namespace t5x::optim
