// TFRecord files: a sequence of byte strings, each framed as length (8 bytes, little endian), masked CRC-32C
// of the length, the bytes, masked CRC-32C of the bytes. Format:
// https://www.tensorflow.org/tutorials/load_data/tfrecord.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace t5x {

// One framed record.
std::string frame_tfrecord(std::string_view record);

class TfRecordReader {
 public:
  // Throws IoError if the file cannot be opened.
  explicit TfRecordReader(const fs::path& path);
  // Reads any stream; `label` names it in errors.
  TfRecordReader(std::unique_ptr<std::istream> stream, std::string label);

  // The next record, or false at the end of the file. Throws DataError with file, record and byte offset if
  // the file is truncated inside a record or a checksum is wrong; memory never grows beyond what the file
  // really holds.
  bool next(std::string& record);
  // Records read so far, and the offset of the next one's frame.
  int64_t index() const { return index_; }
  uint64_t offset() const { return offset_; }
  // Goes to a place that index() and offset() gave before.
  void seek(int64_t index, uint64_t offset);

 private:
  // Bytes read; fewer than `count` only at the end of the file.
  size_t read(char* to, size_t count);
  [[noreturn]] void fail(std::string_view problem) const;

  std::unique_ptr<std::istream> stream_;
  std::string label_;
  int64_t index_ = 0;
  uint64_t offset_ = 0;
};

class TfRecordWriter {
 public:
  // Replaces the file. Throws IoError if it cannot be opened.
  explicit TfRecordWriter(const fs::path& path);
  // All throw IoError when the system says no, such as on a full disk.
  void write(std::string_view record);
  // Hands what was written to the system, so that other processes see it.
  void flush();
  // Flushes and syncs to the disk; the destructor only flushes, without telling of errors.
  void close();

 private:
  void check(std::string_view doing);

  fs::path path_;
  std::ofstream out_;
};

}  // namespace t5x
