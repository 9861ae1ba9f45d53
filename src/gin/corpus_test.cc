// The fuzz target of fuzz/gin_fuzz.cc over a small corpus, as a plain test: it aborts where a text that was
// accepted does not print as one that reads the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace t5x::gin {
namespace {

int run(const std::string& text) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

TEST(Corpus, GoldenFilesAndTheirPrefixesAreHandled) {
  for (const std::string& path : glob(std::string(T5X_SOURCE_DIR) + "/tests/golden/gin/*")) {
    const std::string text = read_file(path);
    for (size_t end = 0; end <= text.size(); end += 97)
      EXPECT_EQ(run(text.substr(0, end)), 0) << path << " " << end;
  }
}

TEST(Corpus, FormerFailuresAreHandled) {
  for (const char* text : {"from __gin__ import dynamic_registration\nimport Able\nimport a\na.f.n = 0x1_0",
                           "a.f:\n  fn = @c.f\n  x = {'k': (1,), 2: b'\\x00', 1.5: 'a' \"b\"}\nM = -1e999",
                           "\xff", "(", "a.f.fn = @a.f()", "'\\"}) {
    EXPECT_EQ(run(text), 0) << text;
  }
}

}  // namespace
}  // namespace t5x::gin
