// What is printed while a run trains, and the means and rates that it is made of.
#include "train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace t5x {
namespace {

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1000), "-1,000");
}

TEST(FormatDuration, UsesTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(12.4), "12s");
  EXPECT_EQ(format_duration(59.6), "1m 00s");
  EXPECT_EQ(format_duration(185), "3m 05s");
  EXPECT_EQ(format_duration(3720), "1h 02m");
  EXPECT_EQ(format_duration(360000), "100h 00m");
}

TEST(FormatDuration, NegativeIsNothing) { EXPECT_EQ(format_duration(-3), "0s"); }

TEST(ProgressLine, SaysWhatAPersonWantsToKnow) {
  const std::map<std::string, double> summary = {{"token_loss", 0.41234},
                                                 {"accuracy", 0.871},
                                                 {"learning_rate", 1e-3},
                                                 {"gradient_norm", 0.83},
                                                 {"timing/steps_per_second", 40},
                                                 {"timing/tokens_per_second", 41200},
                                                 {"timing/input_wait_fraction", 0.001}};
  EXPECT_EQ(progress_line(1200, 5000, summary),
            "step 1,200/5,000 | loss 0.4123 | acc 87.1% | lr 1.00e-03 | grad 0.83 | 41,200 tok/s | "
            "25.0 ms/step | 1m 35s to go | input 0.1%");
}

// Sums of a step of 10 target and 20 input tokens, 8 of the targets with weight.
MetricSums sums(double loss, double correct, double learning_rate) {
  return {{"loss", loss},
          {"z_loss", 0.5},
          {"cross_ent_loss", loss - 0.5},
          {"token_loss", 2 * loss},
          {"correct", correct},
          {"weight", 8},
          {"tokens", 10},
          {"nonpadding/encoder", 15},
          {"nonpadding/decoder", 8},
          {"encoder_tokens", 20},
          {"learning_rate", learning_rate},
          {"gradient_norm", 10 * learning_rate}};
}

TEST(MetricsWindow, DividesSumsByTheirWeights) {
  MetricsWindow window;
  window.add(sums(8, 2, 0.5));
  window.add(sums(24, 4, 0.25));
  const auto summary = window.summary(0);
  EXPECT_EQ(window.steps(), 2);
  EXPECT_DOUBLE_EQ(summary.at("loss"), 16);
  EXPECT_DOUBLE_EQ(summary.at("loss_per_nonpadding_target_token"), 2);
  EXPECT_DOUBLE_EQ(summary.at("loss_per_all_target_tokens"), 1.6);
  EXPECT_DOUBLE_EQ(summary.at("token_loss"), 4);
  EXPECT_DOUBLE_EQ(summary.at("accuracy"), 0.375);
  EXPECT_DOUBLE_EQ(summary.at("z_loss"), 0.5);
  EXPECT_DOUBLE_EQ(summary.at("non_padding_fraction/encoder"), 0.75);
  EXPECT_DOUBLE_EQ(summary.at("non_padding_fraction/decoder"), 0.8);
}

TEST(MetricsWindow, LearningRateIsTheLastStepsOwn) {
  MetricsWindow window;
  window.add(sums(8, 2, 0.5));
  window.add(sums(24, 4, 0.25));
  const auto summary = window.summary(0);
  EXPECT_EQ(summary.at("learning_rate"), 0.25);
  EXPECT_EQ(summary.at("gradient_norm"), 2.5);
}

TEST(MetricsWindow, RatesAndWaitingAreSharesOfTheSameTime) {
  MetricsWindow window;
  window.add(sums(8, 2, 0.5));
  const auto summary = window.summary(0.5);
  const double seconds = summary.at("timing/seconds");
  EXPECT_DOUBLE_EQ(summary.at("timing/steps_per_second"), 1 / seconds);
  EXPECT_DOUBLE_EQ(summary.at("timing/target_tokens_per_second"), 10 / seconds);
  EXPECT_DOUBLE_EQ(summary.at("timing/tokens_per_second"), 30 / seconds);
  EXPECT_DOUBLE_EQ(summary.at("timing/input_wait_fraction"), 0.5 / seconds);
}

TEST(Summarize, OfNothingDividesByNothing) {
  MetricSums nothing = sums(0, 0, 0);
  for (auto& [name, value] : nothing) value = 0;
  for (const auto& [name, value] : summarize(nothing, 0)) EXPECT_EQ(value, 0) << name;
}

}  // namespace
}  // namespace t5x
