#include "checkpoint/t5x_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/index.h"
#include "checkpoint/msgpack.h"

namespace t5x::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kGolden = fs::path(T5X_SOURCE_DIR) / "tests/golden/checkpoint";

Array filled(Shape shape, float start) {
  Array array(DType::kFloat32, std::move(shape));
  for (float& value : array.values<float>()) value = start++;
  return array;
}

CheckpointContents small_contents() {
  return {{{"target/a/kernel", filled({3, 4}, 0.3f)},
           {"target/b/scale", filled({1}, 2)},
           {"state/step", Array::scalar<int32_t>(17)},
           {"state/param_states/a/kernel/v_row", filled({3}, 1)},
           {"state/param_states/a/kernel/v", filled({3, 4}, 5)},
           {"state/param_states/b/scale/v", filled({1}, 9)}},
          {{"train_ds-00000-of-00001", "{\"position\":3}"}}};
}

template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "no error";
}

std::string read_error(const fs::path& dir) {
  return error_of([&] { read_checkpoint(dir); });
}

std::string match_error(const std::map<std::string, ArrayInfo>& expected,
                        const std::map<std::string, ArrayInfo>& found) {
  return error_of([&] { check_arrays_match(expected, found, "ck"); });
}

TEST(T5xCheckpoint, ValuesEqualT5xs) {
  const CheckpointContents contents = read_checkpoint(kGolden / "checkpoint_600");
  const auto expected = nlohmann::json::parse(read_file(kGolden / "expected.json"))["values"];
  ASSERT_EQ(contents.arrays.size(), expected.size());
  for (const auto& [name, values] : expected.items()) {
    SCOPED_TRACE(name);
    const Array& array = contents.arrays.at(name);
    EXPECT_EQ(t5x::name(array.dtype()), values["dtype"].get<std::string>());
    EXPECT_EQ(array.shape().dims(), values["shape"].get<std::vector<int64_t>>());
    const Array wide = array.cast(DType::kFloat64);
    const std::span<const double> elements = wide.values<double>();
    double sum = 0;
    for (double element : elements) sum += element;
    // The order of NumPy's pairwise sum is not ours.
    EXPECT_NEAR(sum, values["sum"].get<double>(), 1e-9 * std::max(1.0, std::abs(sum)));
    const auto first = values["first"].get<std::vector<double>>(),
               last = values["last"].get<std::vector<double>>();
    EXPECT_TRUE(std::equal(first.begin(), first.end(), elements.begin()));
    EXPECT_TRUE(std::equal(last.begin(), last.end(), elements.end() - static_cast<int64_t>(last.size())));
  }
}

TEST(T5xCheckpoint, WrittenAgainEqualsT5xsByteForByte) {
  TempDir dir;
  const fs::path golden = kGolden / "checkpoint_600";
  write_checkpoint(dir / "c", read_checkpoint(golden));
  int compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(golden)) {
    // The compressed bytes are the compressor's own affair.
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || (name != ".zarray" && name != kIndexFile)) continue;
    EXPECT_EQ(read_file(dir / "c" / fs::relative(entry.path(), golden).string()), read_file(entry.path()));
    ++compared;
  }
  EXPECT_EQ(compared, 11);
}

TEST(T5xCheckpoint, FullIndexIsReproducedByteForByte) {
  const std::string bytes = read_file(kGolden / "full_index.msgpack");
  const Index index = decode_index(bytes, "full_index.msgpack");
  EXPECT_EQ(encode_index(index), bytes);
  // What we would store inline or beside the index is what t5x did.
  for (const auto& [name, entry] : index) {
    const Array array = entry.array ? *entry.array : Array(entry.info.dtype, entry.info.shape);
    EXPECT_EQ(is_inline(name, array), entry.array.has_value()) << name;
    if (!entry.array) {
      EXPECT_EQ(zarr_directory(name), entry.directory);
      EXPECT_EQ(choose_chunk_shape(entry.info.shape, kMaxChunkBytes / 4), entry.chunks);
    }
  }
}

TEST(T5xCheckpoint, RoundTripKeepsArraysAndFiles) {
  TempDir dir;
  const CheckpointContents contents = small_contents();
  write_checkpoint(dir / "c", contents);
  const CheckpointContents read = read_checkpoint(dir / "c");
  ASSERT_EQ(read.arrays.size(), contents.arrays.size());
  for (const auto& [name, array] : contents.arrays)
    EXPECT_TRUE(read.arrays.at(name).identical(array)) << name;
  EXPECT_EQ(read.files, contents.files);
}

TEST(T5xCheckpoint, OnlyTargetIsCast) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents(), {.save_dtype = DType::kBFloat16});
  const NamedArrays arrays = read_checkpoint(dir / "c").arrays;
  EXPECT_TRUE(arrays.at("target/a/kernel").identical(filled({3, 4}, 0.3f).cast(DType::kBFloat16)));
  EXPECT_EQ(arrays.at("state/param_states/a/kernel/v").dtype(), DType::kFloat32);
  EXPECT_THAT(read_file(dir / "c/target.a.kernel/.zarray"), HasSubstr("\"dtype\":\"bfloat16\""));
}

TEST(T5xCheckpoint, TargetIsCastWhenRead) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents(), {.save_dtype = DType::kBFloat16});
  const NamedArrays arrays = read_checkpoint(dir / "c", {.target_dtype = DType::kFloat32}).arrays;
  EXPECT_EQ(arrays.at("target/a/kernel").dtype(), DType::kFloat32);
}

TEST(T5xCheckpoint, WantedNamesOnlyAreRead) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  fs::remove_all(dir / "c/state.param_states.a.kernel.v");
  fs::remove(dir / "c/manifest.json");
  const auto arrays =
      read_checkpoint(dir / "c",
                      {.wanted = [](const std::string& name) { return name.starts_with("target/"); }})
          .arrays;
  EXPECT_EQ(arrays.size(), 2);
}

TEST(T5xCheckpoint, ListGivesShapesWithoutChunks) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  fs::remove(dir / "c/target.a.kernel/0.0");
  EXPECT_EQ(list_checkpoint(dir / "c").at("target/a/kernel").shape, (Shape{3, 4}));
}

TEST(T5xCheckpoint, LossOfAnyFileIsNoticed) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  for (const char* file :
       {"checkpoint", "target.a.kernel/.zarray", "target.a.kernel/0.0", "train_ds-00000-of-00001"}) {
    fs::copy(dir / "c", dir / "d", fs::copy_options::recursive);
    fs::remove(dir / "d" / file);
    EXPECT_THAT(read_error(dir / "d"), AllOf(HasSubstr(file), HasSubstr("missing")));
    EXPECT_TRUE(find_damage(dir / "d").has_value()) << file;
    fs::remove_all(dir / "d");
  }
}

TEST(T5xCheckpoint, LossOfAFileOfT5xsOwnIsNoticed) {
  TempDir dir;
  for (const char* file :
       {"checkpoint", "target.token_embedder.embedding/.zarray", "target.token_embedder.embedding/0.0"}) {
    fs::copy(kGolden / "checkpoint_600", dir / "d", fs::copy_options::recursive);
    fs::remove(dir / "d" / file);
    EXPECT_THAT(read_error(dir / "d"), AllOf(HasSubstr(file), HasSubstr("missing")));
    EXPECT_TRUE(find_damage(dir / "d").has_value()) << file;
    fs::remove_all(dir / "d");
  }
}

TEST(T5xCheckpoint, FlippedBitOfAnyFileIsNoticed) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  for (const char* file :
       {"checkpoint", "target.a.kernel/.zarray", "target.a.kernel/0.0", "train_ds-00000-of-00001"}) {
    const std::string bytes = read_file(dir / "c" / file);
    std::string damaged = bytes;
    damaged[damaged.size() - 2] ^= 4;
    write_file(dir / "c" / file, damaged);
    EXPECT_NE(read_error(dir / "c"), "no error") << file;
    write_file(dir / "c" / file, bytes);
  }
  EXPECT_EQ(read_error(dir / "c"), "no error");
}

TEST(T5xCheckpoint, TruncationIsNoticedWithoutReading) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  ASSERT_EQ(find_damage(dir / "c"), std::nullopt);
  const fs::path chunk = dir / "c/target.a.kernel/0.0";
  fs::resize_file(chunk, fs::file_size(chunk) - 1);
  EXPECT_THAT(find_damage(dir / "c").value_or(""), HasSubstr("but was written with"));
}

TEST(T5xCheckpoint, ZarrThatContradictsIndexThrows) {
  TempDir dir;
  write_checkpoint(dir / "c", small_contents());
  fs::remove(dir / "c/manifest.json");
  write_file(dir / "c/target.a.kernel/.zarray", zarr_metadata_json({DType::kFloat32, {4, 3}, {4, 3}}));
  EXPECT_THAT(read_error(dir / "c"),
              AllOf(HasSubstr("(4, 3)"), HasSubstr("(3, 4)"), HasSubstr("target/a/kernel")));
}

TEST(T5xCheckpoint, MissingDirectoryThrows) {
  EXPECT_THAT(read_error("/nonexistent/checkpoint_1"), HasSubstr("there is no checkpoint directory"));
}

TEST(T5xCheckpoint, OtherVersionThrows) {
  const std::string bytes =
      encode_msgpack({MsgpackMap{{"version", {int64_t{2}}}, {"optimizer", {MsgpackMap{}}}}});
  EXPECT_THAT(error_of([&] { decode_index(bytes, "x"); }), HasSubstr("version 2"));
}

TEST(T5xCheckpoint, PathOutOfTheDirectoryThrows) {
  for (const char* path :
       {"PLACEHOLDER://../secret", "PLACEHOLDER://..", "PLACEHOLDER:///etc", "PLACEHOLDER://"}) {
    MsgpackMap tree{{"target", {MsgpackMap{{"a", {std::string(path)}}}}}};
    const std::string bytes =
        encode_msgpack({MsgpackMap{{"version", {int64_t{3}}}, {"optimizer", {std::move(tree)}}}});
    EXPECT_THAT(error_of([&] { decode_index(bytes, "x"); }), HasSubstr("not a directory of the checkpoint"))
        << path;
  }
}

TEST(T5xCheckpoint, PlaceholderIsRead) {
  TempDir dir;
  write_zarr(dir / "c/target.a", filled({2, 2}, 1));
  MsgpackMap tree{{"target", {MsgpackMap{{"a", {std::string("PLACEHOLDER://target.a")}}}}}};
  write_file(dir / "c/checkpoint",
             encode_msgpack({MsgpackMap{{"version", {int64_t{3}}}, {"optimizer", {std::move(tree)}}}}));
  EXPECT_TRUE(read_checkpoint(dir / "c").arrays.at("target/a").identical(filled({2, 2}, 1)));
}

TEST(T5xCheckpoint, NameThatContinuesAnotherThrows) {
  TempDir dir;
  const CheckpointContents contents{{{"target/a", filled({1}, 0)}, {"target/a/b", filled({1}, 0)}}, {}};
  EXPECT_THAT(error_of([&] { write_checkpoint(dir / "c", contents); }), HasSubstr("cannot be stored"));
}

TEST(T5xCheckpoint, NamesThatShareADirectoryThrow) {
  TempDir dir;
  const CheckpointContents contents{{{"target/a.b/c", filled({2}, 0)}, {"target/a/b.c", filled({2}, 0)}}, {}};
  EXPECT_THAT(error_of([&] { write_checkpoint(dir / "c", contents); }), HasSubstr("already taken"));
}

TEST(T5xCheckpoint, FileNameOutOfTheDirectoryThrows) {
  TempDir dir;
  EXPECT_THAT(error_of([&] {
                write_checkpoint(dir / "c", {{}, {{"../x", ""}}});
              }),
              HasSubstr("'../x' cannot be"));
}

TEST(T5xCheckpoint, MismatchListsNamesAndBothShapes) {
  EXPECT_THAT(match_error({{"a", {DType::kFloat32, {2, 3}}}, {"gone", {}}},
                          {{"a", {DType::kFloat32, {3, 2}}}, {"new", {}}}),
              AllOf(HasSubstr("missing from the checkpoint (1):\n    gone"),
                    HasSubstr("not in the model (1):\n    new"),
                    HasSubstr("a: the model has (2, 3), the checkpoint (3, 2)")));
}

TEST(T5xCheckpoint, MatchIgnoresDType) {
  EXPECT_EQ(match_error({{"a", {DType::kFloat32, {2}}}}, {{"a", {DType::kBFloat16, {2}}}}), "no error");
}

}  // namespace
}  // namespace t5x::checkpoint
