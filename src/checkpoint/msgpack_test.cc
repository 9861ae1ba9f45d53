#include "checkpoint/msgpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace t5x::checkpoint {
namespace {

using ::testing::HasSubstr;

// Bytes from text such as "93 01 02"; spaces are ignored.
std::string bytes_of(std::string_view hex) {
  std::string digits, bytes;
  for (char c : hex) {
    if (c != ' ') digits.push_back(c);
  }
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string error_of(const std::string& bytes) {
  try {
    decode_msgpack(bytes, "checkpoint");
  } catch (const CheckpointError& e) {
    return e.what();
  }
  return "no error";
}

template <class T>
T decode_as(std::string_view hex) {
  return std::get<T>(decode_msgpack(bytes_of(hex), "checkpoint").data);
}

// That the shortest form of `value` is what msgpack-python 1.2.4 packs.
void expect_encoding(const MsgpackValue& value, std::string_view hex) {
  EXPECT_EQ(encode_msgpack(value), bytes_of(hex)) << hex;
}

TEST(Msgpack, IntegersTakeShortestForm) {
  expect_encoding({int64_t{127}}, "7f");
  expect_encoding({int64_t{128}}, "cc80");
  expect_encoding({int64_t{256}}, "cd0100");
  expect_encoding({int64_t{65536}}, "ce00010000");
  expect_encoding({int64_t{1} << 32}, "cf0000000100000000");
  expect_encoding({UINT64_MAX}, "cfffffffffffffffff");
  expect_encoding({int64_t{-32}}, "e0");
  expect_encoding({int64_t{-33}}, "d0df");
  expect_encoding({int64_t{-129}}, "d1ff7f");
  expect_encoding({int64_t{-32769}}, "d2ffff7fff");
  expect_encoding({INT64_MIN}, "d38000000000000000");
}

TEST(Msgpack, IntegersSurviveRoundTrip) {
  for (int64_t value : {INT64_MIN, int64_t{-70000}, int64_t{-300}, int64_t{-100}, int64_t{-1}, int64_t{0},
                        int64_t{200}, int64_t{70000}, INT64_MAX})
    EXPECT_EQ(std::get<int64_t>(decode_msgpack(encode_msgpack({value}), "x").data), value);
}

TEST(Msgpack, ScalarsDecode) {
  EXPECT_EQ(decode_as<bool>("c3"), true);
  EXPECT_EQ(decode_as<double>("ca3fc00000"), 1.5);
  EXPECT_EQ(decode_as<double>("cb3ff8000000000000"), 1.5);
  EXPECT_EQ(decode_as<std::string>("a3616263"), "abc");
  EXPECT_EQ(decode_as<MsgpackBytes>("c4026162").bytes, "ab");
  EXPECT_EQ(decode_as<uint64_t>("cfffffffffffffffff"), UINT64_MAX);
}

// flax 0.12.8: msgpack_serialize(np.float32([0]))
TEST(Msgpack, NdarrayEqualsFlaxs) {
  expect_encoding({Array(DType::kFloat32, {1})}, "c71101 93 9101 a7666c6f61743332 c40400000000");
}

// flax 0.12.8: msgpack_serialize({'a': 1.5 + 2j})
TEST(Msgpack, ComplexEqualsFlaxs) {
  expect_encoding({MsgpackMap{{"a", {std::complex<double>(1.5, 2)}}}},
                  "81 a161 c71302 92 cb3ff8000000000000 cb4000000000000000");
}

// flax 0.12.8: msgpack_serialize({'a': np.int64(7)})
TEST(Msgpack, NumpyScalarEqualsFlaxs) {
  expect_encoding({MsgpackMap{{"a", {NumpyScalar{Array::scalar<int64_t>(7)}}}}},
                  "81 a161 c71203 93 90 a5696e743634 c4080700000000000000");
}

TEST(Msgpack, NumpyScalarSurvivesRoundTrip) {
  const MsgpackValue value{NumpyScalar{Array::scalar<int64_t>(7)}};
  const MsgpackValue read = decode_msgpack(encode_msgpack(value), "x");
  EXPECT_EQ(std::get<NumpyScalar>(read.data).array.item<int64_t>(), 7);
}

TEST(Msgpack, BFloat16ArraySurvivesRoundTrip) {
  const Array array = Array::scalar<BFloat16>(BFloat16(2.5f)).reshape({1, 1});
  EXPECT_TRUE(std::get<Array>(decode_msgpack(encode_msgpack({array}), "x").data).identical(array));
}

TEST(Msgpack, MapKeepsOrder) {
  const MsgpackValue value{MsgpackMap{{"z", {int64_t{1}}}, {"a", {MsgpackList{{int64_t{2}}, {}}}}}};
  EXPECT_EQ(encode_msgpack(decode_msgpack(encode_msgpack(value), "x")), bytes_of("82 a17a 01 a161 92 02 c0"));
}

TEST(Msgpack, FindLooksUpKey) {
  const MsgpackValue value{MsgpackMap{{"a", {int64_t{1}}}}};
  EXPECT_EQ(*value.find("a")->as_int(), 1);
  EXPECT_EQ(value.find("b"), nullptr);
}

TEST(Msgpack, EveryTruncationThrows) {
  const MsgpackValue value{MsgpackMap{{"a", {Array(DType::kFloat32, {300})}},
                                      {"b", {std::string(40, 'x')}},
                                      {"c", {MsgpackList{{int64_t{-70000}}, {1.5}, {true}}}}}};
  const std::string bytes = encode_msgpack(value);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(decode_msgpack(std::string_view(bytes).substr(0, size), "x"), CheckpointError) << size;
}

TEST(Msgpack, TrailingBytesThrow) { EXPECT_THAT(error_of(bytes_of("01 02")), HasSubstr("1 bytes follow")); }

TEST(Msgpack, ErrorNamesFileAndOffset) {
  EXPECT_THAT(error_of(bytes_of("92 01 c1")),
              HasSubstr("'checkpoint' is not whole msgpack: the byte 0xc1 begins no value at byte 3"));
}

TEST(Msgpack, DeepNestingThrows) {
  EXPECT_THAT(error_of(std::string(100000, '\x91')), HasSubstr("nested deeper"));
}

TEST(Msgpack, AnnouncedCountTakesNoMemory) {
  EXPECT_THAT(error_of(bytes_of("dd ffffffff")), HasSubstr("where 0 are left"));
  EXPECT_THAT(error_of(bytes_of("c6 ffffffff 00")), HasSubstr("where 1 are left"));
}

TEST(Msgpack, KeyThatIsNoStringThrows) {
  EXPECT_THAT(error_of(bytes_of("81 01 02")), HasSubstr("not a string"));
}

TEST(Msgpack, UnknownExtensionThrows) {
  EXPECT_THAT(error_of(bytes_of("d4 05 00")), HasSubstr("extension type 5"));
}

TEST(Msgpack, NdarrayOfWrongSizeThrows) {
  EXPECT_THAT(error_of(bytes_of("c71101 93 9102 a7666c6f61743332 c40400000000")),
              HasSubstr("needs 8 bytes and has 4"));
}

TEST(Msgpack, NdarrayOfUnknownDTypeThrows) {
  EXPECT_THAT(error_of(bytes_of("c71101 93 9101 a7666c6f61743333 c40400000000")),
              HasSubstr("did you mean 'float32'"));
}

TEST(Msgpack, NdarrayWhoseSizeOverflowsThrows) {
  EXPECT_THAT(error_of(bytes_of("c71a01 93 92 ceffffffff ceffffffff a7666c6f61743332 c40400000000")),
              HasSubstr("overflows"));
}

}  // namespace
}  // namespace t5x::checkpoint
