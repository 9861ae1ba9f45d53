#include "train/summary_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace t5x {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr double kWallTime = 1796065338.434047;

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

// Bytes 9 on of the events that TensorFlow 2.21 wrote for the same values (the first nine are the time).
TEST(SummaryWriter, ScalarEventEqualsTensorFlows) {
  EXPECT_EQ(hex(encode_scalar_event(kWallTime, 100, "eval/em", 50.0f)).substr(18),
            "10642a240a220a076576616c2f656d420a080112002204000048424a0b0a090a077363616c617273");
}

TEST(SummaryWriter, TextEventEqualsTensorFlows) {
  EXPECT_EQ(hex(encode_text_event(kWallTime, 100, "eval/note", "n=6")).substr(18),
            "10642a220a200a096576616c2f6e6f7465420908071200"
            "42036e3d364a080a060a0474657874");
}

TEST(SummaryWriter, FirstEventGivesVersion) {
  TempDir dir;
  const SummaryWriter writer(dir.path());
  std::string record;
  ASSERT_TRUE(TfRecordReader(writer.path()).next(record));
  EXPECT_THAT(record, HasSubstr("brain.Event:2"));
}

TEST(SummaryWriter, EventsCanBeReadWhileFileIsOpen) {
  TempDir dir;
  SummaryWriter writer(dir / "train");
  writer.scalars(7, {{"loss", 1.5}, {"accuracy", 0.25}});
  writer.text(7, "samples", "a -> b");
  TfRecordReader reader(writer.path());
  std::string record;
  while (reader.next(record)) {
  }
  EXPECT_EQ(reader.index(), 4);
}

TEST(SummaryWriter, FileNameIsTensorBoards) {
  TempDir dir;
  EXPECT_THAT(SummaryWriter(dir.path()).path().filename().string(),
              MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+\\.[0-9]+\\.[0-9]+\\.v2"));
}

TEST(SummaryWriter, TwoWritersHaveFilesOfTheirOwn) {
  TempDir dir;
  EXPECT_NE(SummaryWriter(dir.path()).path(), SummaryWriter(dir.path()).path());
}

TEST(SummaryWriter, DirectoryThatCannotBeMadeIsIoError) {
  TempDir dir;
  write_file(dir / "file", "x");
  EXPECT_THROW(SummaryWriter(dir / "file/train"), IoError);
}

}  // namespace
}  // namespace t5x
