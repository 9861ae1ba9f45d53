// Small helpers for text: splitting, joining, and the close matches that error messages offer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace t5x {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view strip(std::string_view text);
size_t edit_distance(std::string_view a, std::string_view b);
// At most `limit` candidates that a person may have meant by `name`, nearest first.
std::vector<std::string> close_matches(std::string_view name, const std::vector<std::string>& candidates,
                                       size_t limit = 3);
// "; did you mean 'a', 'b'?" or nothing when nothing is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
// Whether `bytes` are well-formed UTF-8 (no overlong forms, no surrogates); the offset of the first bad byte,
// or npos.
size_t find_invalid_utf8(std::string_view bytes);

}  // namespace t5x
