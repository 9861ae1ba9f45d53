#include <gtest/gtest.h>

#include "base/error.h"
#include "partition/axis_rules.h"

namespace t5x {
namespace {

TEST(Mesh, ShardSlicesCoverTheArray) {
  const Mesh mesh{.data = 2, .model = 2};
  const Shape shape{8, 6};
  EXPECT_EQ(shard_slice(mesh, {"data", "model"}, shape, 3), (ShardSlice{{4, 3}, {4, 3}}));
  EXPECT_EQ(shard_slice(mesh, {"", "model"}, shape, 2), (ShardSlice{{0, 0}, {8, 3}}));
  EXPECT_EQ(shard_slice(mesh, {}, shape, 3), (ShardSlice{{0, 0}, {8, 6}}));
}

TEST(Mesh, IndivisibleDimensionThrows) {
  EXPECT_THROW(check_divisible({.data = 4, .model = 1}, {"data"}, {6, 2}, "batch"), ShapeError);
  EXPECT_NO_THROW(check_divisible({.data = 4, .model = 1}, {"", "data"}, {6, 8}, "batch"));
}

TEST(Mesh, ShardyTextNamesAxes) {
  EXPECT_EQ(sdy_sharding({"data"}, 3), "#sdy.sharding<@mesh, [{\"data\"}, {}, {}]>");
  EXPECT_EQ(sdy_sharding({}, 0), "#sdy.sharding<@mesh, []>");
}

TEST(AxisRules, StandardRulesOneDimensional) {
  const AxisRules rules = standard_logical_axis_rules();
  EXPECT_EQ(rules.to_mesh({"embed", "joined_kv"}), (PartitionSpec{"", "model"}));
  EXPECT_EQ(rules.to_mesh({"vocab", "embed"}), (PartitionSpec{"model", ""}));
  EXPECT_EQ(rules.to_mesh({"batch", "length", "heads", "kv"}), (PartitionSpec{"data", "", "model", ""}));
}

TEST(AxisRules, ParameterDims2ShardsEmbedOverData) {
  EXPECT_EQ(standard_logical_axis_rules(1, 2).to_mesh({"embed", "mlp"}), (PartitionSpec{"data", "model"}));
}

TEST(AxisRules, BothDims2UseEachMeshAxisOnce) {
  const AxisRules rules = standard_logical_axis_rules(2, 2);
  EXPECT_EQ(rules.to_mesh({"embed", "mlp"}), (PartitionSpec{"data", "model"}));
  EXPECT_EQ(rules.to_mesh({"batch", "length", "embed"}), (PartitionSpec{"data", "", "model"}));
}

TEST(AxisRules, AdditionalRulesWin) {
  EXPECT_EQ(standard_logical_axis_rules(1, 1, {{"mlp", "data"}}).to_mesh({"embed", "mlp"}),
            (PartitionSpec{"", "data"}));
}

TEST(AxisRules, UnknownAxisOffersCloseMatches) {
  try {
    standard_logical_axis_rules().to_mesh({"embedd"});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("'embed'"), std::string::npos);
  }
}

}  // namespace
}  // namespace t5x
