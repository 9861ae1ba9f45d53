// Operations that move elements: reshaping, broadcasting, slicing, joining.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace t5x::ops {

// One dimension may be -1.
Tensor reshape(Tensor x, const std::vector<int64_t>& dims);
// Axis i of x becomes axis dims[i] of the result; axes of size 1 stretch.
Tensor broadcast_in_dim(Tensor x, const Shape& shape, const std::vector<int64_t>& dims);
// As NumPy: aligns the trailing axes.
Tensor broadcast_to(Tensor x, const Shape& shape);
// Result axis i is x's axis permutation[i].
Tensor transpose(Tensor x, const std::vector<int64_t>& permutation);
Tensor expand_dims(Tensor x, int64_t axis);
Tensor squeeze(Tensor x, int64_t axis);
Tensor slice(Tensor x, const std::vector<int64_t>& starts, const std::vector<int64_t>& limits,
             const std::vector<int64_t>& strides = {});
// x[..., start:limit, ...] along one axis.
Tensor slice_in_dim(Tensor x, int64_t start, int64_t limit, int64_t axis);
// Per axis low, high and interior padding; negative low or high removes elements.
Tensor pad(Tensor x, double value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
           const std::vector<int64_t>& interior = {});
Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis);
Tensor reverse(Tensor x, const std::vector<int64_t>& axes);
// 0, 1, 2, ... along `axis`.
Tensor iota(DType dtype, const Shape& shape, int64_t axis);
inline Tensor arange(DType dtype, int64_t n) { return iota(dtype, {n}, 0); }
// Start indices are integer scalars, one per axis; they are clamped so that the slice fits.
Tensor dynamic_slice(Tensor x, const std::vector<Tensor>& starts, const std::vector<int64_t>& sizes);
Tensor dynamic_update_slice(Tensor x, Tensor update, const std::vector<Tensor>& starts);
// Along one axis, with one start index; the axis stays, of size `size`.
Tensor dynamic_slice_in_dim(Tensor x, Tensor start, int64_t size, int64_t axis);
Tensor dynamic_update_slice_in_dim(Tensor x, Tensor update, Tensor start, int64_t axis);

}  // namespace t5x::ops
