// links: gin
// Any bytes as a gin file: the parser, the resolver and the checks must answer with a ConfigError or with a
// configuration whose text parses again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "gin/config.h"

namespace {

void add_functions(t5x::gin::Registry& registry) {
  for (const char* name : {"a.f", "a.b.g", "c.f", "f"}) {
    t5x::gin::Configurable configurable;
    configurable.name = name;
    configurable.any_params = true;
    configurable.params = {t5x::gin::param<int64_t>("n", 1), t5x::gin::param<t5x::gin::Callable>("fn", {})};
    configurable.call = [](const t5x::gin::Args&) { return t5x::gin::Value(1); };
    registry.add(std::move(configurable));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find("include") != std::string::npos) return 0;  // no files are read here
  // References to references multiply, in gin as here: a text of many is only slow.
  constexpr auto kMostReferences = 16;
  if (std::count_if(text.begin(), text.end(), [](char c) { return c == '@' || c == '%'; }) > kMostReferences)
    return 0;
  t5x::gin::Registry registry;
  add_functions(registry);
  t5x::gin::Config config(registry);
  try {
    config.parse_string(text);
    config.finalize();
    config.call("a.f");
  } catch (const t5x::ConfigError&) {
  }
  if (!config.finalized()) return 0;
  const std::string written = config.config_str();
  t5x::gin::Config again(registry);
  try {
    again.parse_string(written);
    if (again.config_str() != written) std::abort();
  } catch (const t5x::ConfigError&) {
    std::abort();
  }
  return 0;
}
