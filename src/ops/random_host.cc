// Threefry-2x32 on the host. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
// 3" (SC 2011), section 4.1, with 20 rounds; keys are derived as jax.random does.
#include <bit>

#include "ops/random.h"
#include "ops/threefry.h"

namespace t5x::ops {

Key host_threefry2x32(Key key, std::array<uint32_t, 2> counter) {
  const std::array<uint32_t, 3> schedule{key[0], key[1], key[0] ^ key[1] ^ kThreefryParity};
  uint32_t a = counter[0] + schedule[0], b = counter[1] + schedule[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kThreefryRotations[group % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += schedule[(group + 1) % 3];
    b += schedule[(group + 2) % 3] + group + 1;
  }
  return {a, b};
}

Key host_prng_key(uint64_t seed) { return {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)}; }

Key host_fold_in(Key key, uint32_t data) { return host_threefry2x32(key, {0, data}); }

std::vector<Key> host_split(Key key, uint32_t num) {
  std::vector<Key> keys;
  for (uint32_t i = 0; i < num; ++i) keys.push_back(host_threefry2x32(key, {0, i}));
  return keys;
}

}  // namespace t5x::ops
