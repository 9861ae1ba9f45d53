#include "pjrt/compile_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace t5x::pjrt {
namespace {

TEST(CompileOptions, BytesFollowTheProtobufEncoding) {
  CompileOptions options{.num_replicas = 1, .num_partitions = 2, .device_ids = {3, 1}};
  options.overrides["a"] = int64_t{300};
  // executable_build_options {device_ordinal: -1, num_replicas: 1, num_partitions: 2, use_spmd_partitioning,
  // device_assignment {1, 2, {3}, {1}}, use_shardy_partitioner}, env_option_overrides {"a": 300}
  const std::string assignment("\x08\x01\x10\x02\x1a\x02\x08\x03\x1a\x02\x08\x01", 12);
  const std::string build =
      std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x02\x30\x01", 17) + "\x4a\x0c" +
      assignment + "\x98\x01\x01";
  const std::string entry(
      "\x3a\x08\x0a\x01"
      "a\x12\x03\x18\xac\x02",
      10);
  EXPECT_EQ(serialize_compile_options(options),
            "\x1a" + std::string(1, static_cast<char>(build.size())) + build + entry);
}

TEST(CompileOptions, TypesOfOverridesAreKept) {
  const auto bytes = [](OptionValue value) {
    CompileOptions options;
    options.overrides["x"] = std::move(value);
    const std::string all = serialize_compile_options(options);
    return all.substr(all.find("x\x12") + 3);
  };
  EXPECT_EQ(bytes(std::string("hi")), "\x0a\x02hi");
  EXPECT_EQ(bytes(true), "\x10\x01");
  EXPECT_EQ(bytes(int64_t{5}), "\x18\x05");
  EXPECT_EQ(bytes(1.0), std::string("\x21\0\0\0\0\0\0\xf0\x3f", 9));
}

TEST(CompileOptions, ZeroPartitionsThrow) {
  EXPECT_THROW(check_compile_options({.num_partitions = 0}), ConfigError);
}

TEST(CompileOptions, TooFewDeviceIdsThrow) {
  EXPECT_THROW(check_compile_options({.num_partitions = 4, .device_ids = {0, 1}}), ConfigError);
}

TEST(CompileOptions, RepeatedDeviceIdThrows) {
  EXPECT_THROW(check_compile_options({.num_partitions = 2, .device_ids = {1, 1}}), ConfigError);
}

TEST(CompileOptions, PlatformOverridesYieldToTheCallers) {
  CompileOptions options;
  options.overrides["xla_cpu_experimental_ynn_fusion_type"] = std::string("LIBRARY_FUSION_TYPE_INVALID");
  EXPECT_EQ(with_platform_overrides(options, "cpu").overrides, options.overrides);
}

TEST(CompileOptions, UntunedAddsNothing) {
  EXPECT_TRUE(with_platform_overrides({.tuned = false}, "cpu").overrides.empty());
  EXPECT_FALSE(with_platform_overrides({}, "cpu").overrides.empty());
}

}  // namespace
}  // namespace t5x::pjrt
