// Digests: SHA-1 for the folding of random keys by module path, SHA-256 for cache keys and checksums,
// CRC-32C for TFRecord framing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace t5x {

std::array<uint8_t, 20> sha1(std::string_view bytes);
// Lower-case hexadecimal, 64 characters.
std::string sha256_hex(std::string_view bytes);
// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
// The masked form that TFRecord and LevelDB store.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace t5x
