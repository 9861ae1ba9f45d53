#include "decode/sample.h"

#include <algorithm>

#include "base/error.h"
#include "graph/trace.h"
#include "ops/ops.h"

namespace t5x::decode {

namespace {

constexpr double kNegativeInfinity = -1.0e7;
constexpr double kMinTemperature = 1e-4;

struct State {
  Tensor step;       // int32 scalar
  Tensor position;   // int32 [r]: the position whose token is fed next
  Tensor sequences;  // int32 [r, length + 2]: start token, tokens, one place for what nobody reads
  Tensor token;      // int32 [r, 1]
  Tensor ended;      // bool [r]
  Tensor rng;        // uint32 [2]
  Tensor log_prob;   // float32 [r]
  Tensors cache;

  Tensors pack() const {
    Tensors all = {step, position, sequences, token, ended, rng, log_prob};
    all.insert(all.end(), cache.begin(), cache.end());
    return all;
  }
  static State unpack(const Tensors& all) {
    return {all[0], all[1], all[2], all[3], all[4], all[5], all[6], Tensors(all.begin() + 7, all.end())};
  }
};

struct Choice {
  Tensor token;     // int32 [r]
  Tensor log_prob;  // float32 [r]
};

// x[r, index[r]]
Tensor pick(Tensor x, Tensor index) {
  return ops::squeeze(ops::take_along_axis(x, ops::expand_dims(index, 1), 1), 1);
}

Choice greedy(Tensor logits, const SampleOptions& options) {
  Choice choice{.token = ops::argmax(logits, -1), .log_prob = {}};
  choice.log_prob = options.rescale_log_probs ? zeros({DType::kFloat32, {logits.dim(0)}})
                                              : pick(log_probabilities(logits), choice.token);
  return choice;
}

// `temperature`: a number for all rows, or [r, 1]. Rows with temperatures of their own share one row of
// noise, as t5x's do.
Choice sampled(Tensor logits, Tensor temperature, bool shared_noise, const SampleOptions& options,
               Tensor key) {
  Tensor scaled = logits / temperature;
  if (options.topk > 0) scaled = topk_mask(scaled, options.topk);
  if (options.topp > 0) scaled = topp_mask(scaled, options.topp);
  Choice choice;
  if (shared_noise) {
    choice.token = ops::argmax(ops::gumbel(key, {1, logits.dim(1)}) + scaled, -1);
  } else {
    choice.token = ops::categorical(key, scaled);
  }
  choice.log_prob = pick(log_probabilities(options.rescale_log_probs ? scaled : logits), choice.token);
  return choice;
}

Tensor count_equal(Tensor sequences, int64_t token) {
  return ops::reduce_sum(ops::convert(sequences == static_cast<double>(token), DType::kInt32), {1});
}

void check(Tensor inputs, const SampleOptions& options, Tensor initial_index, Tensor temperatures) {
  if (inputs.rank() != 2 || inputs.dtype() != DType::kInt32 || inputs.dim(1) < 1) {
    throw_error<ShapeError>("temperature_sample wants inputs int32(batch, length), got {}",
                            inputs.type().describe());
  }
  const Shape batch{inputs.dim(0)};
  if (initial_index && (initial_index.shape() != batch || initial_index.dtype() != DType::kInt32)) {
    throw_error<ShapeError>("initial_index must be int32{}, not {}", batch.to_string(),
                            initial_index.type().describe());
  }
  if (temperatures && temperatures.shape() != batch) {
    throw_error<ShapeError>("temperatures must have the shape {}, not {}", batch.to_string(),
                            temperatures.shape().to_string());
  }
  if (options.num_decodes < 1) {
    throw_error<ConfigError>("num_decodes must be at least 1, not {}", options.num_decodes);
  }
  if (options.topk < 0 || options.topp < 0) {
    throw_error<ConfigError>("topk and topp must not be negative: topk {}, topp {}", options.topk,
                             options.topp);
  }
  if (options.topk > 0 && options.topp > 0) {
    throw_error<ConfigError>("set topk or topp, not both: topk is {}, topp is {}; 0 turns one off",
                             options.topk, options.topp);
  }
}

// How many steps beyond the prompt may be taken, if that is limited at all.
std::optional<int64_t> step_limit(const SampleOptions& options, int64_t length) {
  std::optional<int64_t> steps = options.max_decode_steps;
  if (steps && options.max_decode_steps_hard_limit.value_or(0) > 0) {
    steps = std::min(*steps, *options.max_decode_steps_hard_limit);
  }
  if (steps && *steps > length) {
    throw_error<ConfigError>("max_decode_steps is {}, but the sequences have only {} tokens", *steps, length);
  }
  return steps;
}

// Ascending by score.
Decoded sorted(Tensor sequences, Tensor scores) {
  if (scores.dim(1) == 1) return {sequences, scores};
  Tensor order = ops::sort({scores, ops::iota(DType::kInt32, scores.shape(), 1)}, 1)[1];
  return {ops::gather_batched(sequences, order), ops::gather_batched(scores, order)};
}

}  // namespace

Tensor topk_mask(Tensor logits, int64_t k) {
  const int64_t vocab = logits.dim(-1);
  if (k >= vocab) return logits;
  Tensor kth = ops::slice_in_dim(ops::top_k(logits, k).first, k - 1, k, -1);
  return ops::select(logits >= kth, logits, kNegativeInfinity);
}

Tensor topp_mask(Tensor logits, double p) {
  // The largest threshold such that the probabilities not below it sum to p, found bit by bit: floats that
  // are not negative are ordered as their bits are. 31 sums are cheaper than sorting a vocabulary.
  Tensor probs = ops::softmax(ops::convert(logits, DType::kFloat32), -1);
  const Shape rows{logits.dim(0), 1};
  auto condition = [](const Tensors& s) { return s[1] != 0.0; };
  auto body = [&](const Tensors& s) {
    Tensor candidate = ops::bit_or(s[0], ops::broadcast_to(s[1], rows));
    Tensor kept = ops::select(probs >= ops::bitcast_convert(candidate, DType::kFloat32), probs, 0.0);
    Tensor enough = ops::reduce_sum(kept, {1}, /*keepdims=*/true) >= p;
    return Tensors{ops::select(enough, candidate, s[0]),
                   ops::shift_right_logical(s[1], full({DType::kInt32, {}}, 1.0))};
  };
  Tensor bits =
      ops::while_loop({zeros({DType::kInt32, rows}), full({DType::kInt32, {}}, 1 << 30)}, condition, body)[0];
  return ops::select(probs >= ops::bitcast_convert(bits, DType::kFloat32), logits, kNegativeInfinity);
}

Decoded temperature_sample(Tensor inputs, const Cache& cache, const TokensToLogits& tokens_to_logits,
                           const SampleOptions& options, Tensor rng, Tensor initial_index,
                           Tensor temperatures) {
  NameScope scope("temperature_sample");
  check(inputs, options, initial_index, temperatures);
  const int64_t b = inputs.dim(0), length = inputs.dim(1), n = options.num_decodes, rows = b * n;
  const std::optional<int64_t> steps = step_limit(options, length);
  const Cache expanded = expand_cache(cache, n);
  const TensorType counts{DType::kInt32, {rows}};

  Tensor prompt = ops::pad(expand_batch(inputs, n), 0.0, {0, 0}, {0, 2});
  Tensor limit = full(counts, static_cast<double>(length));
  if (steps) {
    Tensor given = ops::reduce_sum(ops::convert(prompt != 0.0, DType::kInt32), {1});
    limit = ops::minimum(given + static_cast<double>(*steps), limit);
  }
  Tensor start = initial_index ? expand_batch(initial_index, n) : zeros(counts);
  Tensor eos_in_prompt = count_equal(prompt, options.eos_id);
  if (temperatures) {
    temperatures = ops::expand_dims(expand_batch(ops::convert(temperatures, DType::kFloat32), n), 1);
  }
  const State init{
      .step = zeros({DType::kInt32, {}}),
      .position = start,
      .sequences = prompt,
      .token = initial_index ? ops::take_along_axis(prompt, ops::expand_dims(start, 1), 1)
                             : zeros({DType::kInt32, {rows, 1}}),
      .ended = zeros({DType::kBool, {rows}}),
      .rng = rng ? rng : zeros({DType::kUInt32, {2}}),
      .log_prob = zeros({DType::kFloat32, {rows}}),
      .cache = expanded.entries,
  };

  auto condition = [](const Tensors& all) { return ops::bit_not(ops::all(State::unpack(all).ended)); };

  auto body = [&](const Tensors& all) {
    const State s = State::unpack(all);
    Tensor keys = ops::split(s.rng, 2);
    Tensor key = ops::reshape(ops::slice_in_dim(keys, 0, 1, 0), {2});
    // The cache fills step by step, also for rows that have ended and stay where they are.
    Tensor index = initial_index ? start + s.step : s.step;
    auto [raw_logits, new_cache] = tokens_to_logits(s.token, s.cache, index);
    check_step(raw_logits, s.cache, new_cache, rows);
    Tensor logits = ops::convert(raw_logits, DType::kFloat32);

    Choice choice;
    if (temperatures) {
      const Choice cold = greedy(logits, options);
      const Choice warm =
          sampled(logits, ops::maximum(temperatures, kMinTemperature), /*shared_noise=*/true, options, key);
      Tensor is_warm = ops::squeeze(temperatures, 1) > kMinTemperature;
      choice = {.token = ops::select(is_warm, warm.token, cold.token),
                .log_prob = ops::select(is_warm, warm.log_prob, cold.log_prob)};
    } else if (options.temperature > kMinTemperature) {
      Tensor temperature = full({DType::kFloat32, {}}, options.temperature);
      choice = sampled(logits, temperature, /*shared_noise=*/false, options, key);
    } else {
      choice = greedy(logits, options);
    }

    // Rows at their limit write to the place that nobody reads until all rows end.
    Tensor position = ops::minimum(s.position, limit);
    Tensor next = position + 1.0;
    Tensor given = pick(s.sequences, next);
    Tensor free = given == 0.0;
    Tensor token = ops::select(free, choice.token, given);
    Tensor counted = ops::bit_and(free, ops::bit_not(s.ended));
    Tensor log_prob = s.log_prob + ops::select(counted, choice.log_prob, 0.0);
    token = ops::select(s.ended, zeros(counts), token);
    Tensor here = ops::iota(DType::kInt32, s.sequences.shape(), 1) == ops::expand_dims(next, 1);
    Tensor sequences = ops::select(here, ops::expand_dims(token, 1), s.sequences);
    Tensor ended =
        ops::bit_or(count_equal(sequences, options.eos_id) > eos_in_prompt, position >= limit - 1.0);
    return State{.step = s.step + 1.0,
                 .position = next,
                 .sequences = sequences,
                 .token = ops::expand_dims(token, 1),
                 .ended = ops::bit_or(s.ended, ended),
                 .rng = ops::reshape(ops::slice_in_dim(keys, 1, 2, 0), {2}),
                 .log_prob = log_prob,
                 .cache = new_cache}
        .pack();
  };

  const State last = State::unpack(ops::while_loop(init.pack(), condition, body));
  return sorted(ops::reshape(ops::slice_in_dim(last.sequences, 1, length + 1, 1), {b, n, length}),
                ops::reshape(last.log_prob, {b, n}));
}

}  // namespace t5x::decode
