// Messages for a person, on standard error. Nothing here is for results: those go to standard output.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace t5x {

void log_line(std::string_view level, std::string_view text);
// Info lines are dropped when quiet; warnings never are.
void set_log_quiet(bool quiet);
bool log_quiet();

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_quiet()) log_line("", fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line("warning: ", fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace t5x
