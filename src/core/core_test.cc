#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "core/array.h"

namespace t5x {
namespace {

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
}

TEST(Float16, RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(Float16(value).bits, half.bits);
  }
}

TEST(Array, IsAlignedAndZero) {
  Array a(DType::kFloat32, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.bytes()) % 64, 0u);
  for (float v : a.values<float>()) EXPECT_EQ(v, 0.0f);
}

TEST(Array, WrongElementTypeThrows) { EXPECT_THROW(Array(DType::kInt32, {1}).values<float>(), ShapeError); }
TEST(Array, WrongCountThrows) {
  const std::vector<float> three{1, 2, 3};
  EXPECT_THROW(Array::from<float>(three, {2}), ShapeError);
}
TEST(Array, CastConverts) {
  const std::vector<float> two{1.5f, -2.0f};
  EXPECT_EQ(Array::from<float>(two, {2}).cast(DType::kInt32).values<int32_t>()[1], -2);
}
TEST(DType, UnknownNameOffersCloseMatches) {
  try {
    dtype_from_name("float23");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("float32"), std::string::npos);
  }
}
TEST(Shape, AxisOutOfRangeThrows) { EXPECT_THROW(Shape({2, 3}).dim(2), ShapeError); }

}  // namespace
}  // namespace t5x
