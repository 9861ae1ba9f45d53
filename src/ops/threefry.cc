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

namespace t5x::ops {
namespace {

const TensorType kKeyType{DType::kUInt32, {2}};
const TensorType kWord{DType::kUInt32, {}};

TensorType words(const Shape& shape) { return {DType::kUInt32, shape}; }

std::string shape_suffix(const Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.dims(), "x"));
}

void check_key(const TensorType& type) {
  if (type != kKeyType) throw_error<ShapeError>("a random key is uint32(2), not {}", type.describe());
}

// Writes arithmetic on uint32 tensors of one shape.
class Words {
 public:
  Words(Emitter& emitter, const Shape& shape) : e_(emitter), type_(words(shape)) {}
  std::string binary(std::string_view operation, const std::string& a, const std::string& b) {
    return e_.op(fmt::format("stablehlo.{}", operation), {a, b}, {type_, type_}, "", type_);
  }
  const std::string& constant(uint32_t value) {
    std::string& name = constants_[value];
    if (name.empty()) name = e_.splat(type_, value);
    return name;
  }
  std::string rotate_left(const std::string& a, int by) {
    const std::string high = binary("shift_left", a, constant(static_cast<uint32_t>(by)));
    return binary("or", high, binary("shift_right_logical", a, constant(static_cast<uint32_t>(32 - by))));
  }
  std::string broadcast(const std::string& word) {
    if (type_.shape.rank() == 0) return word;
    return e_.op("stablehlo.broadcast_in_dim", {word}, {kWord}, "broadcast_dimensions = array<i64>", type_);
  }
  const TensorType& type() const { return type_; }

 private:
  Emitter& e_;
  TensorType type_;
  std::map<uint32_t, std::string> constants_;
};

std::string row(Emitter& e, const std::string& name, const TensorType& type, int64_t index) {
  std::vector<int64_t> starts(type.shape.rank(), 0), limits = type.shape.dims(),
                                                     strides(type.shape.rank(), 1);
  starts[0] = index;
  limits[0] = index + 1;
  std::vector<int64_t> dims = type.shape.dims();
  dims[0] = 1;
  const TensorType sliced{type.dtype, Shape(dims)};
  const std::string attributes =
      fmt::format("start_indices = {}, limit_indices = {}, strides = {}", to_mlir(Attribute(starts)),
                  to_mlir(Attribute(limits)), to_mlir(Attribute(strides)));
  const std::string slice = e.op("stablehlo.slice", {name}, {type}, attributes, sliced);
  dims.erase(dims.begin());
  return e.op("stablehlo.reshape", {slice}, {sliced}, "", {type.dtype, Shape(dims)});
}

// An empty name of the high words stands for zeros.
std::vector<std::string> threefry_rounds(Emitter& e, const Shape& shape, const std::string& key,
                                         const std::string& high, const std::string& low) {
  Words scalar(e, {}), w(e, shape);
  std::array<std::string, 3> schedule{row(e, key, kKeyType, 0), row(e, key, kKeyType, 1), ""};
  schedule[2] =
      scalar.binary("xor", scalar.binary("xor", schedule[0], schedule[1]), scalar.constant(kThreefryParity));
  const std::array<std::string, 3> wide{w.broadcast(schedule[0]), w.broadcast(schedule[1]),
                                        w.broadcast(schedule[2])};
  std::string a = high.empty() ? wide[0] : w.binary("add", high, wide[0]);
  std::string b = w.binary("add", low, wide[1]);
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kThreefryRotations[group % 2]) {
      a = w.binary("add", a, b);
      b = w.binary("xor", w.rotate_left(b, rotation), a);
    }
    a = w.binary("add", a, wide[(group + 1) % 3]);
    const std::string step = scalar.binary("add", schedule[(group + 2) % 3], scalar.constant(group + 1));
    b = w.binary("add", b, w.broadcast(step));
  }
  return {a, b};
}

// ---- threefry2x32(key, high, low) -> two words

std::vector<std::string> call_threefry(Emitter& e, const Shape& shape, const std::string& key,
                                       const std::string& high, const std::string& low) {
  const TensorType type = words(shape);
  return e.call("threefry2x32_" + shape_suffix(shape), {key, high, low}, {kKeyType, type, type}, {type, type},
                [&](const std::vector<std::string>& args) {
                  return threefry_rounds(e, shape, args[0], args[1], args[2]);
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

// ---- random_bits(key): element i is the exclusive or of the two words of threefry(key, i)

// Row-major positions of the elements, low and high words, built per axis so that a partitioner can split
// them. The high words are empty where all are zero.
std::pair<std::string, std::string> positions(Emitter& e, const Shape& shape) {
  const bool wide = shape.size() > (int64_t{1} << 32);
  const TensorType type{wide ? DType::kUInt64 : DType::kUInt32, shape};
  std::string sum;
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] > 1) {
      std::string term = e.op("stablehlo.iota", {}, {}, fmt::format("iota_dimension = {} : i64", axis), type);
      if (stride > 1) {
        const std::string factor = e.splat(type, static_cast<double>(stride));
        term = e.op("stablehlo.multiply", {term, factor}, {type, type}, "", type);
      }
      sum = sum.empty() ? term : e.op("stablehlo.add", {term, sum}, {type, type}, "", type);
    }
    stride *= shape[axis];
  }
  if (sum.empty()) return {"", e.splat(words(shape), 0)};
  if (!wide) return {"", sum};
  const std::string half = e.splat(type, 32);
  const std::string high = e.op("stablehlo.shift_right_logical", {sum, half}, {type, type}, "", type);
  return {e.op("stablehlo.convert", {high}, {type}, "", words(shape)),
          e.op("stablehlo.convert", {sum}, {type}, "", words(shape))};
}

const Primitive kRandomBits{
    .name = "random_bits",
    .infer =
        [](const InferContext& c) {
          check_key(c.inputs[0]);
          return std::vector<TensorType>{words(std::any_cast<const Shape&>(c.extra))};
        },
    .vjp = no_gradient,
    .emit =
        [](Emitter& e, const Node& node) {
          const TensorType type = e.type(node.results[0]);
          const auto body = [&](const std::vector<std::string>& args) {
            const auto [high, low] = positions(e, type.shape);
            const std::vector<std::string> out = threefry_rounds(e, type.shape, args[0], high, low);
            return std::vector<std::string>{Words(e, type.shape).binary("xor", out[0], out[1])};
          };
          e.bind(node.results[0], e.call("random_bits_" + shape_suffix(type.shape), {e.name(node.inputs[0])},
                                         {kKeyType}, {type}, body)[0]);
        }};

// ---- fold_in(key, constant)

// The constants that a graph folds into one key are folded together, where the first of them is printed.
struct FoldedKeys {
  std::string name;  // [n, 2]
  TensorType type;
  std::map<uint32_t, int64_t> rows;
};

extern const Primitive kFoldIn;

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
  const Array data = Array::from<uint32_t>(constants, {n});
  const std::string low = e.op("stablehlo.constant", {}, {}, "value = " + to_mlir(Attribute(data)), column);
  std::vector<std::string> out = call_threefry(e, {n}, e.name(key), e.splat(column, 0), low);
  for (std::string& half : out) half = e.op("stablehlo.reshape", {half}, {column}, "", pair);
  folded.name = e.op("stablehlo.concatenate", out, {pair, pair}, "dimension = 1 : i64", folded.type);
  return folded;
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
                              std::any& memo = e.memo(kFoldIn, node.inputs[0]);
                              if (!memo.has_value()) memo = fold_all(e, node.inputs[0]);
                              const auto& folded = std::any_cast<const FoldedKeys&>(memo);
                              const int64_t index = folded.rows.at(std::any_cast<uint32_t>(node.extra));
                              e.bind(node.results[0], row(e, folded.name, folded.type, index));
                            }};

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
