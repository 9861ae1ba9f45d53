#include "base/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "base/hash.h"

namespace t5x {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TfRecordReader reader_of(std::string bytes) {
  return {std::make_unique<std::istringstream>(std::move(bytes)), "data.tfrecord"};
}

std::vector<std::string> read_all(TfRecordReader reader) {
  std::vector<std::string> records;
  for (std::string record; reader.next(record);) records.push_back(record);
  return records;
}

// What reading to the end complains of.
std::string error_of(std::string bytes) {
  try {
    read_all(reader_of(std::move(bytes)));
  } catch (const DataError& e) {
    return e.what();
  }
  return "no error";
}

TEST(TfRecord, WriterAndReaderAgree) {
  TempDir dir;
  const std::string large(3'000'000, 'x');
  TfRecordWriter writer(dir / "a");
  for (const std::string& record : {std::string("one"), std::string(), large}) writer.write(record);
  writer.close();
  EXPECT_THAT(read_all(TfRecordReader(dir / "a")), ElementsAre("one", "", large));
}

TEST(TfRecord, FrameEqualsTensorFlows) {
  // The header of a 62 byte record in an event file that TensorFlow 2.21 wrote.
  const std::string record(62, '\0');
  EXPECT_EQ(frame_tfrecord(record).substr(0, 12), std::string("\x3e\0\0\0\0\0\0\0\xd9\xd2\x40\xe7", 12));
}

TEST(TfRecord, EmptyFileHasNoRecord) { EXPECT_TRUE(read_all(reader_of("")).empty()); }

TEST(TfRecord, SeekGoesBackToPlace) {
  TfRecordReader reader = reader_of(frame_tfrecord("a") + frame_tfrecord("b") + frame_tfrecord("c"));
  std::string record;
  reader.next(record);
  const int64_t index = reader.index();
  const uint64_t offset = reader.offset();
  while (reader.next(record)) {
  }
  reader.seek(index, offset);
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(record, "b");
  EXPECT_EQ(reader.index(), 2);
}

TEST(TfRecord, TruncatedLengthNamesPlace) {
  EXPECT_THAT(error_of(frame_tfrecord("abc") + "12345"),
              AllOf(HasSubstr("'data.tfrecord', record 1 at byte 19"), HasSubstr("after 5 of the 12 bytes")));
}

TEST(TfRecord, BadLengthChecksumThrows) {
  std::string bytes = frame_tfrecord("abc");
  bytes[0] ^= 1;
  EXPECT_THAT(error_of(bytes), HasSubstr("checksum of the length"));
}

TEST(TfRecord, TruncatedDataThrows) {
  EXPECT_THAT(error_of(frame_tfrecord("abcdef").substr(0, 15)), HasSubstr("after 3 of the 6 bytes"));
}

TEST(TfRecord, TruncatedFooterThrows) {
  EXPECT_THAT(error_of(frame_tfrecord("abcdef").substr(0, 20)), HasSubstr("ends in the checksum"));
}

TEST(TfRecord, BadDataChecksumThrows) {
  std::string bytes = frame_tfrecord("abc");
  bytes[13] ^= 1;
  EXPECT_THAT(error_of(bytes), HasSubstr("checksum of the record"));
}

TEST(TfRecord, AnnouncedLengthTakesNoMemory) {
  // A length of 2^62 with a right checksum.
  std::string header("\0\0\0\0\0\0\0\x40", 8);
  const uint32_t crc = masked_crc32c(header);
  for (int i = 0; i < 4; ++i) header.push_back(static_cast<char>(crc >> (8 * i)));
  EXPECT_THAT(error_of(header + "abc"), HasSubstr("after 3 of the 4611686018427387904 bytes"));
}

TEST(TfRecord, MissingFileIsIoError) { EXPECT_THROW(TfRecordReader("/nonexistent/file"), IoError); }

TEST(TfRecord, FullDiskIsIoError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  TfRecordWriter writer("/dev/full");
  EXPECT_THROW(
      {
        writer.write("abc");
        writer.flush();
      },
      IoError);
}

}  // namespace
}  // namespace t5x
