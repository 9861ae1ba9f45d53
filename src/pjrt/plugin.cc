#include "pjrt/plugin.h"

#include <dlfcn.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "pjrt/api.h"
#include "pjrt/mapped_file.h"

#ifdef __SANITIZE_THREAD__
// Plugins are not instrumented, so ThreadSanitizer cannot see how they synchronise.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libpjrt_cpu.so\n"; }
#endif

namespace t5x::pjrt {
namespace {

constexpr const char* kVariable = "T5X_PJRT_PLUGIN";
constexpr const char* kHint = "run `./run setup`, or set T5X_PJRT_PLUGIN to the path of a PJRT plugin";
// The table must reach the functions that every plugin since has had (API 0.40 and later).
constexpr size_t kLeastTable = offsetof(PJRT_Api, PJRT_Executable_Fingerprint);

fs::path beside_executable() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : (self.parent_path().parent_path() / "lib/t5x/libpjrt_cpu.so");
}

// The entries of a text of flags, or of the file it names.
std::vector<std::string> flag_entries(std::string_view flags) {
  std::string text(flags);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  if (text[first] != '-') {
    const size_t last = text.find_last_not_of(" \t\r\n");
    text = in_context("the file named by XLA_FLAGS (its value does not start with '-')",
                      [&] { return read_file(text.substr(first, last - first + 1)); });
  }
  std::vector<std::string> entries;
  std::string entry;
  char quote = 0;  // XLA lets quotes hold spaces inside a value
  for (char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (quote == 0 && space) {
      if (!entry.empty()) entries.push_back(std::move(entry));
      entry.clear();
      continue;
    }
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    entry += c;
  }
  if (quote != 0) throw_error<ConfigError>("XLA_FLAGS has a {} that is never closed: {}", quote, text);
  if (!entry.empty()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

fs::path find_plugin(std::string_view requested) {
  if (!requested.empty()) {
    if (!is_file(requested))
      throw_error<DeviceError>("there is no PJRT plugin at {}: give the path of a plugin's shared library",
                               requested);
    return requested;
  }
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != 0) {
    if (!is_file(named))
      throw_error<DeviceError>("{} is {}, but there is no such file: {}", kVariable, named, kHint);
    return named;
  }
  const fs::path beside = beside_executable();
  if (!beside.empty() && is_file(beside)) return beside;
  if (is_file(T5X_DEFAULT_PLUGIN)) return T5X_DEFAULT_PLUGIN;
  throw_error<DeviceError>("found no PJRT plugin: {} is not set, and neither {} nor {} exists; {}", kVariable,
                           beside.string(), T5X_DEFAULT_PLUGIN, kHint);
}

void check_xla_flags(std::string_view flags, const fs::path& plugin) {
  const std::vector<std::string> entries = flag_entries(flags);
  if (entries.empty()) return;
  const MappedFile file(plugin);
  for (const std::string& entry : entries) {
    const std::string name = entry.substr(0, entry.find('='));
    constexpr std::string_view kNameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (name.size() < 3 || name.compare(0, 2, "--") != 0 ||
        name.find_first_not_of(kNameChars, 2) != std::string::npos)
      throw_error<ConfigError>("XLA_FLAGS: expected --name or --name=value, found '{}'", entry);
    // Names are C strings in the plugin's read-only data, so the terminating zero is part of the match.
    const std::string needle(name.c_str() + 2, name.size() - 1);
    if (file.bytes().find(needle) == std::string_view::npos)
      throw_error<ConfigError>("XLA_FLAGS: the plugin {} knows no flag '{}'; remove it from XLA_FLAGS",
                               plugin.string(), name);
  }
}

const Plugin& Plugin::load(const fs::path& path) {
  static std::mutex mutex;
  // Never destroyed: the libraries' threads may still run while static objects are torn down.
  static auto& loaded = *new std::map<fs::path, std::unique_ptr<Plugin>>;
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  if (error) throw_error<DeviceError>("there is no PJRT plugin at {}: {}", path.string(), error.message());
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plugin>& entry = loaded[canonical];
  if (!entry) entry.reset(new Plugin(std::move(canonical)));
  return *entry;
}

Plugin::Plugin(fs::path path) : path_(std::move(path)) {
  // XLA's own remarks (each client's options, migrations of its passes) are not for users; a setting of
  // theirs wins.
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* why = dlerror();
    throw_error<DeviceError>("cannot load the PJRT plugin {}: {}; {}", path_.string(),
                             why != nullptr ? why : "unknown reason", kHint);
  }
  using GetApi = const PJRT_Api* (*)();
  const auto get_api = reinterpret_cast<GetApi>(dlsym(library_, "GetPjrtApi"));
  if (get_api == nullptr)
    throw_error<DeviceError>("{} is a shared library but no PJRT plugin: it has no function GetPjrtApi; {}",
                             path_.string(), kHint);
  api_ = get_api();
  if (api_ == nullptr) throw_error<DeviceError>("the PJRT plugin {} gave no function table", path_.string());
  if (api_->struct_size < offsetof(PJRT_Api, PJRT_Error_Destroy) ||
      api_->pjrt_api_version.major_version != PJRT_API_MAJOR || api_->struct_size < kLeastTable)
    throw_error<DeviceError>(
        "the PJRT plugin {} speaks API {} with a table of {} bytes; this program needs major version {} and "
        "at "
        "least {} bytes; install a newer plugin",
        path_.string(), api_version(), api_->struct_size, PJRT_API_MAJOR, kLeastTable);
  T5X_PJRT_ARGS(PJRT_Plugin_Initialize_Args, args);
  call(api_, &PJRT_Api::PJRT_Plugin_Initialize, args, [&] { return "initialising " + path_.string(); });
}

std::string Plugin::api_version() const {
  return fmt::format("{}.{}", api_->pjrt_api_version.major_version, api_->pjrt_api_version.minor_version);
}

std::string Plugin::build_id() const {
  const MappedFile file(path_);
  const XXH128_hash_t hash = XXH3_128bits(file.bytes().data(), file.bytes().size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace t5x::pjrt
