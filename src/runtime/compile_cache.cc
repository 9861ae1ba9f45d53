#include "runtime/compile_cache.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

namespace t5x {
namespace {

constexpr std::string_view kMagic = "t5xcache";
constexpr uint32_t kVersion = 1;
constexpr size_t kDigest = 64;
constexpr size_t kHeader = kMagic.size() + sizeof(uint32_t) + 2 * kDigest + sizeof(uint64_t);
constexpr const char* kExtension = ".t5xc";

static_assert(std::endian::native == std::endian::little);

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
template <class T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::string make_entry(std::string_view key, std::string_view payload) {
  std::string out(kMagic);
  out.reserve(kHeader + payload.size());
  append(out, kVersion);
  out += key;
  out += sha256_hex(payload);
  append(out, static_cast<uint64_t>(payload.size()));
  out += payload;
  return out;
}

// What is wrong with an entry's bytes; empty if nothing is.
std::string find_fault(std::string_view key, std::string_view entry) {
  if (entry.size() < kHeader) return fmt::format("it ends within its header of {} bytes", kHeader);
  if (!entry.starts_with(kMagic)) return "it does not begin as a cache entry does";
  size_t at = kMagic.size();
  if (const auto version = load<uint32_t>(entry, at); version != kVersion)
    return fmt::format("it has version {}, not {}", version, kVersion);
  at += sizeof(uint32_t);
  if (entry.substr(at, kDigest) != key) return "it was stored for another program";
  at += kDigest;
  const std::string_view digest = entry.substr(at, kDigest);
  at += kDigest;
  const std::string_view payload = entry.substr(kHeader);
  if (const auto size = load<uint64_t>(entry, at); size != payload.size())
    return fmt::format("it holds {} bytes of {}", payload.size(), size);
  if (sha256_hex(payload) != digest) return "its checksum does not match";
  return {};
}

fs::path default_directory() {
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/')
    return fs::path(base) / "t5x";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    return fs::path(home) / ".cache" / "t5x";
  return {};
}

}  // namespace

CompileCache::CompileCache(CompileCacheOptions options) : max_bytes_(options.max_bytes) {
  std::string directory = std::move(options.directory);
  if (directory.empty()) {
    if (const char* named = std::getenv("T5X_COMPILE_CACHE")) directory = named;
  }
  if (directory == "off") return;
  directory_ = directory.empty() ? default_directory() : fs::path(directory);
}

std::string CompileCache::key(const pjrt::Client& client, std::string_view stablehlo,
                              const pjrt::CompileOptions& options) {
  const std::string bytes =
      pjrt::serialize_compile_options(pjrt::with_platform_overrides(options, client.platform_name()));
  // Digests have one length, so no two triples share a text.
  return sha256_hex(sha256_hex(stablehlo) + sha256_hex(bytes) + sha256_hex(client.identity()));
}

fs::path CompileCache::entry_path(std::string_view key) const {
  return directory_ / (std::string(key) + kExtension);
}

std::optional<std::string> CompileCache::read(std::string_view key) const {
  if (!enabled()) return std::nullopt;
  const fs::path path = entry_path(key);
  try {
    if (!is_file(path)) return std::nullopt;
    std::string entry = read_file(path);
    const std::string fault = find_fault(key, entry);
    if (!fault.empty()) {
      log_warning("ignoring the compile cache entry {}: {}; it will be replaced", path.string(), fault);
      return std::nullopt;
    }
    std::error_code error;  // the time of last use, for eviction; a cache that cannot be written still serves
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    entry.erase(0, kHeader);
    return entry;
  } catch (const IoError& error) {
    log_warning("cannot read the compile cache: {}", error.what());
    return std::nullopt;
  }
}

void CompileCache::write(std::string_view key, std::string_view payload) const {
  if (!enabled() || payload.size() + kHeader > max_bytes_) return;
  const fs::path path = entry_path(key);
  try {
    std::error_code error;
    const bool existed = fs::exists(directory_, error);
    make_dirs(directory_);
    // Entries are machine code that this user will run: nobody else may write here.
    if (!existed) fs::permissions(directory_, fs::perms::owner_all, error);
    write_file_atomic(path, make_entry(key, payload));
    evict(path);
  } catch (const IoError& error) {
    log_warning("cannot store a compiled program, so the next start will compile it again: {}", error.what());
  }
}

void CompileCache::evict(const fs::path& newest) const {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t size;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != kExtension) continue;
    std::error_code gone;  // another process may evict the same entries
    const uint64_t size = fs::file_size(it->path(), gone);
    if (gone) continue;
    const fs::file_time_type used = fs::last_write_time(it->path(), gone);
    if (gone) continue;
    total += size;
    entries.push_back({it->path(), used, size});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) break;
    if (entry.path == newest) continue;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

CompileCache::Compiled CompileCache::compile(const pjrt::Client& client, std::string_view stablehlo,
                                             const std::vector<pjrt::ArgumentSpec>& arguments,
                                             const pjrt::CompileOptions& options) const {
  if (!enabled()) return {client.compile(stablehlo, arguments, options), false};
  const std::string name = key(client, stablehlo, options);
  if (const std::optional<std::string> payload = read(name)) {
    try {
      return {client.load(*payload, arguments), true};
    } catch (const DeviceError& error) {
      log_warning("the plugin does not take the compile cache entry {}, so the program is compiled again: {}",
                  entry_path(name).string(), error.what());
    }
  }
  pjrt::Executable executable = client.compile(stablehlo, arguments, options);
  try {
    write(name, executable.serialize());
  } catch (const DeviceError& error) {
    log_warning("the plugin cannot serialise a program, so the next start will compile it again: {}",
                error.what());
  }
  return {std::move(executable), false};
}

}  // namespace t5x
