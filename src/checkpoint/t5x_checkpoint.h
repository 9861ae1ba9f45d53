// One checkpoint directory in t5x's own format (t5x/checkpoints.py, version 3): the msgpack file `checkpoint`
// with the tree of names, small arrays inside it and large ones as zarr directories beside it.
// docs/checkpoint_format.md is the page about it.
//
// A state is a flat map of '/'-joined names: "target/decoder/decoder_norm/scale", "state/step",
// "state/param_states/decoder/decoder_norm/scale/v". Extra files (the dataset iterator's state) lie in the
// same directory, so that they are written and read with it or not at all.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "checkpoint/zarr.h"
#include "core/array.h"

namespace t5x::checkpoint {

constexpr int kFormatVersion = 3;
constexpr const char* kIndexFile = "checkpoint";
// Names every file of the directory with its size; not part of t5x's format, which ignores it.
constexpr const char* kManifestFile = "manifest.json";

using NamedArrays = std::map<std::string, Array>;
using NamedFiles = std::map<std::string, std::string>;

struct CheckpointContents {
  NamedArrays arrays = {};
  NamedFiles files = {};
};

struct ArrayInfo {
  DType dtype = DType::kFloat32;
  Shape shape;
};

struct WriteOptions {
  // float32 and bfloat16 arrays under "target/" are cast to it; the optimizer's state never is.
  DType save_dtype = DType::kFloat32;
  // Compressing threads; each holds one chunk (at most 64 MiB).
  unsigned threads = 2;
  // Writes and syncs one file. Tests replace it to fail where a disk would.
  FileWriter write_file = t5x::write_file;
};

struct ReadOptions {
  // What float32 and bfloat16 arrays under "target/" are cast to, such as a bfloat16 checkpoint to float32.
  std::optional<DType> target_dtype = {};
  unsigned threads = 2;
  // Names to read; all by default. Example: only "target/" for inference.
  std::function<bool(const std::string& name)> wanted = {};
};

// Fills the new directory `dir` and syncs it; the caller renames it when this has returned.
// Throws CheckpointError for names that cannot be stored, IoError when the system says no.
void write_checkpoint(const fs::path& dir, const CheckpointContents& contents,
                      const WriteOptions& options = {});
// Reads and checks everything. Throws CheckpointError or IoError that names the file if anything is missing,
// truncated or damaged.
CheckpointContents read_checkpoint(const fs::path& dir, const ReadOptions& options = {});
// Names, dtypes and shapes, without reading the large arrays.
std::map<std::string, ArrayInfo> list_checkpoint(const fs::path& dir);
// Whether the index can be read and no file is missing or has another size than it was written with, without
// reading the large files; the error's text, or nothing when whole.
std::optional<std::string> find_damage(const fs::path& dir);

std::map<std::string, ArrayInfo> describe_arrays(const NamedArrays& arrays);
// Throws CheckpointError that lists what `found` lacks, what it has too much, and what has another shape
// (with both shapes), by name. dtypes may differ. `source` names the checkpoint.
void check_arrays_match(const std::map<std::string, ArrayInfo>& expected,
                        const std::map<std::string, ArrayInfo>& found, const std::string& source);

}  // namespace t5x::checkpoint
