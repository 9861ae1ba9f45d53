#include "seqio/evaluator.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"

namespace t5x::seqio {
namespace {

using testing::HasSubstr;

TEST(Metrics, AccuracyIsT5s) {
  EXPECT_EQ(std::get<double>(accuracy({0, 1, 2, 1, 0}, {0, 2, 2, 1, 1}).at("accuracy")), 60.0);
  EXPECT_EQ(std::get<double>(
                sequence_accuracy({Value{1, 2}, Value{3}}, {Value{1, 2}, Value{4}}).at("sequence_accuracy")),
            50.0);
}

TEST(Metrics, EditDistanceIsT5s) {
  Metrics m = edit_distance({"The cat sat", "a b c", ""}, {"the cat sits down", "a c", "x y"});
  EXPECT_EQ(std::get<double>(m.at("min_edit")), 1);
  EXPECT_EQ(std::get<double>(m.at("max_edit")), 2);
  EXPECT_EQ(std::get<double>(m.at("median_edit")), 2);
  EXPECT_EQ(std::get<double>(m.at("sum_edit")), 5);
  EXPECT_DOUBLE_EQ(std::get<double>(m.at("mean_edit")), 5.0 / 3);
}

TEST(Metrics, ErrorRatesCountEditsPerTargetSymbol) {
  EXPECT_EQ(std::get<double>(error_rate({"K AE T", "D AO G"}, {"K AA T", "D AO"}, {.name = "per"}).at("per")),
            100.0 / 3);
  EXPECT_EQ(std::get<double>(error_rate({"h\xc3\xa9"}, {"he"}, {.name = "cer", .per_word = false}).at("cer")),
            50.0);
}

TEST(Metrics, DifferentCountsAreAnError) { EXPECT_THROW(accuracy({1, 2}, {1}), DataError); }

TEST(Postprocessors, AreT5s) {
  Example none;
  EXPECT_EQ(lower_text()("ABC \xc3\x84", none, true), "abc \xc3\xa4");
  EXPECT_EQ(string_to_float()(" 2 ", none, true), 2.0);
  EXPECT_EQ(string_to_float()("1e3", none, true), 1000.0);
  EXPECT_EQ(string_to_float()("x", none, true), -1.0);
  EXPECT_EQ(string_label_to_class_id({"no", "yes"})("yes", none, true), 1);
  EXPECT_EQ(string_label_to_class_id({"no", "yes"})("Yes", none, true), -1);
}

class Evaluation : public testing::Test {
 protected:
  TaskPtr task(std::vector<MetricFn> metrics) {
    auto bytes = std::make_shared<ByteVocabulary>();
    std::vector<Example> rows{{{"inputs", std::string("one")}, {"targets", std::string("A")}},
                              {{"inputs", std::string("three")}, {"targets", std::string("bb")}}};
    return std::make_shared<const Task>(
        TaskConfig{.name = "qa",
                   .source = in_memory_source({{"validation", rows}}),
                   .preprocessors = {tokenize(), append_eos()},
                   .output_features = {{"inputs", {.vocabulary = bytes}}, {"targets", {.vocabulary = bytes}}},
                   .postprocess_fn = lower_text(),
                   .metric_fns = std::move(metrics)});
  }
  FeatureConverterPtr unpacked_ = std::make_shared<EncDecFeatureConverter>(ConverterOptions{.pack = false});
  ByteVocabulary bytes_;
  TempDir dir_;
};

TEST_F(Evaluation, LengthsAreThoseOfTheLongestExample) {
  Evaluator evaluator(task({accuracy_metric()}), unpacked_, {});
  EXPECT_EQ(evaluator.model_feature_lengths().at("encoder_input_tokens"), 6);
  EXPECT_EQ(evaluator.model_feature_lengths().at("decoder_target_tokens"), 3);
  EXPECT_EQ(evaluator.examples("qa").features.size(), 2u);
  EXPECT_EQ(evaluator.targets("qa"), (Values{"a", "bb"}));
}

TEST_F(Evaluation, OutputsAreJoinedByIndexAndWritten) {
  auto mean = score_metric("mean", [](const Values&, const std::vector<double>& s) -> Metrics {
    return {{"mean_score", (s[0] + s[1]) / 2}};
  });
  Evaluator evaluator(task({accuracy_metric(), mean}), unpacked_, {.log_dir = dir_.path().string()});
  ModelFns model;
  model.predict = [&](const EvalExamples&) {
    return IndexedTokens{{1, bytes_.encode("BB")}, {0, bytes_.encode("x")}};
  };
  model.score = [](const EvalExamples&) { return IndexedScores{{1, -1.0}, {0, -2.0}}; };
  Metrics metrics = evaluator.evaluate(100, model).at("qa");
  EXPECT_EQ(std::get<double>(metrics.at("accuracy")), 50.0);
  EXPECT_EQ(std::get<double>(metrics.at("mean_score")), -1.5);
  EXPECT_EQ(Json::parse(read_file(dir_ / "qa-metrics.jsonl")),
            (Json{{"step", 100}, {"accuracy", 50.0}, {"mean_score", -1.5}}));
  std::string results = read_file(dir_ / "qa-000100.jsonl");
  Json first = Json::parse(results.substr(0, results.find('\n')));
  EXPECT_EQ(first.at("target"), "a");
  EXPECT_EQ(first.at("output"), "x");
  EXPECT_EQ(first.at("score"), -2.0);
  EXPECT_EQ(first.at("input").at("inputs_pretokenized"), "one");
}

TEST_F(Evaluation, MissingExampleIsAnError) {
  Evaluator evaluator(task({accuracy_metric()}), unpacked_, {});
  ModelFns model{.predict = [](const EvalExamples&) { return IndexedTokens{{0, {}}}; }};
  try {
    evaluator.evaluate(1, model);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the first missing is 1"));
  }
}

TEST_F(Evaluation, TwoMetricsOfOneNameAreAnError) {
  Evaluator evaluator(task({accuracy_metric(), accuracy_metric()}), unpacked_, {});
  ModelFns model{.predict = [](const EvalExamples&) { return IndexedTokens{{0, {}}, {1, {}}}; }};
  EXPECT_THROW(evaluator.evaluate(1, model), ConfigError);
}

TEST_F(Evaluation, PackingConverterIsRefused) {
  EXPECT_THROW(Evaluator(task({accuracy_metric()}), std::make_shared<EncDecFeatureConverter>(), {}),
               ConfigError);
}

TEST_F(Evaluation, SplitWithoutTasksIsRefused) {
  EXPECT_THROW(Evaluator(task({accuracy_metric()}), unpacked_, {.split = "test"}), ConfigError);
}

}  // namespace
}  // namespace t5x::seqio
