#include "base/file.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace t5x {
namespace {

std::string_view hint_for(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "; check the path";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions of the file and its directory";
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another directory; files written before are untouched";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, std::string_view doing)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) throw_io_error(doing, path, errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close(const fs::path& path) {
    int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) throw_io_error("closing", path, errno);
  }

 private:
  int fd_;
};

}  // namespace

void throw_io_error(std::string_view doing, const fs::path& path, int error_number) {
  throw_error<IoError>("{} '{}' failed: {}{}", doing, path.string(), std::strerror(error_number),
                       hint_for(error_number));
}

std::string read_file(const fs::path& path) {
  Descriptor file(path, O_RDONLY, "reading");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_io_error("reading", path, errno);
  if (S_ISDIR(info.st_mode)) throw_io_error("reading", path, EISDIR);
  std::string bytes;
  bytes.resize(static_cast<size_t>(info.st_size));
  size_t done = 0;
  for (;;) {
    // The size is a hint only: files of /proc report 0, and a file may grow.
    if (done == bytes.size()) bytes.resize(done + 4096);
    ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io_error("reading", path, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void write_file(const fs::path& path, std::string_view bytes) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, "writing");
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t put = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_io_error("writing", path, errno);
    done += static_cast<size_t>(put);
  }
  if (::fsync(file.get()) != 0) throw_io_error("syncing", path, errno);
  file.close(path);
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += ".tmp-" + std::to_string(::getpid());
  try {
    write_file(temporary, bytes);
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void make_dirs(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_io_error("creating directory", path, error.value());
}

void sync_dir(const fs::path& path) {
  Descriptor dir(path.empty() ? fs::path(".") : path, O_RDONLY | O_DIRECTORY, "opening directory");
  // Some file systems cannot sync a directory; the rename itself is still atomic there.
  if (::fsync(dir.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw_io_error("syncing directory", path, errno);
}

void sync_file(const fs::path& path) {
  Descriptor file(path, O_RDONLY, "opening");
  if (::fsync(file.get()) != 0) throw_io_error("syncing", path, errno);
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io_error("renaming to", to, errno);
  sync_dir(to.parent_path());
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_dir(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_glob_characters(std::string_view pattern) {
  return pattern.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> glob(const std::string& pattern) {
  if (!has_glob_characters(pattern)) return {pattern};
  glob_t found{};
  std::vector<std::string> paths;
  int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0 && status != GLOB_NOMATCH)
    throw_error<IoError>("listing '{}' failed; check the permissions", pattern);
  std::sort(paths.begin(), paths.end());
  return paths;
}

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "t5x-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw_io_error("creating directory", pattern, errno);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace t5x
