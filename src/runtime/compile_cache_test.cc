#include "runtime/compile_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"

namespace t5x {
namespace {

using pjrt::ArgumentSpec;
using pjrt::Buffer;
using pjrt::Client;
using pjrt::CompileOptions;

const char* const kDouble = R"(module @double {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.add"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }
})";

const std::vector<ArgumentSpec> kArguments = {{.spec = {DType::kFloat32, Shape{2}}}};
const std::string kKey(64, 'a');

const Client& client() {
  static const Client the_client = Client::create({.cpu_device_count = 2});
  return the_client;
}

class CompileCacheTest : public testing::Test {
 protected:
  CompileCache::Compiled compile() { return cache_.compile(client(), kDouble, kArguments, {}); }
  fs::path entry() { return cache_.entry_path(CompileCache::key(client(), kDouble, {})); }
  // The program must run whatever happened to its entry.
  static void expect_doubles(const CompileCache::Compiled& compiled) {
    const float values[] = {1, 2};
    Buffer a = client().to_device(Array::from<float>(values, Shape{2}));
    Buffer* arguments[] = {&a};
    EXPECT_THAT(compiled.executable.execute(arguments)[0].to_host().values<float>(),
                testing::ElementsAre(2, 4));
  }
  // Replaces the entry with `bytes`: the next compile must not use it, the one after must find a good one.
  void expect_replaced(const std::string& bytes, const std::string& warning) {
    write_file(entry(), bytes);
    testing::internal::CaptureStderr();
    const CompileCache::Compiled compiled = compile();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(warning));
    EXPECT_FALSE(compiled.hit);
    expect_doubles(compiled);
    EXPECT_TRUE(compile().hit);
  }

  TempDir dir_;
  CompileCache cache_{{.directory = (dir_ / "cache").string()}};
};

TEST_F(CompileCacheTest, SecondCompileIsAHit) {
  EXPECT_FALSE(compile().hit);
  const CompileCache::Compiled second = compile();
  EXPECT_TRUE(second.hit);
  expect_doubles(second);
}

TEST_F(CompileCacheTest, OtherOptionsMiss) {
  compile();
  EXPECT_FALSE(cache_.compile(client(), kDouble, kArguments, {.device_ids = {1}}).hit);
  EXPECT_FALSE(cache_.compile(client(), kDouble, kArguments, {.tuned = false}).hit);
}

TEST_F(CompileCacheTest, OtherTextMisses) {
  compile();
  EXPECT_FALSE(cache_.compile(client(), std::string(kDouble) + "\n", kArguments, {}).hit);
}

TEST_F(CompileCacheTest, FlippedByteIsReplaced) {
  compile();
  std::string bytes = read_file(entry());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  expect_replaced(bytes, "its checksum does not match");
}

TEST_F(CompileCacheTest, TruncatedEntryIsReplaced) {
  compile();
  expect_replaced(read_file(entry()).substr(0, 1000), "it holds");
}

TEST_F(CompileCacheTest, EntryCutInItsHeaderIsReplaced) {
  compile();
  expect_replaced("t5xcache", "ends within its header");
}

TEST_F(CompileCacheTest, ForeignFileIsReplaced) {
  compile();
  expect_replaced(std::string(1000, 'x'), "does not begin as a cache entry");
}

TEST_F(CompileCacheTest, OtherVersionIsReplaced) {
  compile();
  std::string bytes = read_file(entry());
  bytes[8] = 77;
  expect_replaced(bytes, "it has version 77");
}

TEST_F(CompileCacheTest, EntryOfAnotherProgramIsReplaced) {
  compile();
  cache_.write(kKey, "something");
  expect_replaced(read_file(cache_.entry_path(kKey)), "stored for another program");
}

TEST_F(CompileCacheTest, WholeEntryThatThePluginRefusesIsReplaced) {
  cache_.write(CompileCache::key(client(), kDouble, {}), "not an executable");
  expect_replaced(read_file(entry()), "does not take the compile cache entry");
}

TEST_F(CompileCacheTest, CompilerErrorsAreThrown) {
  EXPECT_THROW(cache_.compile(client(), "nonsense", {}, {}), DeviceError);
}

TEST_F(CompileCacheTest, UnwritableDirectoryIsAWarning) {
  write_file(dir_ / "file", "");
  const CompileCache blocked({.directory = (dir_ / "file").string() + "/cache"});
  testing::internal::CaptureStderr();
  expect_doubles(blocked.compile(client(), kDouble, kArguments, {}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("cannot store a compiled program"));
}

TEST_F(CompileCacheTest, LeastRecentlyUsedEntryIsEvicted) {
  const CompileCache small({.directory = dir_.path().string(), .max_bytes = 2600});
  const std::string a(64, 'a'), b(64, 'b'), c(64, 'c');
  const auto now = fs::file_time_type::clock::now();
  small.write(a, std::string(1000, '1'));
  fs::last_write_time(small.entry_path(a), now - std::chrono::hours(2));
  small.write(b, std::string(1000, '2'));
  fs::last_write_time(small.entry_path(b), now - std::chrono::hours(1));
  EXPECT_TRUE(small.read(a));  // now used later than b
  small.write(c, std::string(1000, '3'));
  EXPECT_TRUE(small.read(a));
  EXPECT_FALSE(small.read(b));
  EXPECT_TRUE(small.read(c));
}

TEST_F(CompileCacheTest, EntryLargerThanTheLimitIsNotStored) {
  const CompileCache small({.directory = dir_.path().string(), .max_bytes = 100});
  small.write(kKey, std::string(1000, '1'));
  EXPECT_FALSE(fs::exists(small.entry_path(kKey)));
}

TEST_F(CompileCacheTest, NewDirectoryIsPrivate) {
  compile();
  EXPECT_EQ(fs::status(cache_.directory()).permissions(), fs::perms::owner_all);
}

TEST(CompileCacheDirectory, OffDisables) {
  const CompileCache cache({.directory = "off"});
  EXPECT_FALSE(cache.enabled());
  cache.write(kKey, "payload");
  EXPECT_FALSE(cache.read(kKey));
}

TEST(CompileCacheDirectory, VariableThenXdgThenHome) {
  setenv("T5X_COMPILE_CACHE", "/a", 1);
  setenv("XDG_CACHE_HOME", "/b", 1);
  setenv("HOME", "/c", 1);
  EXPECT_EQ(CompileCache({.directory = "/o"}).directory(), "/o");
  EXPECT_EQ(CompileCache().directory(), "/a");
  unsetenv("T5X_COMPILE_CACHE");
  EXPECT_EQ(CompileCache().directory(), "/b/t5x");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(CompileCache().directory(), "/c/.cache/t5x");
}

}  // namespace
}  // namespace t5x
