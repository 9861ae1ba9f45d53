// Zarr version 2 arrays as TensorStore writes them for t5x: a directory with `.zarray` (JSON) and one file
// per chunk, named by the chunk's position ("0.1"; "0" for a scalar). Format:
// https://zarr-specs.readthedocs.io (v2). Read: order C, little endian, compressor gzip, zlib or none, no
// filters. Written: gzip.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "core/array.h"

namespace t5x::checkpoint {

constexpr int64_t kMaxChunkBytes = int64_t{64} << 20;
constexpr int kGzipLevel = 1;

struct ZarrMetadata {
  DType dtype = DType::kFloat32;
  Shape shape;
  Shape chunks;            // of the rank of `shape`, every one at least 1
  bool compressed = true;  // gzip or zlib
  double fill_value = 0;   // of chunks that have no file; JSON's null reads as 0
  char separator = '.';

  int64_t chunk_count() const;
  size_t chunk_bytes() const;
  // The chunk's file, chunks counted row-major.
  std::string chunk_name(int64_t index) const;
};

// Throws CheckpointError with `label` for whatever is not supported or not consistent.
ZarrMetadata parse_zarr_metadata(std::string_view json, const std::string& label);
// The very bytes that TensorStore writes (keys sorted, no spaces, fill_value null).
std::string zarr_metadata_json(const ZarrMetadata& metadata);
// "<f4", "|b1", "bfloat16", ...
std::string zarr_dtype_name(DType dtype);

// The chunk shape t5x chooses: divisors of the dimensions such that a chunk has at most `max_elements`; from
// the whole array on, the largest dimension (the first of equals) goes to its next smaller divisor until that
// holds.
Shape choose_chunk_shape(const Shape& shape, int64_t max_elements);

// Inflates one chunk into its place in `array`; what lies beyond the array's edge is dropped. Throws
// CheckpointError if `bytes` do not inflate to exactly one chunk or their checksum is wrong.
void decode_zarr_chunk(const ZarrMetadata& metadata, int64_t index, std::string_view bytes,
                       const std::string& label, Array& array);
// Casts `array` to the metadata's dtype; what lies beyond its edge is zero.
std::string encode_zarr_chunk(const ZarrMetadata& metadata, int64_t index, const Array& array);

using FileWriter = std::function<void(const fs::path&, std::string_view)>;

// `threads` bounds the memory too: a thread holds one chunk, compressed.
struct ZarrOptions {
  unsigned threads = 2;
  // Whether a chunk without a file holds the fill value or is an error.
  bool allow_missing_chunks = true;
  FileWriter write_file = t5x::write_file;
};
Array read_zarr(const fs::path& dir, const ZarrOptions& options = {});
// Chunks of at most kMaxChunkBytes. `dir` must not hold another array.
void write_zarr(const fs::path& dir, const Array& array, const ZarrOptions& options = {});

// For callers that run the chunks of many arrays through one pool.
ZarrMetadata read_zarr_metadata(const fs::path& dir);
void read_zarr_chunk(const fs::path& dir, const ZarrMetadata& metadata, int64_t index, bool allow_missing,
                     Array& array);

}  // namespace t5x::checkpoint
