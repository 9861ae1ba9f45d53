// A file's bytes, mapped for reading.
#pragma once

#include <filesystem>
#include <string_view>

namespace t5x::pjrt {

class MappedFile {
 public:
  // Throws IoError.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace t5x::pjrt
