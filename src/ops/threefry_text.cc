#include "ops/threefry_text.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <numeric>

#include "ops/threefry.h"

namespace t5x::ops {

std::string Words::binary(std::string_view operation, const std::string& a, const std::string& b) {
  return e_.op(fmt::format("stablehlo.{}", operation), {a, b}, {type_, type_}, "", type_);
}

const std::string& Words::constant(uint32_t value) {
  std::string& name = constants_[value];
  if (name.empty()) name = e_.splat(type_, value);
  return name;
}

std::string Words::broadcast(const std::string& word, const TensorType& from) {
  if (from == type_) return word;
  std::vector<int64_t> axes(from.shape.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return e_.op("stablehlo.broadcast_in_dim", {word}, {from},
               "broadcast_dimensions = " + to_mlir(Attribute(axes)), type_);
}

namespace {

// Element `index` of an axis, which stays with size 1.
std::string slice_at(Emitter& e, const std::string& name, const TensorType& type, size_t axis,
                     int64_t index) {
  std::vector<int64_t> starts(type.shape.rank(), 0), limits = type.shape.dims(),
                                                     strides(type.shape.rank(), 1);
  starts[axis] = index;
  limits[axis] = index + 1;
  std::vector<int64_t> dims = type.shape.dims();
  dims[axis] = 1;
  const std::string attributes =
      fmt::format("start_indices = {}, limit_indices = {}, strides = {}", to_mlir(Attribute(starts)),
                  to_mlir(Attribute(limits)), to_mlir(Attribute(strides)));
  return e.op("stablehlo.slice", {name}, {type}, attributes, {type.dtype, Shape(dims)});
}

}  // namespace

std::string element_at(Emitter& e, const std::string& name, const TensorType& type, size_t axis,
                       int64_t index) {
  const std::string slice = slice_at(e, name, type, axis, index);
  std::vector<int64_t> with = type.shape.dims(), without = with;
  with[axis] = 1;
  without.erase(without.begin() + static_cast<long>(axis));
  return e.op("stablehlo.reshape", {slice}, {{type.dtype, Shape(with)}}, "",
              TensorType{type.dtype, Shape(without)});
}

namespace {

// Four mixing steps and the injection of two key words. `odd` is a bool scalar: it chooses the rotations.
std::pair<std::string, std::string> mix(Words& w, Emitter& e, const std::string& odd, std::string a,
                                        std::string b, const std::string& first_key,
                                        const std::string& second_key) {
  const TensorType scalar = words({}), predicate{DType::kBool, {}};
  for (size_t i = 0; i < 4; ++i) {
    auto amount = [&](bool right) {
      auto bits = [&](size_t set) {
        const int by = kThreefryRotations[set][i];
        return e.splat(scalar, right ? 32 - by : by);
      };
      const std::string chosen =
          e.op("stablehlo.select", {odd, bits(1), bits(0)}, {predicate, scalar, scalar}, "", scalar);
      return w.broadcast(chosen, scalar);
    };
    a = w.binary("add", a, b);
    const std::string high = w.binary("shift_left", b, amount(false));
    b = w.binary("xor", w.binary("or", high, w.binary("shift_right_logical", b, amount(true))), a);
  }
  return {w.binary("add", a, first_key), w.binary("add", b, second_key)};
}

// A loop over the five groups of rounds. What a loop carries is stored, so the compiler cannot compute the
// words again at every reader, as it does with straight-line code: for the dropout masks of a train step of
// T5 small that took two thirds of the compile time. With `num_rows` the results are the rows of the
// exclusive or of both words, sliced at indices that the loop carries as well: readers of slices at constants
// would compile to a kernel each, readers of slices at indices that only the run knows are one kernel.
std::vector<std::string> threefry_loop(Emitter& e, const Shape& shape, const KeyWords& key,
                                       const std::string& high, const std::string& low, int64_t num_rows) {
  Words k(e, key.shape), w(e, shape);
  const std::string parity =
      k.binary("xor", k.binary("xor", key.first, key.second), k.constant(kThreefryParity));
  const std::string wide = w.broadcast(key.first, k.type());
  const std::string a = high.empty() ? wide : w.binary("add", high, wide);
  const std::string b = w.binary("add", low, w.broadcast(key.second, k.type()));

  // Carried: the group, both words, the key words in the order in which the group injects them, the rows.
  const TensorType counter = words({}), predicate{DType::kBool, {}};
  std::vector<TensorType> types{counter, w.type(), w.type(), k.type(), k.type(), k.type()};
  std::vector<std::string> init{e.splat(counter, 0), a, b, key.second, parity, key.first};
  for (int64_t i = 0; i < num_rows; ++i) {
    types.push_back(counter);
    init.push_back(e.splat(counter, static_cast<double>(i)));
  }
  const std::string loop = e.begin_op("stablehlo.while", init, types.size());
  auto compare = [&](const std::string& x, const std::string& y, std::string_view direction) {
    return e.op("stablehlo.compare", {x, y}, {counter, counter},
                fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = "
                            "#stablehlo<comparison_type UNSIGNED>",
                            direction),
                predicate);
  };
  std::vector<std::string> args = e.begin_block(types);
  e.end_block({compare(args[0], e.splat(counter, 5), "LT")}, {predicate});
  args = e.begin_block(types, false);
  Words inner(e, shape), inner_keys(e, key.shape), scalar(e, {});
  const std::string next = scalar.binary("add", args[0], scalar.constant(1));
  const std::string odd =
      compare(scalar.binary("and", args[0], scalar.constant(1)), scalar.constant(1), "EQ");
  const std::string second = inner_keys.binary("add", args[4], inner_keys.broadcast(next, counter));
  const auto [mixed_a, mixed_b] = mix(inner, e, odd, args[1], args[2], inner.broadcast(args[3], k.type()),
                                      inner.broadcast(second, k.type()));
  std::vector<std::string> results{next, mixed_a, mixed_b, args[4], args[5], args[3]};
  // Zero, which the compiler does not know.
  const std::string drift = scalar.binary("shift_right_logical", args[0], scalar.constant(3));
  for (size_t i = 6; i < args.size(); ++i) results.push_back(scalar.binary("add", args[i], drift));
  e.end_block(results, types);
  e.end_op("", types, types);
  if (num_rows == 0) return {loop + "#1", loop + "#2"};

  const std::string bits = w.binary("xor", loop + "#1", loop + "#2");
  std::vector<int64_t> sizes = shape.dims();
  sizes[0] = 1;
  const TensorType slice = words(Shape(sizes)),
                   row = words(Shape(std::vector<int64_t>(sizes.begin() + 1, sizes.end())));
  const std::string zero = e.splat(counter, 0);
  std::vector<TensorType> operand_types(shape.rank() + 1, counter);
  operand_types[0] = w.type();
  std::vector<std::string> rows;
  for (int64_t i = 0; i < num_rows; ++i) {
    std::vector<std::string> operands(shape.rank() + 1, zero);
    operands[0] = bits;
    operands[1] = fmt::format("{}#{}", loop, 6 + i);
    const std::string part = e.op("stablehlo.dynamic_slice", operands, operand_types,
                                  "slice_sizes = " + to_mlir(Attribute(sizes)), slice);
    rows.push_back(e.op("stablehlo.reshape", {part}, {slice}, "", row));
  }
  return rows;
}

}  // namespace

KeyWords key_words(Emitter& e, const std::string& key) {
  return {element_at(e, key, kKeyType, 0, 0), element_at(e, key, kKeyType, 0, 1), Shape{}};
}

std::pair<std::string, std::string> threefry_rounds(Emitter& e, const Shape& shape, const std::string& key,
                                                    const std::string& high, const std::string& low) {
  const std::vector<std::string> out = threefry_loop(e, shape, key_words(e, key), high, low, 0);
  return {out[0], out[1]};
}

std::vector<std::string> threefry_rows(Emitter& e, const Shape& shape, const KeyWords& keys) {
  const auto [high, low] = positions(e, shape, 1);
  return threefry_loop(e, shape, keys, high, low, shape[0]);
}

std::pair<std::string, std::string> positions(Emitter& e, const Shape& shape, size_t first) {
  const int64_t size =
      std::accumulate(shape.begin() + static_cast<long>(first), shape.end(), int64_t{1}, std::multiplies<>());
  const bool wide = size > (int64_t{1} << 32);
  const TensorType type{wide ? DType::kUInt64 : DType::kUInt32, shape};
  std::string sum;
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > first;) {
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

}  // namespace t5x::ops
