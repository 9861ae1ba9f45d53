// The values of flax.serialization's msgpack: plain msgpack
// (https://github.com/msgpack/msgpack/blob/master/spec.md) whose maps have string keys, and flax's three
// extension types: 1 an ndarray, 2 a Python complex, 3 a NumPy scalar. Types 1 and 3 hold a nested message
// [shape, dtype name, bytes].
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/array.h"

namespace t5x::checkpoint {

struct MsgpackValue;
struct MsgpackEntry;
struct MsgpackBytes {
  std::string bytes;
};
struct NumpyScalar {
  Array array;  // rank 0
};
using MsgpackList = std::vector<MsgpackValue>;
// In the order of the file.
using MsgpackMap = std::vector<MsgpackEntry>;

struct MsgpackValue {
  // An integer is an int64_t unless only a uint64_t holds it.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, MsgpackBytes,
               std::complex<double>, Array, NumpyScalar, MsgpackList, MsgpackMap>
      data;

  // Null when the value is of another kind.
  const MsgpackMap* as_map() const;
  const MsgpackList* as_list() const;
  const std::string* as_string() const;
  const int64_t* as_int() const;
  // The value under `key` of a map; null when this is no map or has no such key.
  const MsgpackValue* find(std::string_view key) const;
};

struct MsgpackEntry {
  std::string key;
  MsgpackValue value;
};

// Decodes one value that fills `bytes`. Throws CheckpointError with `label` and the byte offset for anything
// else: truncated, trailing bytes, nesting deeper than 64, keys that are not strings, an array whose size is
// wrong. No allocation is larger than a small multiple of `bytes`.
MsgpackValue decode_msgpack(std::string_view bytes, const std::string& label);
// The shortest encoding of every value, as msgpack-python prints it. Throws CheckpointError over msgpack's
// limits.
std::string encode_msgpack(const MsgpackValue& value);

}  // namespace t5x::checkpoint
