// The primitives under random.h. Each prints threefry as a private function of the module, one per shape: the
// compiler inlines it, and the text stays short.
#include "ops/threefry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "graph/emitter.h"
#include "graph/primitive.h"
#include "ops/random.h"
#include "ops/threefry_text.h"

namespace t5x::ops {
namespace {

std::string shape_suffix(const Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.dims(), "x"));
}

void check_key(const TensorType& type) {
  if (type != kKeyType) throw_error<ShapeError>("a random key is uint32(2), not {}", type.describe());
}

// ---- threefry2x32(key, high, low) -> two words

std::vector<std::string> call_threefry(Emitter& e, const Shape& shape, const std::string& key,
                                       const std::string& high, const std::string& low) {
  const TensorType type = words(shape);
  return e.call("threefry2x32_" + shape_suffix(shape), {key, high, low}, {kKeyType, type, type}, {type, type},
                [&](const std::vector<std::string>& args) {
                  const auto [a, b] = threefry_rounds(e, shape, args[0], args[1], args[2]);
                  return std::vector<std::string>{a, b};
                });
}

const Primitive kThreefry{.name = "threefry2x32",
                          .infer =
                              [](const InferContext& c) {
                                check_key(c.inputs[0]);
                                if (c.inputs[1].dtype != DType::kUInt32 || c.inputs[1] != c.inputs[2]) {
                                  throw_error<ShapeError>(
                                      "threefry2x32 takes two uint32 tensors of one shape, got {} and {}",
                                      c.inputs[1].describe(), c.inputs[2].describe());
                                }
                                return std::vector<TensorType>{c.inputs[1], c.inputs[1]};
                              },
                          .vjp = no_gradient,
                          .emit =
                              [](Emitter& e, const Node& node) {
                                const std::vector<std::string> in = e.names(node.inputs);
                                const std::vector<std::string> out =
                                    call_threefry(e, e.type(node.results[0]).shape, in[0], in[1], in[2]);
                                e.bind(node.results[0], out[0]);
                                e.bind(node.results[1], out[1]);
                              }};

// ---- fold_in(key, constant)

// The constants that a graph folds into one key are folded together, where the first of them is printed.
struct FoldedKeys {
  std::string name;  // [n, 2]
  TensorType type;
  std::map<uint32_t, int64_t> rows;
};

extern const Primitive kFoldIn;

// The words of threefry(key, [0, constant]) for every constant: two tensors [n].
std::vector<std::string> fold_constants(Emitter& e, ValueId key, const std::vector<uint32_t>& constants) {
  const auto n = static_cast<int64_t>(constants.size());
  const Array data = Array::from<uint32_t>(constants, {n});
  const std::string low =
      e.op("stablehlo.constant", {}, {}, "value = " + to_mlir(Attribute(data)), words({n}));
  return call_threefry(e, {n}, e.name(key), e.splat(words({n}), 0), low);
}

FoldedKeys fold_all(Emitter& e, ValueId key) {
  FoldedKeys folded;
  std::vector<uint32_t> constants;
  for (const Node& node : e.graph().nodes()) {
    if (node.primitive != &kFoldIn || node.inputs[0] != key || !e.is_live(node.results[0])) continue;
    const auto data = std::any_cast<uint32_t>(node.extra);
    if (folded.rows.emplace(data, static_cast<int64_t>(constants.size())).second) constants.push_back(data);
  }
  const auto n = static_cast<int64_t>(constants.size());
  const TensorType column = words({n}), pair = words({n, 1});
  folded.type = words({n, 2});
  std::vector<std::string> out = fold_constants(e, key, constants);
  for (std::string& half : out) half = e.op("stablehlo.reshape", {half}, {column}, "", pair);
  folded.name = e.op("stablehlo.concatenate", out, {pair, pair}, "dimension = 1 : i64", folded.type);
  return folded;
}

const FoldedKeys& folded_keys(Emitter& e, ValueId key) {
  std::any& memo = e.memo(kFoldIn, key);
  if (!memo.has_value()) memo = fold_all(e, key);
  return std::any_cast<const FoldedKeys&>(memo);
}

const Primitive kFoldIn{.name = "fold_in",
                        .infer =
                            [](const InferContext& c) {
                              check_key(c.inputs[0]);
                              return std::vector<TensorType>{kKeyType};
                            },
                        .vjp = no_gradient,
                        .emit =
                            [](Emitter& e, const Node& node) {
                              const FoldedKeys& folded = folded_keys(e, node.inputs[0]);
                              const int64_t index = folded.rows.at(std::any_cast<uint32_t>(node.extra));
                              e.bind(node.results[0], element_at(e, folded.name, folded.type, 0, index));
                            }};

// ---- random_bits(key): element i is the exclusive or of the two words of threefry(key, i)

std::string call_bits(Emitter& e, const Shape& shape, const std::string& key) {
  const auto body = [&](const std::vector<std::string>& args) {
    const auto [high, low] = positions(e, shape, 0);
    const auto [a, b] = threefry_rounds(e, shape, args[0], high, low);
    return std::vector<std::string>{Words(e, shape).binary("xor", a, b)};
  };
  return e.call("random_bits_" + shape_suffix(shape), {key}, {kKeyType}, {words(shape)}, body)[0];
}

// Bits of one shape for each of n keys.
std::vector<std::string> call_bits_of_keys(Emitter& e, const Shape& shape, const KeyWords& keys) {
  const int64_t n = keys.shape[0];
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin(), n);
  const Shape whole(dims);
  const std::vector<TensorType> results(static_cast<size_t>(n), words(shape));
  return e.call("random_bits_of_keys_" + shape_suffix(whole), {keys.first, keys.second},
                {words(keys.shape), words(keys.shape)}, results, [&](const std::vector<std::string>& args) {
                  return threefry_rows(e, whole, {args[0], args[1], keys.shape});
                });
}

// Draws of one shape under keys that were folded from the same one, such as the dropout masks of a model, are
// made together while they are small: one loop to compile instead of one per draw.
constexpr int64_t kMaxSharedWords = int64_t{1} << 20;

using SharedBits = std::map<ValueId, std::string>;  // names by the node's result; empty: not shared

extern const Primitive kRandomBits;

const Node* folding(const Graph& graph, ValueId key) {
  const int64_t producer = graph.producer(key);
  if (producer < 0) return nullptr;
  const Node& node = graph.nodes()[static_cast<size_t>(producer)];
  return node.primitive == &kFoldIn ? &node : nullptr;
}

SharedBits share_bits(Emitter& e, ValueId base, const Shape& shape) {
  std::vector<ValueId> results;
  std::vector<uint32_t> constants;
  for (const Node& node : e.graph().nodes()) {
    if (node.primitive != &kRandomBits || !e.is_live(node.results[0])) continue;
    const Node* fold = folding(e.graph(), node.inputs[0]);
    if (fold == nullptr || fold->inputs[0] != base || e.type(node.results[0]).shape != shape) continue;
    results.push_back(node.results[0]);
    constants.push_back(std::any_cast<uint32_t>(fold->extra));
  }
  const auto n = static_cast<int64_t>(constants.size());
  if (n < 2 || n * shape.size() > kMaxSharedWords) return {};
  const std::vector<std::string> keys = fold_constants(e, base, constants);
  const std::vector<std::string> names = call_bits_of_keys(e, shape, {keys[0], keys[1], Shape{n}});
  SharedBits shared;
  for (size_t i = 0; i < results.size(); ++i) shared[results[i]] = names[i];
  return shared;
}

void emit_random_bits(Emitter& e, const Node& node) {
  const ValueId result = node.results[0];
  const Shape& shape = e.type(result).shape;
  if (const Node* fold = folding(e.graph(), node.inputs[0])) {
    std::any& memo = e.memo(kRandomBits, fold->inputs[0]);
    if (!memo.has_value()) memo = std::map<std::vector<int64_t>, SharedBits>();
    auto& by_shape = std::any_cast<std::map<std::vector<int64_t>, SharedBits>&>(memo);
    auto found = by_shape.find(shape.dims());
    if (found == by_shape.end())
      found = by_shape.emplace(shape.dims(), share_bits(e, fold->inputs[0], shape)).first;
    auto shared = found->second.find(result);
    if (shared != found->second.end()) {
      e.bind(result, shared->second);
      return;
    }
  }
  e.bind(result, call_bits(e, shape, e.name(node.inputs[0])));
}

const Primitive kRandomBits{.name = "random_bits",
                            .infer =
                                [](const InferContext& c) {
                                  check_key(c.inputs[0]);
                                  return std::vector<TensorType>{words(std::any_cast<const Shape&>(c.extra))};
                                },
                            .vjp = no_gradient,
                            .emit = emit_random_bits};

// ---- hardware_bits(key)

// The generator's state is two 64-bit words: the key twice, as jax.random's 'rbg' seeds it.
const Primitive kHardwareBits{
    .name = "stablehlo.rng_bit_generator",
    .infer =
        [](const InferContext& c) {
          check_key(c.inputs[0]);
          return std::vector<TensorType>{words(std::any_cast<const Shape&>(c.extra))};
        },
    .vjp = no_gradient,
    .emit =
        [](Emitter& e, const Node& node) {
          const TensorType twice = words({4}), pairs = words({2, 2}), state{DType::kUInt64, {2}};
          const std::string key = e.name(node.inputs[0]);
          std::string seed =
              e.op("stablehlo.concatenate", {key, key}, {kKeyType, kKeyType}, "dimension = 0 : i64", twice);
          seed = e.op("stablehlo.reshape", {seed}, {twice}, "", pairs);
          seed = e.op("stablehlo.bitcast_convert", {seed}, {pairs}, "", state);
          const std::vector<TensorType> results{state, e.type(node.results[0])};
          e.bind(node.results[0], e.op("stablehlo.rng_bit_generator", {seed}, {state},
                                       "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>", results)[1]);
        }};

}  // namespace

bool is_key_derivation(const Node& node) { return node.primitive == &kFoldIn; }

std::pair<Tensor, Tensor> threefry2x32(Tensor key, Tensor x0, Tensor x1) {
  const std::vector<Tensor> out = apply_multi({.primitive = kThreefry, .inputs = {key, x0, x1}});
  return {out[0], out[1]};
}

Tensor fold_in(Tensor key, uint32_t data) {
  return apply({.primitive = kFoldIn, .inputs = {key}, .extra = data});
}

Tensor random_bits(Tensor key, const Shape& shape) {
  return apply({.primitive = kRandomBits, .inputs = {key}, .extra = shape});
}

Tensor hardware_bits(Tensor key, const Shape& shape) {
  return apply({.primitive = kHardwareBits, .inputs = {key}, .extra = shape});
}

}  // namespace t5x::ops
