#include "pjrt/executable.h"

#include "pjrt/testing/programs.h"

namespace t5x::pjrt {
namespace {

using testing::HasSubstr;

Executable compile_add() { return test_client().compile(kAdd, {argument({4}), argument({4})}); }
Executable compile_add_in_place() {
  return test_client().compile(kAddInPlace, {argument({1024}, true), argument({1024})});
}
std::vector<Buffer> run(const Executable& program, std::vector<Buffer*> arguments,
                        const ExecuteOptions& options = {}) {
  return program.execute(std::span<Buffer* const>(arguments), options);
}

TEST(Compile, AddRuns) {
  Buffer a = test_client().to_device(iota(4)), b = test_client().to_device(iota(4, 10));
  const std::vector<Buffer> out = run(compile_add(), {&a, &b});
  ASSERT_EQ(out.size(), 1U);
  EXPECT_THAT(out[0].to_host().values<float>(), testing::ElementsAre(10, 12, 14, 16));
}

TEST(Compile, ReportsTheResults) {
  const Executable program = compile_add();
  ASSERT_EQ(program.num_outputs(), 1U);
  EXPECT_EQ(program.output(0), (TensorSpec{DType::kFloat32, Shape{4}}));
  EXPECT_EQ(program.devices(), std::vector<size_t>{0});
}

TEST(Compile, BadTextThrows) {
  EXPECT_THAT(message_of<DeviceError>([] { test_client().compile("module { nonsense }", {}); }),
              HasSubstr("compiling a program: the device plugin said"));
}

TEST(Compile, EmptyTextThrows) { EXPECT_THROW(test_client().compile("", {}), DeviceError); }

TEST(Compile, ZeroReplicasThrows) {
  EXPECT_THROW(test_client().compile(kAdd, {argument({4}), argument({4})}, {.num_replicas = 0}), ConfigError);
}

TEST(Compile, MoreDevicesThanThereAreThrows) {
  EXPECT_THROW(test_client().compile(kAdd, {argument({4}), argument({4})}, {.num_replicas = 64}),
               DeviceError);
}

TEST(Compile, UnknownOverrideOfTheCallerThrows) {
  CompileOptions options;
  options.overrides["xla_no_such_option"] = true;
  EXPECT_THAT(message_of<DeviceError>([&] {
                test_client().compile(kAdd, {argument({4}), argument({4})}, options);
              }),
              HasSubstr("xla_no_such_option"));
}

TEST(Compile, UndeclaredDonationThrows) {
  EXPECT_THAT(message_of<ShapeError>([] {
                test_client().compile(kAddInPlace, {argument({1024}), argument({1024})});
              }),
              HasSubstr("donates 1 of its arguments"));
}

TEST(Compile, RunsOnAChosenDevice) {
  const Executable program = test_client().compile(kAdd, {argument({4}), argument({4})}, {.device_ids = {2}});
  ASSERT_EQ(program.devices(), std::vector<size_t>{2});
  Buffer a = test_client().to_device(iota(4), 2);
  EXPECT_EQ(run(program, {&a, &a})[0].device(), 2U);
}

TEST(Execute, WrongCountThrows) {
  Buffer a = test_client().to_device(iota(4));
  EXPECT_THAT(message_of<ShapeError>([&] { run(compile_add(), {&a}); }),
              HasSubstr("takes 2 arguments, but 1"));
}

TEST(Execute, WrongShapeOfTheSameSizeThrows) {
  Buffer a = test_client().to_device(iota(4));
  Buffer b = test_client().to_device(iota(4).reshape(Shape{2, 2}));
  EXPECT_THAT(message_of<ShapeError>([&] {
                run(compile_add(), {&a, &b});
              }),
              HasSubstr("argument 1 must be float32(4), but the buffer is float32(2, 2)"));
}

TEST(Execute, WrongDTypeOfTheSameSizeThrows) {
  Buffer a = test_client().to_device(iota(4));
  Buffer b = test_client().to_device(Array(DType::kInt32, Shape{4}));
  EXPECT_THAT(message_of<ShapeError>([&] { run(compile_add(), {&a, &b}); }), HasSubstr("int32(4)"));
}

TEST(Execute, ErrorsNameTheArgument) {
  const Executable program = test_client().compile(
      kAdd, {argument({4}), {.spec = {DType::kFloat32, Shape{4}}, .name = "params/bias"}});
  Buffer a = test_client().to_device(iota(4)), b = test_client().to_device(iota(3));
  EXPECT_THAT(message_of<ShapeError>([&] { run(program, {&a, &b}); }), HasSubstr("argument 1 (params/bias)"));
}

TEST(Execute, NullBufferThrows) {
  Buffer a = test_client().to_device(iota(4));
  EXPECT_THAT(message_of<DeviceError>([&] { run(compile_add(), {&a, nullptr}); }), HasSubstr("null buffer"));
}

TEST(Execute, RemovedBufferThrows) {
  Buffer a = test_client().to_device(iota(4)), b = test_client().to_device(iota(4));
  b.remove();
  EXPECT_THAT(message_of<DeviceError>([&] { run(compile_add(), {&a, &b}); }), HasSubstr("was removed"));
}

TEST(Execute, BufferOnAnotherDeviceThrows) {
  Buffer a = test_client().to_device(iota(4)), b = test_client().to_device(iota(4), 1);
  EXPECT_THAT(message_of<DeviceError>([&] {
                run(compile_add(), {&a, &b});
              }),
              HasSubstr("must be on device 0"));
}

TEST(Execute, BufferOfAnotherClientThrows) {
  const Client other = Client::create();
  Buffer a = test_client().to_device(iota(4)), b = other.to_device(iota(4));
  EXPECT_THAT(message_of<DeviceError>([&] { run(compile_add(), {&a, &b}); }), HasSubstr("another client"));
}

TEST(Donate, ResultTakesTheMemoryOfTheArgument) {
  const Executable program = compile_add_in_place();
  Buffer a = test_client().to_device(iota(1024)), b = test_client().to_device(iota(1024));
  const uintptr_t address = a.address();
  const std::vector<Buffer> out = run(program, {&a, &b});
  EXPECT_EQ(out[0].address(), address);
  EXPECT_TRUE(a.is_deleted());
  EXPECT_FALSE(b.is_deleted());
  EXPECT_EQ(out[0].to_host().values<float>()[5], 10);
}

TEST(Donate, SecondUseSaysThatTheBufferWasDonated) {
  const Executable program = compile_add_in_place();
  Buffer a = test_client().to_device(iota(1024)), b = test_client().to_device(iota(1024));
  run(program, {&a, &b});
  EXPECT_THAT(message_of<DeviceError>([&] { run(program, {&a, &b}); }), HasSubstr("was donated"));
  EXPECT_THAT(message_of<DeviceError>([&] { a.to_host(); }), HasSubstr("was donated"));
}

TEST(Donate, SameBufferAsAnotherArgumentThrowsAndKeepsIt) {
  const Executable program = compile_add_in_place();
  Buffer a = test_client().to_device(iota(1024)), b = test_client().to_device(iota(1024));
  EXPECT_THAT(message_of<DeviceError>([&] {
                run(program, {&a, &a});
              }),
              HasSubstr("another argument donates"));
  EXPECT_EQ(run(program, {&a, &b}).size(), 1U);
}

TEST(Donate, NonDonatableArgumentStays) {
  const Executable program = compile_add_in_place();
  Buffer a = test_client().to_device(iota(1024));
  const std::vector<Buffer> out = run(program, {&a, &a}, {.non_donatable = {0}});
  EXPECT_EQ(out[0].to_host().values<float>()[5], 10);
  EXPECT_EQ(a.to_host().values<float>()[5], 5);
}

TEST(Donate, BorrowedHostArrayIsNotOverwritten) {
  const Executable program = compile_add_in_place();
  const Array host = iota(1024);
  Buffer a = test_client().to_device(host, 0, HostTransfer::kZeroCopy),
         b = test_client().to_device(iota(1024));
  const std::vector<Buffer> out = run(program, {&a, &b});
  EXPECT_EQ(out[0].to_host().values<float>()[5], 10);
  EXPECT_TRUE(host.identical(iota(1024)));
  EXPECT_TRUE(a.is_deleted());
}

// The rows of a matrix are spread over four devices and summed over columns; the sum over all comes back
// replicated.
const char* const kSharded = R"(module @sharded {
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%x: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>},
          tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %zero = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %rows = "stablehlo.reduce"(%x, %zero) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<8x3xf32>, tensor<f32>) -> tensor<8xf32>
    %all = "stablehlo.reduce"(%rows, %zero) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%rows, %all) : (tensor<8xf32>, tensor<f32>) -> ()
  }
})";

TEST(Sharded, FourDevicesRunAShardyProgram) {
  const Executable program = test_client().compile(kSharded, {argument({2, 3})}, {.num_partitions = 4});
  ASSERT_EQ(program.devices(), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(program.output(0).shape, Shape{2});
  EXPECT_EQ(program.output(1).shape, Shape{});
  std::vector<Buffer> shards;
  for (size_t d = 0; d < 4; ++d)
    shards.push_back(test_client().to_device(iota(6, 6.0F * static_cast<float>(d)).reshape(Shape{2, 3}), d));
  std::vector<Buffer*> pointers;
  for (Buffer& shard : shards) pointers.push_back(&shard);
  std::vector<std::span<Buffer* const>> rows;
  for (size_t d = 0; d < 4; ++d) rows.emplace_back(&pointers[d], 1);
  const std::vector<std::vector<Buffer>> out = program.execute(rows);
  ASSERT_EQ(out.size(), 4U);
  EXPECT_THAT(out[3][0].to_host().values<float>(), testing::ElementsAre(18 + 19 + 20, 21 + 22 + 23));
  for (const auto& device : out) EXPECT_EQ(device[1].to_host().item<float>(), 23 * 24 / 2);
}

TEST(Sharded, ArgumentsForTooFewDevicesThrow) {
  const Executable program = test_client().compile(kSharded, {argument({2, 3})}, {.num_partitions = 4});
  Buffer a = test_client().to_device(iota(6).reshape(Shape{2, 3}));
  EXPECT_THAT(message_of<ShapeError>([&] { run(program, {&a}); }), HasSubstr("runs on 4 devices"));
}

TEST(Statistics, MemoryOfAnInPlaceProgram) {
  const MemoryStats stats = compile_add_in_place().memory_stats();
  EXPECT_EQ(stats.arguments, 8192);
  EXPECT_EQ(stats.outputs, 4096);
  EXPECT_EQ(stats.alias, 4096);
  EXPECT_EQ(stats.total(), 8192 + stats.temporaries);
}

TEST(Statistics, OptimizedProgramHoldsTheAddition) {
  EXPECT_THAT(compile_add().program().optimized_program().code, HasSubstr("add"));
}

TEST(Serialize, LoadedProgramRuns) {
  const std::string bytes = compile_add().serialize();
  const Executable program = test_client().load(bytes, {argument({4}), argument({4})});
  Buffer a = test_client().to_device(iota(4));
  EXPECT_EQ(run(program, {&a, &a})[0].to_host().values<float>()[3], 6);
}

TEST(Serialize, TruncatedBytesThrow) {
  const std::string bytes = compile_add().serialize();
  EXPECT_THROW(test_client().load(bytes.substr(0, bytes.size() / 2), {argument({4}), argument({4})}),
               DeviceError);
}

TEST(Serialize, NoBytesThrow) { EXPECT_THROW(test_client().load("", {}), DeviceError); }

}  // namespace
}  // namespace t5x::pjrt
