// Looking up and adding at computed positions. Indices are int32 or int64 and must be in range; out of range
// they are clamped (reads) or dropped (writes), as StableHLO does.
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace t5x::ops {

// Rows of `table` [n, ...] at `indices` [i...]: [i..., ...]. Its gradient adds rows of the cotangent in
// float32. With batch axes, every batch has a table of its own: table [b..., n, ...] at [b..., i...] gives
// [b..., i..., ...].
Tensor take(Tensor table, Tensor indices, size_t num_batch_axes = 0);
// table [b..., n, ...] with `updates` [b..., i..., ...] added at `indices` [b..., i...].
Tensor scatter_add(Tensor table, Tensor indices, Tensor updates, size_t num_batch_axes = 0);
// Element along `axis` at `indices`, whose shape is x's but for `axis`: numpy.take_along_axis.
Tensor take_along_axis(Tensor x, Tensor indices, int64_t axis);
// 1 where index equals position along a new last axis of size `depth`.
Tensor one_hot(Tensor indices, int64_t depth, DType dtype);
// x [b, n, ...], indices [b, k]: result [b, k, ...] with result[b, j] = x[b, indices[b, j]].
Tensor gather_batched(Tensor x, Tensor indices);

}  // namespace t5x::ops
