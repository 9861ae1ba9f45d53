// links: checkpoint
// Input: a .zarray, a zero byte, one chunk. Either may be anything; only a CheckpointError may come of it.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "checkpoint/zarr.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace checkpoint = t5x::checkpoint;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  try {
    const checkpoint::ZarrMetadata metadata = checkpoint::parse_zarr_metadata(input.substr(0, end), "fuzz");
    const bool small = metadata.shape.size() <= 4096 && metadata.chunks.size() <= 4096;
    if (end == std::string_view::npos || !small || metadata.chunk_count() == 0) return 0;
    t5x::Array array(metadata.dtype, metadata.shape);
    for (int64_t i = 0; i < metadata.chunk_count(); ++i) {
      (void)metadata.chunk_name(i);
      checkpoint::decode_zarr_chunk(metadata, i, input.substr(end + 1), "fuzz", array);
    }
  } catch (const t5x::CheckpointError&) {
  }
  return 0;
}
