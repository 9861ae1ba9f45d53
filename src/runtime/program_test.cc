#include "runtime/program.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/basic.h"

namespace t5x {
namespace {

const pjrt::Client& four_devices() {
  static const pjrt::Client client = pjrt::Client::create({.cpu_device_count = 4});
  return client;
}

Array iota(const Shape& shape) {
  Array array(DType::kFloat32, shape);
  float next = 0;
  for (float& value : array.values<float>()) value = next++;
  return array;
}

TEST(DeviceArray, SplitAndJoinGiveTheSameArray) {
  const Array array = iota({4, 6, 2});
  for (const PartitionSpec& spec :
       {PartitionSpec{}, {"data"}, {"", "model"}, {"model", "data"}, {"data", "", "model"}}) {
    const DeviceArray spread = DeviceArray::from_host(four_devices(), {.data = 2, .model = 2}, array, spec);
    EXPECT_TRUE(spread.to_host().identical(array)) << sdy_sharding(spec, 3);
  }
}

ProgramSpec doubling(const Mesh& mesh, const PartitionSpec& spec) {
  const TensorType type{DType::kFloat32, {4, 6}};
  return {.name = "doubling",
          .mesh = mesh,
          .arguments = {{.name = "x", .type = type, .spec = spec, .donated = true}},
          .results = {{.name = "x", .spec = spec}},
          .function = [](const std::vector<Tensor>& x) { return std::vector<Tensor>{add_any(x[0], x[0])}; }};
}

TEST(Program, DonatedArgumentIsEmptyAfterwards) {
  const Program program = Program::compile(four_devices(), doubling({}, {}));
  DeviceArray x = DeviceArray::from_host(four_devices(), {}, iota({4, 6}));
  const std::vector<DeviceArray> results = program.run({&x});
  EXPECT_FALSE(x);
  EXPECT_EQ(results[0].to_host().values<float>()[23], 46.0f);
}

TEST(Program, RunsOnAMesh) {
  const Mesh mesh{.data = 2, .model = 2};
  const Program program = Program::compile(four_devices(), doubling(mesh, {"data", "model"}));
  DeviceArray x = DeviceArray::from_host(four_devices(), mesh, iota({4, 6}), {"data", "model"});
  EXPECT_EQ(program.run({&x})[0].to_host().values<float>()[23], 46.0f);
}

TEST(Program, MeshLargerThanTheClientThrows) {
  EXPECT_THROW(Program::compile(four_devices(), doubling({.data = 4, .model = 2}, {})), ConfigError);
}

TEST(Program, ArgumentOfAnotherShapeThrows) {
  const Program program = Program::compile(four_devices(), doubling({}, {}));
  DeviceArray x = DeviceArray::from_host(four_devices(), {}, iota({6, 4}));
  EXPECT_THROW(program.run({&x}), ShapeError);
}

}  // namespace
}  // namespace t5x
