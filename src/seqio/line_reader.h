// The lines of a file as tf.data.TextLineDataset splits them: at \n, every \r dropped, blank lines kept, a
// last line without \n kept. Reads blocks, so memory does not depend on the file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace t5x::seqio {

class LineReader {
 public:
  // Throws IoError when the file cannot be opened.
  explicit LineReader(std::string path);
  // False at the end of the file. `check_utf8`: invalid UTF-8 is a DataError with file, line and byte.
  bool next(std::string& line, bool check_utf8);
  const std::string& path() const { return path_; }
  // Of the line that next() gave last, from 1.
  uint64_t line_number() const { return line_number_; }
  // Bytes of the file behind the lines given so far.
  uint64_t offset() const { return offset_; }
  // Continues at `offset`, which is behind line `line_number`. Throws DataError when the file has become
  // shorter.
  void seek(uint64_t offset, uint64_t line_number);

 private:
  bool fill();
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string block_;
  size_t at_ = 0;  // in block_
  uint64_t offset_ = 0, line_number_ = 0;
};

}  // namespace t5x::seqio
