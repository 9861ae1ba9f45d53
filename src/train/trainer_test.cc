// The trainer on one device and on four, with microbatches and without, and what it does with states that do
// not fit.
#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/tiny_test_util.h"

namespace t5x {
namespace {

using test::tiny_batch;
using test::tiny_trainer;
using test::TinyOptions;
using testing::AllOf;
using testing::HasSubstr;

Trainer initialized(const TinyOptions& options) {
  Trainer trainer(test::client(), tiny_trainer(options), &test::cache());
  trainer.initialize();
  return trainer;
}

// Losses of `steps` steps over batches of their own.
std::vector<double> losses(Trainer& trainer, uint32_t steps) {
  std::vector<double> out;
  for (uint32_t step = 0; step < steps; ++step)
    out.push_back(trainer.train_step(tiny_batch(step)).get().at("loss"));
  return out;
}

void expect_close(const std::vector<double>& ours, const std::vector<double>& expected, double relative) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], expected[i], relative * std::abs(expected[i])) << "step " << i + 1;
}

// Float32 sums of a few thousand terms in another order.
constexpr double kRounding = 2e-5;

std::vector<double> on_one_device() {
  static const std::vector<double> found = [] {
    Trainer trainer = initialized({.dropout_rate = 0.1});
    return losses(trainer, 10);
  }();
  return found;
}

TEST(Trainer, LossFalls) {
  Trainer trainer = initialized({});
  const HostBatch batch = tiny_batch(0);
  const double first = trainer.train_step(batch).get().at("loss");
  double last = first;
  for (int step = 0; step < 10; ++step) last = trainer.train_step(batch).get().at("loss");
  EXPECT_LT(last, 0.9 * first);
}

TEST(Trainer, DropoutChangesTheLoss) {
  Trainer with = initialized({.dropout_rate = 0.1}), without = initialized({});
  EXPECT_GT(std::abs(losses(with, 1)[0] / losses(without, 1)[0] - 1), 10 * kRounding);
}

TEST(Trainer, FourDevicesDataParallelGiveTheLossesOfOne) {
  Trainer trainer = initialized({.mesh = {.data = 4, .model = 1}, .dropout_rate = 0.1});
  expect_close(losses(trainer, 10), on_one_device(), kRounding);
}

TEST(Trainer, FourDevicesModelParallelGiveTheLossesOfOne) {
  Trainer trainer = initialized({.mesh = {.data = 2, .model = 2}, .dropout_rate = 0.1});
  expect_close(losses(trainer, 10), on_one_device(), kRounding);
}

TEST(Trainer, ParametersSplitOverBothAxesGiveTheLossesOfOneDevice) {
  Trainer trainer =
      initialized({.mesh = {.data = 2, .model = 2}, .parameter_partitioning_dims = 2, .dropout_rate = 0.1});
  EXPECT_EQ(trainer.state_entries().at("target/encoder/layers_0/mlp/wi_0/kernel").spec,
            (PartitionSpec{"data", "model"}));
  expect_close(losses(trainer, 10), on_one_device(), kRounding);
}

TEST(Trainer, OptimizerStateFollowsItsParameter) {
  Trainer trainer(test::client(),
                  tiny_trainer({.mesh = {.data = 2, .model = 2}, .parameter_partitioning_dims = 2}),
                  &test::cache());
  const auto& entries = trainer.state_entries();
  const std::string slots = "state/param_states/encoder/layers_0/mlp/wi_0/kernel/";
  const PartitionSpec row = entries.at(slots + "v_row").spec, column = entries.at(slots + "v_col").spec;
  // [32, 64] over data and model: the larger dimension's statistics keep its axis, the other's theirs.
  EXPECT_THAT((std::vector<PartitionSpec>{row, column}),
              testing::UnorderedElementsAre(PartitionSpec{"data"}, PartitionSpec{"model"}));
}

TEST(Trainer, MicrobatchesGiveTheUpdateOfTheWholeBatch) {
  Trainer whole = initialized({}), parts = initialized({.num_microbatches = 4});
  const MetricSums a = whole.train_step(tiny_batch(0)).get(), b = parts.train_step(tiny_batch(0)).get();
  for (const auto& [name, value] : a) EXPECT_NEAR(b.at(name), value, kRounding * std::abs(value)) << name;
  expect_close(losses(parts, 5), losses(whole, 5), kRounding);
}

TEST(Trainer, MicrobatchesNeedLessMemory) {
  auto temporaries = [](int64_t microbatches) {
    Trainer trainer(test::client(), tiny_trainer({.num_microbatches = microbatches}), &test::cache());
    const Program& program =
        trainer.compile_train(models::EncoderDecoderModel::batch_types(32, 128, 128, /*packed=*/false));
    return program.executable().memory_stats().temporaries;
  };
  const int64_t whole = temporaries(1), quarter = temporaries(4);
  EXPECT_LT(quarter, whole / 2) << "planned bytes of 4 microbatches and of 1";
}

TEST(Trainer, BatchMustSplitIntoMicrobatches) {
  Trainer trainer = initialized({.num_microbatches = 3});
  try {
    trainer.train_step(tiny_batch(0));
    FAIL() << "8 rows in 3 parts";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.message(), AllOf(HasSubstr("8"), HasSubstr("num_microbatches 3")));
  }
}

TEST(Trainer, MeshThatDoesNotDivideAParameterIsNamed) {
  // 384 embeddings and a width of 32 in 5 parts.
  EXPECT_THROW(Trainer(test::client(), tiny_trainer({.mesh = {.data = 1, .model = 5}})), Error);
}

TEST(Trainer, StateThatWasSavedContinuesBitForBit) {
  Trainer first = initialized({.dropout_rate = 0.1});
  losses(first, 3);
  Trainer second(test::client(), tiny_trainer({.dropout_rate = 0.1}), &test::cache());
  second.load(first.snapshot(), "the first trainer");
  EXPECT_EQ(second.step(), 3);
  EXPECT_EQ(losses(second, 3), losses(first, 3));
  const NamedArrays a = first.snapshot(), b = second.snapshot();
  for (const auto& [name, array] : a) EXPECT_TRUE(b.at(name).identical(array)) << name;
}

TEST(Trainer, StateOfAnotherModelListsWhatDoesNotFit) {
  Trainer trainer = initialized({});
  NamedArrays arrays = trainer.snapshot();
  arrays.erase("target/decoder/decoder_norm/scale");
  arrays["target/decoder/extra"] = Array(DType::kFloat32, Shape({2}));
  arrays["target/encoder/encoder_norm/scale"] = Array(DType::kFloat32, Shape({5}));
  try {
    trainer.load(arrays, "checkpoint_7");
    FAIL() << "a missing, an extra and a misshapen array";
  } catch (const CheckpointError& e) {
    EXPECT_THAT(e.message(), AllOf(HasSubstr("checkpoint_7"), HasSubstr("target/decoder/decoder_norm/scale"),
                                   HasSubstr("target/decoder/extra"),
                                   HasSubstr("target/encoder/encoder_norm/scale"), HasSubstr("5")));
  }
}

}  // namespace
}  // namespace t5x
