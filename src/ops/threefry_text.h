// Printing the arithmetic of threefry-2x32 as StableHLO.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/emitter.h"

namespace t5x::ops {

const TensorType kKeyType{DType::kUInt32, {2}};
inline TensorType words(const Shape& shape) { return {DType::kUInt32, shape}; }

// Writes arithmetic on uint32 tensors of one shape.
class Words {
 public:
  Words(Emitter& emitter, const Shape& shape) : e_(emitter), type_(words(shape)) {}
  std::string binary(std::string_view operation, const std::string& a, const std::string& b);
  const std::string& constant(uint32_t value);
  // Of a tensor with the leading axes only.
  std::string broadcast(const std::string& word, const TensorType& from);
  const TensorType& type() const { return type_; }

 private:
  Emitter& e_;
  TensorType type_;
  std::map<uint32_t, std::string> constants_;
};

// Element `index` of an axis, without that axis.
std::string element_at(Emitter& e, const std::string& name, const TensorType& type, size_t axis,
                       int64_t index);

// The two words of one key, or of n keys: names of tensors of `shape`, () or [n].
struct KeyWords {
  std::string first, second;
  Shape shape;
};

// The two output words for counters of `shape` under one key. An empty name of the high words stands for
// zeros.
std::pair<std::string, std::string> threefry_rounds(Emitter& e, const Shape& shape, const std::string& key,
                                                    const std::string& high, const std::string& low);

// Random bits, the exclusive or of the two words, for n keys: n tensors that make up `shape` [n, ...]. The
// counters of every key start at zero.
std::vector<std::string> threefry_rows(Emitter& e, const Shape& shape, const KeyWords& keys);

// Row-major positions of the elements behind axis `first`, high and low words, built per axis so that a
// partitioner can split them. The high words are empty where all are zero.
std::pair<std::string, std::string> positions(Emitter& e, const Shape& shape, size_t first);

}  // namespace t5x::ops
