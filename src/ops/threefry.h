// Constants of threefry-2x32, and its device form.
#pragma once

#include <array>
#include <cstdint>

#include "graph/graph.h"

namespace t5x::ops {

inline constexpr uint32_t kThreefryParity = 0x1BD11BDA;
inline constexpr std::array<std::array<int, 4>, 2> kThreefryRotations{{{13, 15, 26, 6}, {17, 29, 16, 24}}};

// Whether a node derives one key from another: its result is two words.
bool is_key_derivation(const Node& node);

}  // namespace t5x::ops
