#include "base/strings.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>

namespace t5x {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view strip(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::vector<std::string> close_matches(std::string_view name, const std::vector<std::string>& candidates,
                                       size_t limit) {
  auto lower = [](std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  };
  const std::string wanted = lower(name);
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    const std::string given = lower(candidate);
    size_t distance = edit_distance(wanted, given);
    const bool contains = wanted.size() >= 3 && given.find(wanted) != std::string::npos;
    if (contains) distance = 1;
    if (distance <= std::max<size_t>(1, std::max(wanted.size(), given.size()) / 3))
      found.emplace_back(distance, candidate);
  }
  std::stable_sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(limit, found.size()); ++i) names.push_back(found[i].second);
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  std::string text;
  for (const std::string& match : close_matches(name, candidates))
    text += (text.empty() ? "'" : ", '") + match + "'";
  return text.empty() ? "" : "; did you mean " + text + "?";
}

size_t find_invalid_utf8(std::string_view bytes) {
  auto at = [&](size_t i) { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : uint8_t{0}; };
  auto continues = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  for (size_t i = 0; i < bytes.size();) {
    const uint8_t c = at(i);
    if (c < 0x80) {
      i += 1;
    } else if (c >= 0xc2 && c <= 0xdf && continues(i + 1)) {
      i += 2;
    } else if (c >= 0xe0 && c <= 0xef && continues(i + 1) && continues(i + 2) &&
               !(c == 0xe0 && at(i + 1) < 0xa0) && !(c == 0xed && at(i + 1) >= 0xa0)) {
      i += 3;
    } else if (c >= 0xf0 && c <= 0xf4 && continues(i + 1) && continues(i + 2) && continues(i + 3) &&
               !(c == 0xf0 && at(i + 1) < 0x90) && !(c == 0xf4 && at(i + 1) >= 0x90)) {
      i += 4;
    } else {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace t5x
