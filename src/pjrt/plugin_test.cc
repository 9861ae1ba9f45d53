#include "pjrt/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "pjrt/testing/programs.h"

namespace t5x::pjrt {
namespace {

using testing::HasSubstr;

// Sets an environment variable for one scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (old_.empty()) {
      unsetenv(name_);
    } else {
      setenv(name_, old_.c_str(), 1);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

TEST(FindPlugin, ExplicitPathWinsOverTheVariable) {
  const TempDir dir;
  write_file(dir / "a.so", "a");
  const ScopedVariable variable("T5X_PJRT_PLUGIN", "/nowhere.so");
  EXPECT_EQ(find_plugin((dir / "a.so").string()), dir / "a.so");
}

TEST(FindPlugin, VariableWinsOverTheInstalledOne) {
  const TempDir dir;
  write_file(dir / "a.so", "a");
  const ScopedVariable variable("T5X_PJRT_PLUGIN", (dir / "a.so").c_str());
  EXPECT_EQ(find_plugin(), dir / "a.so");
}

TEST(FindPlugin, MissingExplicitPathNamesIt) {
  EXPECT_THAT(message_of<DeviceError>([] { find_plugin("/no/such/plugin.so"); }),
              HasSubstr("/no/such/plugin.so"));
}

TEST(FindPlugin, MissingFileInTheVariableNamesTheVariable) {
  const ScopedVariable variable("T5X_PJRT_PLUGIN", "/no/such/plugin.so");
  EXPECT_THAT(message_of<DeviceError>([] { find_plugin(); }), HasSubstr("T5X_PJRT_PLUGIN"));
}

TEST(LoadPlugin, TextFileThrows) {
  const TempDir dir;
  write_file(dir / "plugin.so", "this is no library\n");
  EXPECT_THAT(message_of<DeviceError>([&] { Plugin::load(dir / "plugin.so"); }),
              HasSubstr("cannot load the PJRT plugin"));
}

TEST(LoadPlugin, LibraryWithoutGetPjrtApiThrows) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &info), 0);
  const fs::path library = fs::canonical(info.dli_fname);
  if (library == fs::canonical("/proc/self/exe")) GTEST_SKIP() << "the C library is linked statically";
  EXPECT_THAT(message_of<DeviceError>([&] { Plugin::load(library); }),
              HasSubstr("has no function GetPjrtApi"));
}

TEST(LoadPlugin, OtherMajorVersionThrows) {
  EXPECT_THAT(message_of<DeviceError>([] { Plugin::load(T5X_OTHER_VERSION_PLUGIN); }), HasSubstr("API 9.0"));
}

TEST(LoadPlugin, ShortTableThrows) {
  EXPECT_THAT(message_of<DeviceError>([] { Plugin::load(T5X_SHORT_TABLE_PLUGIN); }),
              HasSubstr("a table of 128 bytes"));
}

TEST(LoadPlugin, SameFileIsLoadedOnce) {
  const TempDir dir;
  fs::create_symlink(fs::canonical(find_plugin()), dir / "link.so");
  EXPECT_EQ(&Plugin::load(find_plugin()), &Plugin::load(dir / "link.so"));
}

TEST(XlaFlags, UnknownFlagThrowsBeforeThePluginAborts) {
  EXPECT_THAT(message_of<ConfigError>([] { check_xla_flags("--xla_no_such_flag=1", find_plugin()); }),
              HasSubstr("'--xla_no_such_flag'"));
}

TEST(XlaFlags, NameThatOnlyBeginsAKnownOneThrows) {
  EXPECT_THROW(check_xla_flags("--xla_cpu_multi_thread_eig=1", find_plugin()), ConfigError);
}

TEST(XlaFlags, EntryWithoutDashesThrows) {
  EXPECT_THAT(message_of<ConfigError>(
                  [] { check_xla_flags("--xla_cpu_multi_thread_eigen=true garbage", find_plugin()); }),
              HasSubstr("'garbage'"));
}

TEST(XlaFlags, KnownFlagsPass) {
  EXPECT_NO_THROW(check_xla_flags(" --xla_cpu_multi_thread_eigen=true  --xla_dump_to=/tmp ", find_plugin()));
}

TEST(XlaFlags, FileOfFlagsIsRead) {
  const TempDir dir;
  write_file(dir / "flags", "--xla_no_such_flag=1\n");
  EXPECT_THROW(check_xla_flags((dir / "flags").string(), find_plugin()), ConfigError);
}

TEST(CreateClient, UnknownXlaFlagThrows) {
  const ScopedVariable variable("XLA_FLAGS", "--xla_no_such_flag=1");
  EXPECT_THROW(Client::create(), ConfigError);
}

TEST(CreateClient, DeviceCountOfAWrongTypeThrows) {
  EXPECT_THROW(Client::create({.options = {{"cpu_device_count", std::string("four")}}}), ConfigError);
}

TEST(CreateClient, NegativeDeviceCountThrows) {
  EXPECT_THROW(Client::create({.cpu_device_count = -1}), ConfigError);
}

TEST(CreateClient, HasTheAskedDevices) {
  EXPECT_EQ(test_client().platform_name(), "cpu");
  ASSERT_EQ(test_client().addressable_devices().size(), 4U);
  EXPECT_EQ(test_client().addressable_devices()[3].id, 3);
  EXPECT_EQ(test_client().process_index(), 0);
}

TEST(CreateClient, IdentityDependsOnXlaFlags) {
  const Client plain = Client::create();
  const std::string before = plain.identity();
  const ScopedVariable variable("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true");
  EXPECT_NE(Client::create().identity(), before);
}

}  // namespace
}  // namespace t5x::pjrt
