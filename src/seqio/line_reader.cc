#include "seqio/line_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"

namespace t5x::seqio {
namespace {
constexpr size_t kBlockBytes = 1 << 18;
}

LineReader::LineReader(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rbe")) {
  if (!file_) throw_io_error("reading", path_, errno);
  if (is_dir(path_)) throw_io_error("reading", path_, EISDIR);
}

bool LineReader::fill() {
  block_.resize(kBlockBytes);
  size_t got = std::fread(block_.data(), 1, kBlockBytes, file_.get());
  if (got == 0 && std::ferror(file_.get()) != 0) throw_io_error("reading", path_, errno);
  block_.resize(got);
  at_ = 0;
  return got > 0;
}

bool LineReader::next(std::string& line, bool check_utf8) {
  line.clear();
  bool any = false;
  for (bool complete = false; !complete;) {
    if (at_ == block_.size() && !fill()) break;
    any = true;
    const char* begin = block_.data() + at_;
    size_t left = block_.size() - at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', left));
    complete = end != nullptr;
    size_t length = complete ? static_cast<size_t>(end - begin) : left;
    line.append(begin, length);
    at_ += length + (complete ? 1 : 0);
    offset_ += length + (complete ? 1 : 0);
  }
  if (!any) return false;
  ++line_number_;
  if (check_utf8) {
    if (size_t bad = find_invalid_utf8(line); bad != std::string::npos)
      throw_error<DataError>(
          "invalid UTF-8 in '{}', line {}, byte {} of the line (0x{:02x}); convert the file to UTF-8, or "
          "read it "
          "without requiring UTF-8",
          path_, line_number_, bad, static_cast<uint8_t>(line[bad]));
  }
  if (line.find('\r') != std::string::npos) std::erase(line, '\r');
  return true;
}

void LineReader::seek(uint64_t offset, uint64_t line_number) {
  struct stat info {};
  if (::fstat(::fileno(file_.get()), &info) != 0) throw_io_error("reading", path_, errno);
  if (static_cast<uint64_t>(info.st_size) < offset)
    throw_error<DataError>(
        "'{}' has {} bytes, but byte {} was reached when the state was saved; the file was truncated", path_,
        info.st_size, offset);
  if (::fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0)
    throw_io_error("seeking in", path_, errno);
  block_.clear();
  at_ = 0;
  offset_ = offset;
  line_number_ = line_number;
}

}  // namespace t5x::seqio
