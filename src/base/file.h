// Files and directories. Every failure is an IoError with the path, what the system said and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace t5x {

namespace fs = std::filesystem;

// The whole file. Throws IoError if it is missing or unreadable.
std::string read_file(const fs::path& path);
// Writes to a temporary file beside `path`, syncs and renames it, so that `path` is never half written.
void write_file_atomic(const fs::path& path, std::string_view bytes);
// Writes and syncs `path` in place; for files inside a directory that is itself renamed when whole.
void write_file(const fs::path& path, std::string_view bytes);
void make_dirs(const fs::path& path);
// Renames and syncs the parent directory, so that the new name survives a crash.
void rename_durably(const fs::path& from, const fs::path& to);
void sync_dir(const fs::path& path);
void sync_file(const fs::path& path);
bool is_file(const fs::path& path);
bool is_dir(const fs::path& path);
// Paths that match a shell pattern (*, ?, [..]), sorted by bytes; a pattern without such characters stands
// for itself.
std::vector<std::string> glob(const std::string& pattern);
bool has_glob_characters(std::string_view pattern);
// Throws IoError that names the path, `doing` ("reading", "writing") and errno's text.
[[noreturn]] void throw_io_error(std::string_view doing, const fs::path& path, int error_number);

// A fresh directory under the system's temporary directory, removed with all it holds by the destructor.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

}  // namespace t5x
