// A loaded PJRT plugin: a shared library that exports GetPjrtApi. Loaded once per file, never unloaded, since
// its threads and static data outlive every client.
// Source of the semantics: the comments of xla/pjrt/c/pjrt_c_api.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

struct PJRT_Api;

namespace t5x::pjrt {

// The plugin to load: `requested` if not empty, else the environment variable T5X_PJRT_PLUGIN, else
// ../lib/t5x/libpjrt_cpu.so beside the executable, else the one that set-up installed.
// Throws DeviceError that lists the places looked at when there is none.
std::filesystem::path find_plugin(std::string_view requested = {});

// XLA aborts the process on a flag it does not know, so the text of XLA_FLAGS is checked first: every entry
// must look like --name or --name=value, and the name must occur in the plugin's file. Text that does not
// start with "-" names a file of flags, as XLA has it. A known flag with a value XLA cannot parse is not
// caught here. Throws ConfigError that names the entry.
void check_xla_flags(std::string_view flags, const std::filesystem::path& plugin);

class Plugin {
 public:
  // Loads the library, or returns the one loaded before from the same file. Throws DeviceError when the file
  // is missing, is no shared library, has no GetPjrtApi, or speaks another major version of the API.
  static const Plugin& load(const std::filesystem::path& path);

  const PJRT_Api* api() const { return api_; }
  const std::filesystem::path& path() const { return path_; }
  // "0.115"
  std::string api_version() const;
  // Tells this build from any other: the XXH3 hash of the file.
  std::string build_id() const;

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

 private:
  explicit Plugin(std::filesystem::path path);

  std::filesystem::path path_;
  void* library_ = nullptr;
  const PJRT_Api* api_ = nullptr;
};

}  // namespace t5x::pjrt
