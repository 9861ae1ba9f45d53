// Compiled programs kept on disk between runs. An entry's name is the SHA-256 of the program text, the
// compile options and the client's identity (plugin build, platform, CPU features, XLA_FLAGS), since plugins
// load one another's executables without complaint. An entry that is not whole is never handed to the plugin:
// it is reported, compiled anew and replaced.
//
// Entry file, little-endian: 8 bytes "t5xcache", uint32 version, 64 hex digits of the key, 64 hex digits of
// the payload's SHA-256, uint64 payload size, payload (Executable::serialize).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/client.h"

namespace t5x {

struct CompileCacheOptions {
  // A directory, or "off". Empty: the environment variable T5X_COMPILE_CACHE (the same forms), else
  // $XDG_CACHE_HOME/t5x, else ~/.cache/t5x.
  std::string directory = {};
  // Entries not used for longest go first when all together exceed this.
  uint64_t max_bytes = uint64_t{4} << 30;
};

class CompileCache {
 public:
  explicit CompileCache(CompileCacheOptions options = {});

  bool enabled() const { return !directory_.empty(); }
  // Empty when off.
  const std::filesystem::path& directory() const { return directory_; }

  struct Compiled {
    pjrt::Executable executable;
    // Whether it was loaded from the cache.
    bool hit = false;
  };
  // Loads the program from the cache, or compiles and stores it. Problems of the cache itself are warnings;
  // only the compiler's errors are thrown, as by Client::compile.
  Compiled compile(const pjrt::Client& client, std::string_view stablehlo,
                   const std::vector<pjrt::ArgumentSpec>& arguments,
                   const pjrt::CompileOptions& options) const;

  // 64 hex digits.
  static std::string key(const pjrt::Client& client, std::string_view stablehlo,
                         const pjrt::CompileOptions& options);
  std::filesystem::path entry_path(std::string_view key) const;
  // The payload stored under `key`, verified; nothing (after a warning, if there is a bad entry) otherwise.
  std::optional<std::string> read(std::string_view key) const;
  // Stores a payload, then evicts what is too much. Failures are warnings.
  void write(std::string_view key, std::string_view payload) const;

 private:
  void evict(const std::filesystem::path& newest) const;

  std::filesystem::path directory_;
  uint64_t max_bytes_ = 0;
};

}  // namespace t5x
