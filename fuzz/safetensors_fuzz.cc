// links: checkpoint
// Any bytes are a header whose tensors lie inside the file, or a CheckpointError.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const t5x::checkpoint::SafetensorsHeader header =
        t5x::checkpoint::parse_safetensors_header({reinterpret_cast<const char*>(data), size}, size, "fuzz");
    for (const auto& [name, entry] : header.entries) {
      if (entry.begin > entry.end || header.data_start + entry.end > size) std::abort();
      if (t5x::Array(entry.dtype, entry.shape).nbytes() != entry.end - entry.begin) std::abort();
    }
  } catch (const t5x::CheckpointError&) {
  }
  return 0;
}
