#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace t5x::checkpoint {
namespace {

using ::testing::HasSubstr;

// A file of the format from its header text and its data.
std::string file_of(const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data_bytes, 'x');
}

std::string error_of(const std::string& bytes) {
  try {
    parse_safetensors_header(bytes, bytes.size(), "weights.safetensors");
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "no error";
}

std::string error_of(const std::string& header, size_t data_bytes) {
  return error_of(file_of(header, data_bytes));
}

template <class T>
Array iota(Shape shape) {
  Array array(dtype_of<T>(), std::move(shape));
  for (int i = 0; T & value : array.values<T>()) value = T(static_cast<float>(i++));
  return array;
}

TEST(Safetensors, RoundTripKeepsEveryDType) {
  TempDir dir;
  std::map<std::string, Array> tensors{
      {"bf16", iota<BFloat16>({3})},      {"f16", iota<Float16>({3, 1})}, {"f32", iota<float>({2, 3})},
      {"f64", iota<double>({2})},         {"i8", iota<int8_t>({5})},      {"u8", iota<uint8_t>({5})},
      {"i16", iota<int16_t>({1, 1})},     {"u16", iota<uint16_t>({7})},   {"i32", iota<int32_t>({})},
      {"u32", iota<uint32_t>({4})},       {"i64", iota<int64_t>({4})},    {"u64", iota<uint64_t>({4})},
      {"bool", Array(DType::kBool, {3})}, {"empty", iota<float>({0, 4})}};
  write_safetensors(dir / "t.safetensors", tensors, {{"format", "t5x"}});
  const std::map<std::string, Array> read = read_safetensors(dir / "t.safetensors");
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, array] : tensors) EXPECT_TRUE(read.at(name).identical(array)) << name;
  EXPECT_EQ(SafetensorsReader(dir / "t.safetensors").metadata().at("format"), "t5x");
}

TEST(Safetensors, SameInputGivesSameBytes) {
  TempDir dir;
  const std::map<std::string, Array> tensors{{"a/b", iota<float>({2, 3})}, {"c", iota<int64_t>({4})}};
  write_safetensors(dir / "1", tensors);
  write_safetensors(dir / "2", tensors);
  EXPECT_EQ(read_file(dir / "1"), read_file(dir / "2"));
}

TEST(Safetensors, UnknownTensorNamesCloseOnes) {
  TempDir dir;
  write_safetensors(dir / "t", {{"encoder/scale", iota<float>({2})}});
  const SafetensorsReader reader(dir / "t");
  try {
    reader.read("encoder/scales");
    FAIL() << "no error";
  } catch (const CheckpointError& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean 'encoder/scale'"));
  }
}

TEST(Safetensors, MissingFileIsIoError) { EXPECT_THROW(read_safetensors("/nonexistent/file"), IoError); }

TEST(Safetensors, TruncatedFileThrows) {
  TempDir dir;
  write_safetensors(dir / "t", {{"a", iota<float>({100})}});
  const std::string bytes = read_file(dir / "t");
  for (size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{20}, bytes.size() - 1}) {
    write_file(dir / "cut", std::string_view(bytes).substr(0, size));
    EXPECT_THROW(read_safetensors(dir / "cut"), CheckpointError) << size;
  }
}

TEST(Safetensors, HeaderLongerThanFileThrows) {
  std::string bytes = file_of("{}", 0);
  bytes[1] = 1;
  EXPECT_THAT(error_of(bytes), HasSubstr("announces a header of 258 bytes"));
}

TEST(Safetensors, HeaderOverLimitThrows) {
  std::string bytes = file_of("{}", 0);
  bytes[7] = 0x7f;
  EXPECT_THAT(error_of(bytes), HasSubstr("more than the limit"));
}

TEST(Safetensors, BadJsonThrows) { EXPECT_THAT(error_of("{\"a\":", 0), HasSubstr("not a JSON object")); }

TEST(Safetensors, UnknownDTypeThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("F8_E4M3"));
}

TEST(Safetensors, SizeThatDoesNotFitShapeThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("needs 8 bytes"));
}

TEST(Safetensors, OffsetBeyondFileThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4),
              HasSubstr("file holds 4"));
}

TEST(Safetensors, ReversedOffsetsThrow) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[2,1]}})", 4),
              HasSubstr("data_offsets"));
}

TEST(Safetensors, OverflowingShapeThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
              HasSubstr("overflows"));
}

TEST(Safetensors, NegativeDimensionThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("dimension -1"));
}

TEST(Safetensors, OverlapThrows) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                       3),
              HasSubstr("gap or an overlap"));
}

TEST(Safetensors, TrailingBytesThrow) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3), HasSubstr("3 follow"));
}

TEST(Safetensors, ErrorNamesFile) { EXPECT_THAT(error_of("", 0), HasSubstr("weights.safetensors")); }

}  // namespace
}  // namespace t5x::checkpoint
