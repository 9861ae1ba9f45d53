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

std::string Words::rotate_left(const std::string& a, int by) {
  const std::string high = binary("shift_left", a, constant(static_cast<uint32_t>(by)));
  return binary("or", high, binary("shift_right_logical", a, constant(static_cast<uint32_t>(32 - by))));
}

std::string Words::broadcast(const std::string& word, const TensorType& from) {
  if (from == type_) return word;
  std::vector<int64_t> axes(from.shape.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return e_.op("stablehlo.broadcast_in_dim", {word}, {from},
               "broadcast_dimensions = " + to_mlir(Attribute(axes)), type_);
}

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

std::string element_at(Emitter& e, const std::string& name, const TensorType& type, size_t axis,
                       int64_t index) {
  const std::string slice = slice_at(e, name, type, axis, index);
  std::vector<int64_t> with = type.shape.dims(), without = with;
  with[axis] = 1;
  without.erase(without.begin() + static_cast<long>(axis));
  return e.op("stablehlo.reshape", {slice}, {{type.dtype, Shape(with)}}, "",
              TensorType{type.dtype, Shape(without)});
}

std::pair<std::string, std::string> threefry_rounds(Emitter& e, const Shape& shape, const std::string& key,
                                                    const TensorType& key_type, const std::string& high,
                                                    const std::string& low) {
  const size_t axis = key_type.shape.rank() - 1;
  const Shape keys(std::vector<int64_t>(key_type.shape.begin(), key_type.shape.end() - 1));
  Words k(e, keys), w(e, shape);
  std::array<std::string, 3> schedule{element_at(e, key, key_type, axis, 0),
                                      element_at(e, key, key_type, axis, 1), ""};
  schedule[2] = k.binary("xor", k.binary("xor", schedule[0], schedule[1]), k.constant(kThreefryParity));
  std::array<std::string, 3> wide;
  for (size_t i = 0; i < 3; ++i) wide[i] = w.broadcast(schedule[i], k.type());
  std::string a = high.empty() ? wide[0] : w.binary("add", high, wide[0]);
  std::string b = w.binary("add", low, wide[1]);
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kThreefryRotations[group % 2]) {
      a = w.binary("add", a, b);
      b = w.binary("xor", w.rotate_left(b, rotation), a);
    }
    a = w.binary("add", a, wide[(group + 1) % 3]);
    const std::string step = k.binary("add", schedule[(group + 2) % 3], k.constant(group + 1));
    b = w.binary("add", b, w.broadcast(step, k.type()));
  }
  return {a, b};
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
