#include "decode/beam_search.h"

#include "base/error.h"
#include "graph/trace.h"
#include "ops/ops.h"

namespace t5x::decode {

namespace {

constexpr double kNegativeInfinity = -1.0e7;  // t5x's: finite, so that differences stay numbers

// The state of the search. Live decodes and finished decodes are both kept in ascending order.
struct State {
  Tensor index;            // int32 scalar: the position whose token is fed next
  Tensor live_log_probs;   // float32 [b, k]
  Tensor live_sequences;   // int32 [b, k, n]; position 0 is the start token
  Tensor finished_scores;  // float32 [b, k]
  Tensor finished_sequences;
  Tensor finished;  // bool [b, k]: whether the slot holds a decode
  Tensors cache;

  Tensors pack() const {
    Tensors all = {index, live_log_probs, live_sequences, finished_scores, finished_sequences, finished};
    all.insert(all.end(), cache.begin(), cache.end());
    return all;
  }
  static State unpack(const Tensors& all) {
    return {all[0], all[1], all[2], all[3], all[4], all[5], Tensors(all.begin() + 6, all.end())};
  }
};

Tensor brevity_penalty(Tensor length, double alpha) {
  return ops::pow((ops::convert(length, DType::kFloat32) + 5.0) / 6.0, alpha);
}

Tensor masked(Tensor values, Tensor drop) {
  return values + ops::convert(drop, DType::kFloat32) * kNegativeInfinity;
}

// Positions [b, k] of the k largest of [b, m], ascending.
Tensor best(Tensor values, int64_t k) { return ops::reverse(ops::top_k(values, k).second, {1}); }

}  // namespace

Decoded beam_search(Tensor inputs, const Cache& cache, const TokensToLogits& tokens_to_logits,
                    const BeamSearchOptions& options) {
  NameScope scope("beam_search");
  if (inputs.rank() != 2 || inputs.dtype() != DType::kInt32 || inputs.dim(1) < 1) {
    throw_error<ShapeError>("beam_search wants inputs int32(batch, length), got {}",
                            inputs.type().describe());
  }
  if (options.num_decodes < 1) {
    throw_error<ConfigError>("num_decodes must be at least 1, not {}", options.num_decodes);
  }
  const int64_t b = inputs.dim(0), k = options.num_decodes;
  const int64_t length = options.max_decode_len.value_or(inputs.dim(1));
  if (length < 1) throw_error<ConfigError>("max_decode_len must be at least 1, not {}", length);
  const int64_t n = length + 1;
  const double alpha = options.alpha;
  const TensorType scores_type{DType::kFloat32, {b, k}}, sequences_type{DType::kInt32, {b, k, n}};
  const Cache expanded = expand_cache(cache, k);

  Tensor first = ops::iota(DType::kInt32, {b, k}, 1) == 0.0;
  const State init{.index = zeros({DType::kInt32, {}}),
                   .live_log_probs = ops::select(first, zeros(scores_type), kNegativeInfinity),
                   .live_sequences = zeros(sequences_type),
                   .finished_scores = full(scores_type, kNegativeInfinity),
                   .finished_sequences = zeros(sequences_type),
                   .finished = zeros({DType::kBool, {b, k}}),
                   .cache = expanded.entries};

  // Goes on while some example's best live decode could still beat its worst finished one.
  auto condition = [&](const Tensors& all) {
    const State s = State::unpack(all);
    Tensor longest = full({DType::kInt32, {}}, static_cast<double>(n));
    Tensor best_live = ops::slice_in_dim(s.live_log_probs, k - 1, k, 1) / brevity_penalty(longest, alpha);
    Tensor worst_finished = ops::reduce_min(s.finished_scores, {1}, /*keepdims=*/true);
    worst_finished = ops::select(s.finished, worst_finished, kNegativeInfinity);
    Tensor settled = ops::all(worst_finished > best_live);
    return ops::bit_and(s.index < static_cast<double>(n - 1), ops::bit_not(settled));
  };

  auto body = [&](const Tensors& all) {
    const State s = State::unpack(all);
    Tensor next = s.index + 1.0;
    Tensor ids = ops::reshape(ops::dynamic_slice_in_dim(s.live_sequences, s.index, 1, 2), {b * k, 1});
    auto [logits, new_cache] = tokens_to_logits(ids, s.cache, s.index);
    const int64_t vocab = check_step(logits, s.cache, new_cache, b * k);
    if (k * vocab < 2 * k) throw_error<ShapeError>("beam_search wants a vocabulary of at least 2 tokens");

    Tensor log_probs = ops::reshape(log_probabilities(logits), {b, k, vocab});
    log_probs = ops::reshape(log_probs + ops::expand_dims(s.live_log_probs, 2), {b, k * vocab});
    // 2k candidates: should the best k all end here, k others remain to go on with.
    auto [top_log_probs, top_index] = ops::top_k(log_probs, 2 * k);
    Tensor beams = top_index / static_cast<double>(vocab);
    Tensor ids2 = top_index - beams * static_cast<double>(vocab);

    // Inside a prompt the token is given and one beam stays alive.
    Tensor given = ops::dynamic_slice_in_dim(inputs, next, 1, 1);
    Tensor in_prompt = given != 0.0;
    Tensor one_beam = ops::select(ops::iota(DType::kInt32, {1, 2 * k}, 1) == 0.0,
                                  zeros({DType::kFloat32, {1, 2 * k}}), kNegativeInfinity);
    top_log_probs = ops::select(in_prompt, one_beam, top_log_probs);
    ids2 = ops::select(in_prompt, given, ids2);

    Tensor sequences = ops::gather_batched(s.live_sequences, beams);
    sequences = ops::dynamic_update_slice_in_dim(sequences, ops::expand_dims(ids2, 2), next, 2);
    Tensor ended = ids2 == static_cast<double>(options.eos_id);

    Tensor live_candidates = masked(top_log_probs, ended);
    Tensor live = best(live_candidates, k);
    Tensor scores = masked(top_log_probs / brevity_penalty(next, alpha), ops::bit_not(ended));
    Tensor all_sequences = ops::concatenate({s.finished_sequences, sequences}, 1);
    Tensor all_scores = ops::concatenate({s.finished_scores, scores}, 1);
    Tensor all_finished = ops::concatenate({s.finished, ended}, 1);
    Tensor done = best(all_scores, k);
    return State{.index = next,
                 .live_log_probs = ops::gather_batched(live_candidates, live),
                 .live_sequences = ops::gather_batched(sequences, live),
                 .finished_scores = ops::gather_batched(all_scores, done),
                 .finished_sequences = ops::gather_batched(all_sequences, done),
                 .finished = ops::gather_batched(all_finished, done),
                 .cache = gather_cache(new_cache, expanded.batch_axes, ops::gather_batched(beams, live))}
        .pack();
  };

  const State last = State::unpack(ops::while_loop(init.pack(), condition, body));
  Tensor any_finished = ops::reduce_or(last.finished, {1}, /*keepdims=*/true);
  Tensor sequences =
      ops::select(ops::expand_dims(any_finished, 2), last.finished_sequences, last.live_sequences);
  return {.sequences = ops::slice_in_dim(sequences, 1, n, 2),
          .scores = ops::select(any_finished, last.finished_scores, last.live_log_probs)};
}

}  // namespace t5x::decode
