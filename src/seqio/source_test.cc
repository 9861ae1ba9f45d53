#include "seqio/source.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "seqio/golden_test_util.h"

namespace t5x::seqio {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<std::string> lines_of(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const Example& example : collect(dataset)) lines.push_back(example.text(kLineKey));
  return lines;
}

class Source : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file(dir_ / name, text);
    return (dir_ / name).string();
  }
  TempDir dir_;
};

TEST_F(Source, LinesAreSplitAsTensorFlowDoes) {
  EXPECT_THAT(lines_of(text_lines(write("a", "one\r\n\ntw\ro\nlast"))),
              ElementsAre("one", "", "two", "last"));
  EXPECT_THAT(lines_of(text_lines(write("b", "\n\n"))), ElementsAre("", ""));
  EXPECT_THAT(lines_of(text_lines(write("c", ""))), ElementsAre());
}

TEST_F(Source, LongLinesCrossBlocks) {
  std::string line(1 << 20, 'x');
  EXPECT_THAT(lines_of(text_lines(write("a", "h\n" + line + "\nend"), 1)), ElementsAre(line, "end"));
}

TEST_F(Source, InvalidUtf8NamesFileLineAndByte) {
  std::string path = write("bad.txt", "fine\nnot \xff fine\n");
  EXPECT_THAT(message_of([&] { collect(text_lines(path)); }),
              HasSubstr("bad.txt', line 2, byte 4 of the line (0xff)"));
  EXPECT_EQ(collect(text_lines(path, 0, false)).size(), 2u);
}

TEST_F(Source, MissingFileIsNamedBeforeAnythingIsRead) {
  DataSourcePtr source = text_line_source({{"train", {(dir_ / "none.txt").string()}}});
  EXPECT_THAT(message_of([&] { source->get_dataset({.split = "train"}); }), HasSubstr("none.txt"));
}

TEST_F(Source, GlobWithoutMatchNamesPatternAndSplit) {
  DataSourcePtr source = text_line_source({{"train", {(dir_ / "*.txt").string()}}});
  EXPECT_THAT(message_of([&] { source->list_shards("train"); }), HasSubstr("*.txt' of split 'train'"));
}

TEST_F(Source, UnknownSplitOffersTheNearest) {
  DataSourcePtr source = text_line_source({{"validation", {write("a", "x\n")}}});
  EXPECT_THAT(message_of([&] { source->get_dataset({.split = "validatio"}); }),
              HasSubstr("did you mean 'validation'"));
}

TEST_F(Source, TsvRowsBecomeFeatures) {
  DataSourcePtr source = tsv_source({{"train", {write("a.tsv", "word\tsound\ncat\tK AE T\n")}}});
  Example row = collect(source->get_dataset({.split = "train"})).at(0);
  EXPECT_EQ(row.text("word"), "cat");
  EXPECT_EQ(row.text("sound"), "K AE T");
}

TEST_F(Source, MalformedTsvRowNamesFileAndLine) {
  DataSourcePtr source =
      tsv_source({{"train", {write("a.tsv", "x\ty\nonly one\n")}}}, {.columns = {"inputs", "targets"}});
  EXPECT_THAT(message_of([&] { collect(source->get_dataset({.split = "train"})); }),
              HasSubstr("a.tsv', line 2: expected 2 fields (inputs, targets), found 1"));
}

// A row cut off by a truncated file is not taken for a whole one.
TEST_F(Source, TruncatedTsvFileIsAnError) {
  DataSourcePtr source =
      tsv_source({{"train", {write("cut.tsv", "a\tb\nc")}}}, {.columns = {"inputs", "targets"}});
  EXPECT_THAT(message_of([&] { collect(source->get_dataset({.split = "train"})); }),
              HasSubstr("cut.tsv', line 2"));
}

TEST_F(Source, FileThatShrankSinceTheStateWasSavedIsAnError) {
  std::string path = write("a.txt", "one\ntwo\nthree\n");
  auto iterator = text_lines(path).iterator();
  Example example;
  for (int i = 0; i < 2; ++i) iterator->next(example);
  Json state = iterator->save();
  write("a.txt", "one\n");
  EXPECT_THAT(message_of([&] { text_lines(path).iterator()->restore(state); }),
              HasSubstr("the file was truncated"));
}

TEST_F(Source, ShardsByFileTakeEveryNthFile) {
  for (int i = 0; i < 4; ++i) write("f" + std::to_string(i), std::to_string(i) + "\n");
  DataSourcePtr source = text_line_source({{"train", {(dir_ / "f*").string()}}});
  EXPECT_THAT(lines_of(source->get_dataset({.split = "train", .seed = {}, .shard_info = ShardInfo{1, 2}})),
              ElementsAre("1", "3"));
  EXPECT_THROW(source->get_dataset({.split = "train", .seed = {}, .shard_info = ShardInfo{1, 5}}),
               ConfigError);
}

}  // namespace
}  // namespace t5x::seqio
