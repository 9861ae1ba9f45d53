#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace t5x {
namespace {
std::atomic<bool> quiet_flag{false};
}

void set_log_quiet(bool quiet) { quiet_flag = quiet; }
bool log_quiet() { return quiet_flag; }

void log_line(std::string_view level, std::string_view text) {
  // One write, so that lines of several threads do not mix.
  std::string line = fmt::format("{}{}\n", level, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace t5x
