#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "graph/trace.h"
#include "runtime/run.h"

namespace t5x::optim {
namespace {

float on_device(const LearningRateSchedule& schedule, int32_t step) {
  auto graph = trace({{DType::kInt32, {}}},
                     [&](const std::vector<Tensor>& args) { return std::vector<Tensor>{schedule(args[0])}; });
  return run(*graph, {Array::scalar<int32_t>(step)})[0].item<float>();
}

TEST(LearningRate, PretrainingIsFlatOverTheWarmup) {
  const LearningRateSchedule schedule(
      {.factors = "constant * rsqrt_decay", .base_learning_rate = 1.0, .warmup_steps = 10000});
  EXPECT_FLOAT_EQ(schedule(int64_t{0}), 0.01f);
  EXPECT_FLOAT_EQ(schedule(int64_t{10000}), 0.01f);
  EXPECT_FLOAT_EQ(schedule(int64_t{40000}), 0.005f);
}

TEST(LearningRate, ConstantIsExact) {
  EXPECT_EQ(LearningRateSchedule({.factors = "constant", .base_learning_rate = 0.001})(int64_t{7}), 0.001f);
}

TEST(LearningRate, LinearWarmup) {
  const LearningRateSchedule schedule(
      {.factors = "constant*linear_warmup", .base_learning_rate = 0.5, .warmup_steps = 100});
  EXPECT_FLOAT_EQ(schedule(int64_t{25}), 0.125f);
  EXPECT_FLOAT_EQ(schedule(int64_t{500}), 0.5f);
}

TEST(LearningRate, LinearDecayImpliesConstantAndWarmup) {
  const LearningRateSchedule schedule(
      {.factors = "linear_decay", .base_learning_rate = 0.5, .warmup_steps = 10, .decay_factor = 0.01});
  EXPECT_FLOAT_EQ(schedule(int64_t{5}), 0.25f);
  EXPECT_FLOAT_EQ(schedule(int64_t{60}), 0.25f);
}

TEST(LearningRate, NormalizedDecayBeginsAtTheConstant) {
  const LearningRateSchedule schedule(
      {.factors = "constant * rsqrt_normalized_decay", .base_learning_rate = 0.5, .warmup_steps = 400});
  EXPECT_FLOAT_EQ(schedule(int64_t{400}), 0.5f);
  EXPECT_FLOAT_EQ(schedule(int64_t{1600}), 0.25f);
}

TEST(LearningRate, DecayEveryCountsWholePeriods) {
  const LearningRateSchedule schedule({.factors = "constant * decay_every",
                                       .base_learning_rate = 1.0,
                                       .decay_factor = 0.5,
                                       .steps_per_decay = 100});
  EXPECT_FLOAT_EQ(schedule(int64_t{199}), 0.5f);
  EXPECT_FLOAT_EQ(schedule(int64_t{200}), 0.25f);
}

TEST(LearningRate, CosineStartsAnewEachCycle) {
  const LearningRateSchedule schedule({.factors = "constant * cosine_decay",
                                       .base_learning_rate = 1.0,
                                       .warmup_steps = 0,
                                       .steps_per_cycle = 100});
  EXPECT_FLOAT_EQ(schedule(int64_t{0}), 1.0f);
  EXPECT_NEAR(schedule(int64_t{50}), 0.5f, 1e-6);
  EXPECT_FLOAT_EQ(schedule(int64_t{100}), 1.0f);
}

TEST(LearningRate, OffsetAndMinimum) {
  const LearningRateSchedule schedule({.factors = "constant * linear_warmup",
                                       .base_learning_rate = 1.0,
                                       .warmup_steps = 100,
                                       .step_offset = 1000,
                                       .min_learning_rate = 0.125});
  EXPECT_EQ(schedule(int64_t{500}), 0.125f);
  EXPECT_FLOAT_EQ(schedule(int64_t{1050}), 0.5f);
}

// The same formula; XLA's own sqrt, pow and cos may differ from the C library's in the last bits.
TEST(LearningRate, DeviceAgreesWithHost) {
  for (const char* factors :
       {"constant", "constant * linear_warmup * rsqrt_decay", "linear_decay",
        "constant * rsqrt_normalized_decay * decay_every", "constant * linear_warmup * cosine_decay"}) {
    const LearningRateSchedule schedule({.factors = factors,
                                         .base_learning_rate = 0.3,
                                         .warmup_steps = 100,
                                         .decay_factor = 0.003,
                                         .steps_per_decay = 150,
                                         .steps_per_cycle = 70});
    for (int32_t step : {0, 1, 99, 100, 250, 301}) {
      const float host = schedule(static_cast<int64_t>(step));
      EXPECT_NEAR(on_device(schedule, step), host, 1e-6f * std::abs(host)) << factors << " at " << step;
    }
  }
}

TEST(LearningRate, UnknownFactorOffersCloseMatches) {
  try {
    LearningRateSchedule({.factors = "constant * rsqrt_deacy"});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'rsqrt_decay'"), std::string::npos) << e.what();
  }
}

TEST(LearningRate, WarmupOfZeroStepsThrows) {
  EXPECT_THROW(LearningRateSchedule({.factors = "linear_warmup", .warmup_steps = 0}), ConfigError);
}

}  // namespace
}  // namespace t5x::optim
