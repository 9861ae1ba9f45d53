// links: checkpoint
// Any bytes decode or are a CheckpointError; what decodes is encoded again without loss.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "checkpoint/msgpack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using t5x::checkpoint::decode_msgpack;
  using t5x::checkpoint::encode_msgpack;
  try {
    const std::string once =
        encode_msgpack(decode_msgpack({reinterpret_cast<const char*>(data), size}, "fuzz"));
    if (encode_msgpack(decode_msgpack(once, "fuzz")) != once) std::abort();
  } catch (const t5x::CheckpointError&) {
  }
  return 0;
}
