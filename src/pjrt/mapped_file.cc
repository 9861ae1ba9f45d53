#include "pjrt/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace t5x::pjrt {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_io_error("reading", path, errno);
  struct stat status {};
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  }
  const int error = errno;
  close(file);
  if (data_ == MAP_FAILED) throw_io_error("reading", path, error);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace t5x::pjrt
