// links: base
// Any bytes are records or a DataError; what was read is framed to the very bytes again.
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  t5x::TfRecordReader reader(std::make_unique<std::istringstream>(input), "fuzz");
  std::string record, framed;
  try {
    while (reader.next(record)) framed += t5x::frame_tfrecord(record);
    if (framed != input) std::abort();
  } catch (const t5x::DataError&) {
  }
  return 0;
}
