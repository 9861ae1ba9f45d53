#include "base/tfrecord.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace t5x {
namespace {

constexpr size_t kHeaderBytes = 12;          // length and its checksum
constexpr size_t kFooterBytes = 4;           // checksum of the data
constexpr size_t kBlockBytes = 1024 * 1024;  // memory is taken in steps of this size

template <class T>
void append_little_endian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <class T>
T little_endian(std::string_view bytes) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

std::string frame_tfrecord(std::string_view record) {
  std::string frame;
  frame.reserve(kHeaderBytes + record.size() + kFooterBytes);
  append_little_endian<uint64_t>(record.size(), frame);
  append_little_endian<uint32_t>(masked_crc32c(frame), frame);
  frame += record;
  append_little_endian<uint32_t>(masked_crc32c(record), frame);
  return frame;
}

TfRecordReader::TfRecordReader(const fs::path& path) : label_(path.string()) {
  if (is_dir(path)) throw_io_error("reading", path, EISDIR);
  errno = 0;
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) throw_io_error("reading", path, errno != 0 ? errno : EIO);
  stream_ = std::move(file);
}

TfRecordReader::TfRecordReader(std::unique_ptr<std::istream> stream, std::string label)
    : stream_(std::move(stream)), label_(std::move(label)) {}

size_t TfRecordReader::read(char* to, size_t count) {
  errno = 0;
  stream_->read(to, static_cast<std::streamsize>(count));
  if (stream_->bad()) throw_io_error("reading", label_, errno != 0 ? errno : EIO);
  return static_cast<size_t>(stream_->gcount());
}

void TfRecordReader::fail(std::string_view problem) const {
  throw_error<DataError>(
      "'{}', record {} at byte {}: {}; the file is damaged or no TFRecord file, make it again", label_,
      index_, offset_, problem);
}

bool TfRecordReader::next(std::string& record) {
  std::string header(kHeaderBytes, '\0');
  const size_t got = read(header.data(), kHeaderBytes);
  if (got == 0) return false;
  if (got < kHeaderBytes)
    fail(fmt::format("the file ends after {} of the {} bytes of a header", got, kHeaderBytes));
  if (little_endian<uint32_t>(std::string_view(header).substr(8)) !=
      masked_crc32c(std::string_view(header).substr(0, 8)))
    fail("the checksum of the length is wrong");
  const auto length = little_endian<uint64_t>(header);

  record.clear();
  while (record.size() < length) {
    const size_t done = record.size();
    const auto block = static_cast<size_t>(std::min<uint64_t>(length - done, kBlockBytes));
    record.resize(done + block);
    const size_t part = read(record.data() + done, block);
    if (part < block)
      fail(fmt::format("the file ends after {} of the {} bytes of the record", done + part, length));
  }
  std::string footer(kFooterBytes, '\0');
  if (read(footer.data(), kFooterBytes) < kFooterBytes) fail("the file ends in the checksum of the record");
  if (little_endian<uint32_t>(footer) != masked_crc32c(record)) fail("the checksum of the record is wrong");
  ++index_;
  offset_ += kHeaderBytes + length + kFooterBytes;
  return true;
}

void TfRecordReader::seek(int64_t index, uint64_t offset) {
  stream_->clear();
  stream_->seekg(static_cast<std::streamoff>(offset));
  if (!*stream_)
    throw_error<IoError>("'{}' cannot be read from byte {} on; was it replaced?", label_, offset);
  index_ = index;
  offset_ = offset;
}

TfRecordWriter::TfRecordWriter(const fs::path& path) : path_(path) {
  errno = 0;
  out_.open(path, std::ios::binary | std::ios::trunc);
  check("opening");
}

void TfRecordWriter::check(std::string_view doing) {
  if (!out_) throw_io_error(doing, path_, errno != 0 ? errno : EIO);
}

void TfRecordWriter::write(std::string_view record) {
  errno = 0;
  out_ << frame_tfrecord(record);
  check("writing");
}

void TfRecordWriter::flush() {
  errno = 0;
  out_.flush();
  check("writing");
}

void TfRecordWriter::close() {
  if (!out_.is_open()) return;
  errno = 0;
  out_.close();
  check("writing");
  sync_file(path_);
}

}  // namespace t5x
