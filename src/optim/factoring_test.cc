#include "optim/factoring.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "optim/adafactor.h"

namespace t5x::optim {
namespace {

using Rule = std::vector<FactorDim>;
constexpr auto kRow = FactorDim::kRow, kColumn = FactorDim::kColumn, kBatch = FactorDim::kBatch,
               kNone = FactorDim::kNone;

AdafactorHyperParams standard() {
  AdafactorHyperParams hp;
  hp.logical_factor_rules = standard_logical_factor_rules();
  return hp;
}

// tests/golden/optim/factoring.json: every parameter of four models of t5x.
class FactoringGolden : public testing::TestWithParam<const char*> {};

TEST_P(FactoringGolden, EqualsT5x) {
  std::ifstream file(T5X_SOURCE_DIR "/tests/golden/optim/factoring.json");
  const nlohmann::json model = nlohmann::json::parse(file).at(GetParam());
  ASSERT_FALSE(model.empty());
  const Adafactor adafactor(standard());
  for (const auto& [path, want] : model.items()) {
    const ParamInfo info{{DType::kFloat32, Shape(want.at("shape").get<Dims>())},
                         want.at("logical_axes").get<std::vector<std::string>>()};
    const Factoring got = adafactor.factoring(path, info);
    EXPECT_EQ(got.heuristic, want.at("heuristic").get<bool>()) << path;
    EXPECT_EQ(got.averaging_dims, want.at("averaging_dims").get<Dims>()) << path;
    const auto& factored = want.at("factored_dims_d1_d0");
    ASSERT_EQ(got.factored_dims.has_value(), !factored.is_null()) << path;
    if (got.factored_dims) {
      EXPECT_EQ(got.factored_dims->first, factored[0].get<Dims>()) << path;
      EXPECT_EQ(got.factored_dims->second, factored[1].get<Dims>()) << path;
    }
    const auto types = adafactor.state_types({{path, info}});
    for (const auto& [slot, shape] : want.at("opt_shapes").items()) {
      EXPECT_EQ(types.at(path + "/" + slot).shape, Shape(shape.get<Dims>())) << path << "/" << slot;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FactoringGolden,
                         testing::Values("t5_tiny", "t5_fact", "scalable", "decoder_only"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Factoring, DimensionBelowTheLimitIsNotFactored) {
  EXPECT_FALSE(decide_factoring(HeuristicRule{}, {127, 512}, 128, "w").factored_dims);
  EXPECT_TRUE(decide_factoring(HeuristicRule{}, {128, 512}, 128, "w").factored_dims);
}

TEST(Factoring, RowDropsTheLargestDimension) {
  const auto dims = *decide_factoring(HeuristicRule{}, {512, 256}, 128, "w").factored_dims;
  EXPECT_EQ(dims.second, Dims{0});
  EXPECT_EQ(dims.first, Dims{1});
}

TEST(Factoring, ExplicitRuleIgnoresTheSizeLimit) {
  const Factoring f = decide_factoring(FactorRule(Rule{kRow, kBatch, kColumn}), {4, 2, 8}, 128, "w");
  EXPECT_EQ(f.averaging_dims, (Dims{0, 2}));
  EXPECT_EQ(f.factored_dims->second, Dims{2});
}

TEST(Factoring, HeuristicForRankThreeThrows) {
  EXPECT_THROW(decide_factoring(HeuristicRule{}, {4, 2, 8}, 128, "w"), ConfigError);
}

TEST(Factoring, RuleOfAnotherRankThrows) {
  EXPECT_THROW(decide_factoring(FactorRule(Rule{kRow, kColumn}), {4, 2, 8}, 128, "w"), ConfigError);
}

TEST(Factoring, NoRuleAveragesOverEverything) {
  const Factoring f = decide_factoring(std::nullopt, {4, 2, 8}, 128, "w");
  EXPECT_EQ(f.averaging_dims, (Dims{0, 1, 2}));
  EXPECT_FALSE(f.factored_dims);
}

TEST(FactorRules, RowsWithoutColumnsBecomeUnfactored) {
  EXPECT_EQ(rule_from_axes(standard_logical_factor_rules(), {"embed", "layers"}, "w"), (Rule{kNone, kBatch}));
}

TEST(FactorRules, RowsColumnsAndNoneThrow) {
  EXPECT_THROW(rule_from_axes(standard_logical_factor_rules(), {"embed", "mlp", "relpos_buckets"}, "w"),
               ConfigError);
}

TEST(FactorRules, UnknownAxisNamesTheParameterAndTheLikelyAxis) {
  try {
    rule_from_axes(standard_logical_factor_rules(), {"embd", "mlp"}, "encoder/wi");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("'embd' of the parameter 'encoder/wi'; did you mean 'embed'"),
              std::string::npos)
        << e.what();
  }
}

TEST(FactorRules, NamesOfDimensions) {
  EXPECT_EQ(factor_dim_from_name("COL"), kColumn);
  EXPECT_EQ(factor_dim_from_name("unfactorized"), kNone);
  EXPECT_THROW(factor_dim_from_name("diagonal"), ConfigError);
}

TEST(HParamMap, FirstMatchWins) {
  const HParamMap<int> map({{"encoder/.*scale", 1}, {"scale", 2}});
  EXPECT_EQ(map["encoder/norm/scale"], 1);
  EXPECT_EQ(map["decoder/norm/scale"], 2);
  EXPECT_THROW(map["decoder/kernel"], ConfigError);
}

TEST(AdafactorState, AxesFollowTheParameter) {
  AdafactorHyperParams hp = standard();
  hp.beta1 = 0.9;
  const ParamInfos infos = {{"w", {{DType::kFloat32, {64, 2, 4, 16}}, {"embed", "layers", "heads", "kv"}}},
                            {"b", {{DType::kFloat32, {64}}, {"embed"}}}};
  const auto axes = Adafactor(hp).state_axes(infos);
  using Names = std::vector<std::string>;
  EXPECT_EQ(axes.at("w/v_row"), (Names{"embed", "layers"}));
  EXPECT_EQ(axes.at("w/v_col"), (Names{"layers", "heads", "kv"}));
  EXPECT_EQ(axes.at("w/v"), (Names{""}));
  EXPECT_EQ(axes.at("w/m"), infos.at("w").axes);
  EXPECT_EQ(axes.at("b/v"), (Names{"embed"}));
  EXPECT_EQ(axes.at("b/v_row"), (Names{""}));
}

}  // namespace
}  // namespace t5x::optim
