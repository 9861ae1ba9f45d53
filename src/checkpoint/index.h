// The msgpack file `checkpoint` of a t5x checkpoint: its tree of names, with small arrays inline and a
// TensorStore spec where a large array lies in a zarr directory. Internal to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "checkpoint/t5x_checkpoint.h"

namespace t5x::checkpoint {

struct IndexEntry {
  ArrayInfo info;
  std::optional<Array> array;  // inline
  std::string directory;       // of the zarr array otherwise
  Shape chunks;
};
using Index = std::map<std::string, IndexEntry>;  // by '/'-joined name

// Whether t5x stores the array inside the index: all that has no logical axes, which are the step, factored
// second moments and unused (size 1) slots of the optimizer.
bool is_inline(const std::string& name, const Array& array);
// "target/a/b" lies in the directory "target.a.b".
std::string zarr_directory(const std::string& name);

// The bytes that t5x writes: keys sorted at every level. Throws CheckpointError where one name is a prefix of
// another.
std::string encode_index(const Index& index);
// Throws CheckpointError with `label` for another version or anything that is no tree of arrays.
Index decode_index(std::string_view bytes, const std::string& label);

}  // namespace t5x::checkpoint
