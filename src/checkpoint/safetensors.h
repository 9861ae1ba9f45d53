// The safetensors file format: eight bytes with the length of a JSON header, the header, then the tensors'
// bytes without gaps. Format: https://github.com/huggingface/safetensors (README, "Format").
//
//   std::map<std::string, Array> params = checkpoint::read_safetensors("params.safetensors");
//
// A file that breaks the format is a CheckpointError that names the file and the tensor; a file that cannot
// be opened or written is an IoError.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "core/array.h"

namespace t5x::checkpoint {

struct SafetensorsEntry {
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // bytes, counted from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // offset in the file of the first tensor's byte
};

// `prefix` holds at least the eight length bytes and the header they announce, `file_size` is that of the
// whole file; `label` names the file in errors. Checks every dtype, shape, overflow and offset: the tensors
// fill the file exactly.
SafetensorsHeader parse_safetensors_header(std::string_view prefix, uint64_t file_size,
                                           const std::string& label);

// Reads the header at once and each tensor when asked, so that a large file never lies in memory twice.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const fs::path& path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  std::vector<std::string> names() const;  // sorted
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return header_.entries.contains(name); }
  // Throws CheckpointError with close matches when there is no such tensor.
  const SafetensorsEntry& entry(const std::string& name) const;
  Array read(const std::string& name) const;

 private:
  fs::path path_;
  int fd_ = -1;
  SafetensorsHeader header_;
};

std::map<std::string, Array> read_safetensors(const fs::path& path);
// Replaces `path` only when the new file is whole. The same input gives the same bytes.
void write_safetensors(const fs::path& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace t5x::checkpoint
