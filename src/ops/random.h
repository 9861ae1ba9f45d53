// Random numbers as JAX's threefry-2x32 in its partitionable form: element i depends on the key and i only,
// so the values are the same on any mesh. A key is a uint32 tensor of shape (2).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

// Host side, for keys known before a program runs.
using Key = std::array<uint32_t, 2>;
Key host_threefry2x32(Key key, std::array<uint32_t, 2> counter);
Key host_prng_key(uint64_t seed);
Key host_fold_in(Key key, uint32_t data);
std::vector<Key> host_split(Key key, uint32_t num);

// The two output words of threefry-2x32 for every pair of counter words; key is (2), x0 and x1 have one
// shape.
std::pair<Tensor, Tensor> threefry2x32(Tensor key, Tensor x0, Tensor x1);
// jax.random.fold_in(key, data); folding many constants into one key costs one vectorised call.
Tensor fold_in(Tensor key, uint32_t data);
Tensor fold_in(Tensor key, Tensor data);
// num keys, (num, 2).
Tensor split(Tensor key, int64_t num);
Tensor random_bits(Tensor key, const Shape& shape);
// float32 in [low, high).
Tensor uniform(Tensor key, const Shape& shape, double low = 0.0, double high = 1.0);
Tensor bernoulli(Tensor key, double p, const Shape& shape);
// float32, mean 0, deviation 1; the second form is cut to (low, high) in deviations.
Tensor normal(Tensor key, const Shape& shape);
Tensor truncated_normal(Tensor key, double low, double high, const Shape& shape);
Tensor gumbel(Tensor key, const Shape& shape);
// Index drawn from softmax(logits) over the last axis, as jax.random.categorical: int32.
Tensor categorical(Tensor key, Tensor logits);
// The device's own generator (stablehlo.rng_bit_generator): fast, not the same from one platform to another.
Tensor hardware_bits(Tensor key, const Shape& shape);

}  // namespace t5x::ops
