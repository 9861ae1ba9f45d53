#include "decode/cache.h"

#include "base/error.h"
#include "ops/ops.h"

namespace t5x::decode {

namespace {

std::vector<int64_t> axes_of(const Cache& cache) {
  if (cache.batch_axes.empty()) return std::vector<int64_t>(cache.entries.size(), 0);
  if (cache.batch_axes.size() != cache.entries.size()) {
    throw_error<ShapeError>("a decoder cache of {} entries names {} batch axes: name one per entry",
                            cache.entries.size(), cache.batch_axes.size());
  }
  return cache.batch_axes;
}

}  // namespace

Tensor expand_batch(Tensor x, int64_t count, int64_t axis) {
  if (count == 1) return x;
  const size_t at = x.shape().normalize_axis(axis);
  std::vector<int64_t> wide = x.shape().dims(), flat = wide, kept;
  wide.insert(wide.begin() + static_cast<int64_t>(at) + 1, count);
  flat[at] *= count;
  for (size_t i = 0; i < wide.size(); ++i) {
    if (i != at + 1) kept.push_back(static_cast<int64_t>(i));
  }
  return ops::reshape(ops::broadcast_in_dim(x, Shape(wide), kept), flat);
}

Cache expand_cache(const Cache& cache, int64_t count) {
  Cache expanded{.entries = cache.entries, .batch_axes = axes_of(cache)};
  for (size_t i = 0; i < expanded.entries.size(); ++i) {
    const int64_t axis = expanded.batch_axes[i];
    if (axis >= 0) expanded.entries[i] = expand_batch(expanded.entries[i], count, axis);
  }
  return expanded;
}

Tensors gather_cache(const Tensors& entries, const std::vector<int64_t>& batch_axes, Tensor decodes) {
  const int64_t batch = decodes.dim(0), count = decodes.dim(1);
  if (count == 1) return entries;
  Tensors gathered = entries;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (batch_axes[i] < 0) continue;
    // [l..., b * k, rest...] as [l * b, k, rest...]: axes before the batch, such as scanned layers, become
    // part of it, so that nothing is transposed.
    const std::vector<int64_t> dims = entries[i].shape().dims();
    const size_t axis = static_cast<size_t>(batch_axes[i]);
    int64_t leading = 1;
    for (size_t d = 0; d < axis; ++d) leading *= dims[d];
    std::vector<int64_t> split_dims = {leading * batch, count};
    split_dims.insert(split_dims.end(), dims.begin() + static_cast<int64_t>(axis) + 1, dims.end());
    Tensor index = decodes;
    if (leading > 1) {
      index = ops::broadcast_in_dim(decodes, {leading, batch, count}, {1, 2});
      index = ops::reshape(index, {leading * batch, count});
    }
    gathered[i] = ops::reshape(ops::gather_batched(ops::reshape(entries[i], split_dims), index), dims);
  }
  return gathered;
}

int64_t check_step(Tensor logits, const Tensors& before, const Tensors& after, int64_t rows) {
  if (logits.rank() != 2 || logits.dim(0) != rows || !is_float(logits.dtype())) {
    throw_error<ShapeError>("a decoder step must return float logits of shape ({}, vocabulary), not {}", rows,
                            logits.type().describe());
  }
  if (before.size() != after.size()) {
    throw_error<ShapeError>("a decoder step took a cache of {} entries and returned {}", before.size(),
                            after.size());
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].type() != after[i].type()) {
      throw_error<ShapeError>("entry {} of the decoder's cache is {} before a step and {} after it", i,
                              before[i].type().describe(), after[i].type().describe());
    }
  }
  return logits.dim(1);
}

Tensor log_probabilities(Tensor logits) {
  return ops::log_softmax(ops::convert(logits, DType::kFloat32), -1);
}

}  // namespace t5x::decode
