#include "core/dtype.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace t5x {
namespace {

struct Row {
  DType dtype;
  std::string_view name, mlir;
  size_t size;
};
constexpr std::array<Row, 13> kRows{{{DType::kBool, "bool", "i1", 1},
                                     {DType::kInt8, "int8", "i8", 1},
                                     {DType::kUInt8, "uint8", "ui8", 1},
                                     {DType::kInt16, "int16", "i16", 2},
                                     {DType::kUInt16, "uint16", "ui16", 2},
                                     {DType::kInt32, "int32", "i32", 4},
                                     {DType::kUInt32, "uint32", "ui32", 4},
                                     {DType::kInt64, "int64", "i64", 8},
                                     {DType::kUInt64, "uint64", "ui64", 8},
                                     {DType::kBFloat16, "bfloat16", "bf16", 2},
                                     {DType::kFloat16, "float16", "f16", 2},
                                     {DType::kFloat32, "float32", "f32", 4},
                                     {DType::kFloat64, "float64", "f64", 8}}};

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t byte_size(DType dtype) { return row(dtype).size; }
std::string_view name(DType dtype) { return row(dtype).name; }
std::string_view mlir_name(DType dtype) { return row(dtype).mlir; }

DType dtype_from_name(std::string_view name) {
  std::vector<std::string> names;
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
    names.emplace_back(r.name);
  }
  throw_error<ConfigError>("unknown dtype '{}'{}", name, did_you_mean(name, names));
}

bool is_float(DType dtype) { return dtype >= DType::kBFloat16; }
bool is_signed_integer(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32 || dtype == DType::kInt64;
}
bool is_unsigned_integer(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64;
}

BFloat16::BFloat16(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>((word >> 16) | 0x40);  // stays a NaN although the low half is dropped
  } else {
    bits = static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
}

Float16::Float16(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((word >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    bits = sign | 0x7e00;
  } else if (magnitude >= 65520.0f) {
    bits = sign | 0x7c00;
  } else if (magnitude < 6.103515625e-05f) {
    // Subnormal: a multiple of 2^-24, rounded to nearest even.
    bits = sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  } else {
    const uint32_t rounded = (word & 0x7fffffff) + 0xfff + ((word >> 13) & 1);
    bits = sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
  }
}

Float16::operator float() const {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const auto mantissa = static_cast<float>(bits & 0x3ff);
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1024.0f + mantissa, exponent - 25);
}

}  // namespace t5x
