// What beam search and sampling share: the decoder as they see it, and its cache.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace t5x::decode {

using Tensors = std::vector<Tensor>;

// One step of a decoder. `ids`: int32 [rows, 1], the tokens at the current position; rows are batch *
// num_decodes, the decodes of one example side by side. `index`: int32, the position in the cache that this
// step fills; a scalar, or [rows] where decoding began at an initial_index per example. Returns float logits
// [rows, vocab] of the next token and the new cache, entry by entry of unchanged type.
using TokensToLogits =
    std::function<std::pair<Tensor, Tensors>(Tensor ids, const Tensors& cache, Tensor index)>;

struct Cache {
  Tensors entries;
  // Per entry the axis of the batch; -1 for what the examples share, such as a counter. Empty: all 0.
  std::vector<int64_t> batch_axes;
};

struct Decoded {
  Tensor sequences;  // int32 [batch, num_decodes, length], worst decode first, no start token
  Tensor scores;     // float32 [batch, num_decodes], ascending
};

// Repeats every example `count` times along `axis`, copies side by side: for the encoder's outputs, masks and
// everything else that a decoder step reads beside its cache.
Tensor expand_batch(Tensor x, int64_t count, int64_t axis = 0);
// The same for a cache. Throws ShapeError when batch_axes does not fit.
Cache expand_cache(const Cache& cache, int64_t count);
// For entries of batch * num_decodes rows: row (b, j) of the result is row (b, decodes[b, j]).
Tensors gather_cache(const Tensors& entries, const std::vector<int64_t>& batch_axes, Tensor decodes);
// Checks that a step gave logits [rows, vocab] and a cache like the one it took; returns vocab.
int64_t check_step(Tensor logits, const Tensors& before, const Tensors& after, int64_t rows);
// float32 log probabilities over the last axis.
Tensor log_probabilities(Tensor logits);

}  // namespace t5x::decode
