#include "base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <bit>
#include <cstring>

namespace t5x {
namespace {

constexpr uint32_t kCastagnoli = 0x82f63b78;  // reflected polynomial

using Table = std::array<std::array<uint32_t, 256>, 8>;

// Slicing by eight: table k advances a byte that lies k bytes before the end of an eight byte group.
constexpr Table make_table() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    table[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
  }
  return table;
}
constexpr Table kTable = make_table();

}  // namespace

std::array<uint8_t, 20> sha1(std::string_view bytes) {
  std::array<uint8_t, 20> digest{};
  SHA1(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<uint8_t, 32> digest{};
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  for (uint8_t byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

uint32_t crc32c(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint32_t crc = 0xffffffff;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; left > 0; ++p, --left) crc = (crc >> 8) ^ kTable[0][(crc ^ static_cast<uint8_t>(*p)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace t5x
