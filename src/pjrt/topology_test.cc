#include "pjrt/topology.h"

#include <cstdlib>

#include "pjrt/testing/programs.h"

namespace t5x::pjrt {
namespace {

TEST(Topology, PluginWithoutTopologiesThrows) {
  EXPECT_THAT(message_of<DeviceError>([] { Topology::create({.name = "v5e:2x2"}); }),
              testing::HasSubstr("creating the topology 'v5e:2x2'"));
}

// Needs libtpu.so, but no TPU.
class TpuTopology : public testing::Test {
 protected:
  void SetUp() override {
    const char* plugin = std::getenv("T5X_TPU_PLUGIN");
    if (plugin == nullptr) GTEST_SKIP() << "T5X_TPU_PLUGIN does not name a libtpu.so";
    setenv("TPU_SKIP_MDS_QUERY", "1", 1);
    setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4", 1);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 1);
    options_ = {.plugin = plugin, .name = "v5e:2x2"};
  }
  TopologyOptions options_;
};

TEST_F(TpuTopology, CompilesWithoutDevices) {
  const Topology topology = Topology::create(options_);
  EXPECT_EQ(topology.platform_name(), "tpu");
  EXPECT_EQ(topology.num_devices(), 4U);
  const CompiledProgram program = topology.compile(kAdd);
  EXPECT_EQ(program.outputs().at(0)->shape, Shape{4});
  EXPECT_GT(program.memory_stats().arguments, 0);
  EXPECT_FALSE(program.cost_analysis().empty());
  EXPECT_FALSE(program.serialize().empty());
}

TEST_F(TpuTopology, BadTextThrows) {
  EXPECT_THROW(Topology::create(options_).compile("nonsense"), DeviceError);
}

TEST_F(TpuTopology, MoreDevicesThanItHasThrows) {
  EXPECT_THROW(Topology::create(options_).compile(kAdd, {.num_partitions = 8}), ConfigError);
}

}  // namespace
}  // namespace t5x::pjrt
