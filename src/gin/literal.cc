// Numbers and strings as Python's source text spells them. Source: The Python Language Reference, 2.4.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "gin/lexer.h"

namespace t5x::gin {

namespace {

[[noreturn]] void bad_number(std::string_view text, const Location& location, std::string_view why) {
  throw_error<ConfigError>("{}: cannot read the number '{}': {}", location.str(), text, why);
}

// Digits without their underscores, which must stand singly between digits or after a prefix such as 0x.
std::string without_underscores(std::string_view text, const Location& location) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool after_prefix = i == 2 && text[0] == '0' && std::isalpha(static_cast<unsigned char>(text[1]));
    const bool inside = i > 0 && i + 1 < text.size() &&
                        (after_prefix || std::isxdigit(static_cast<unsigned char>(text[i - 1]))) &&
                        std::isxdigit(static_cast<unsigned char>(text[i + 1]));
    if (!inside) bad_number(text, location, "'_' must stand between two digits");
  }
  return out;
}

Value int_value(std::string_view text, std::string_view digits, int base, bool negative,
                const Location& location) {
  uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, status] = std::from_chars(digits.data(), end, magnitude, base);
  if (status == std::errc::result_out_of_range) bad_number(text, location, "it does not fit in 64 bits");
  if (status != std::errc() || stop != end)
    bad_number(text, location, fmt::format("not a number in base {}", base));
  const uint64_t limit = (uint64_t{1} << 63) - (negative ? 0 : 1);
  if (magnitude > limit) bad_number(text, location, "it does not fit in 64 bits");
  const uint64_t bits = negative ? ~magnitude + 1 : magnitude;
  return Value(static_cast<int64_t>(bits)).at(location);
}

void append_utf8(std::string& out, uint32_t c) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

// Reads one escape; `rest` begins after the backslash and is moved past the escape.
void append_escape(std::string& out, std::string_view& rest, bool bytes, const Location& location) {
  const char c = rest.front();
  rest.remove_prefix(1);
  auto put_code = [&](uint32_t code) {
    if (bytes) {
      out += static_cast<char>(code & 0xff);
    } else {
      append_utf8(out, code);
    }
  };
  constexpr std::string_view kFrom = "\\'\"abfnrtv";
  constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
  if (size_t known = kFrom.find(c); known != std::string_view::npos) {
    out += kTo[known];
  } else if (c == '\n') {
    // A backslash before the end of a line joins the lines.
  } else if (c >= '0' && c <= '7') {
    auto code = static_cast<uint32_t>(c - '0');
    for (int i = 0; i < 2 && !rest.empty() && rest.front() >= '0' && rest.front() <= '7'; ++i) {
      code = code * 8 + static_cast<uint32_t>(rest.front() - '0');
      rest.remove_prefix(1);
    }
    put_code(code);
  } else if (c == 'x' || (!bytes && (c == 'u' || c == 'U'))) {
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    uint32_t code = 0;
    const char* begin = rest.data();
    const char* end = begin + std::min(digits, rest.size());
    auto [stop, status] = std::from_chars(begin, end, code, 16);
    if (status != std::errc() || stop != begin + digits) {
      throw_error<ConfigError>("{}: the escape '\\{}' in this string needs {} hexadecimal digits",
                               location.str(), c, digits);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      throw_error<ConfigError>("{}: the escape '\\{}{}' in this string is no Unicode character",
                               location.str(), c, rest.substr(0, digits));
    }
    rest.remove_prefix(digits);
    put_code(code);
  } else if (!bytes && c == 'N') {
    throw_error<ConfigError>(
        "{}: the escape '\\N{{...}}' is not supported; write the character itself or \\u....",
        location.str());
  } else {  // Python keeps an escape that it does not know.
    out += '\\';
    out += c;
  }
}

}  // namespace

Value number_value(std::string_view text, bool negative, const Location& location) {
  const std::string digits = without_underscores(text, location);
  if (digits.size() > 1 && digits[0] == '0' && std::isalpha(static_cast<unsigned char>(digits[1])) &&
      digits[1] != 'e' && digits[1] != 'E' && digits[1] != 'j') {
    const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1])));
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base == 0) bad_number(text, location, "known prefixes are 0x, 0o and 0b");
    return int_value(text, std::string_view(digits).substr(2), base, negative, location);
  }
  if (digits.ends_with('j') || digits.ends_with('J')) {
    bad_number(text, location, "complex numbers are not supported");
  }
  if (digits.find_first_not_of("0123456789") == std::string::npos) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) {
      bad_number(text, location, "leading zeros are not allowed; for an octal number write 0o...");
    }
    return int_value(text, digits, 10, negative, location);
  }
  double value = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, status] = std::from_chars(digits.data(), end, value);
  if (stop != end || digits.find_first_of("0123456789") == std::string::npos ||
      digits.find_first_not_of("0123456789.eE+-") != std::string::npos) {
    bad_number(text, location, "not a number");
  }
  // Too large becomes inf and too small 0, as in Python; from_chars leaves both alone.
  if (status == std::errc::result_out_of_range) value = std::strtod(digits.c_str(), nullptr);
  return Value(negative ? -value : value).at(location);
}

Value string_value(std::string_view text, const Location& location) {
  bool raw = false;
  bool bytes = false;
  for (; text.front() != '\'' && text.front() != '"'; text.remove_prefix(1)) {
    const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
    raw = raw || c == 'r';
    bytes = bytes || c == 'b';
  }
  const size_t quotes = text.size() >= 6 && text[1] == text[0] && text[2] == text[0] ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  std::string out;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\r' && text.starts_with('\n')) continue;  // line ends are "\n" whatever the file's are
    if (bytes && (c & 0x80)) {
      throw_error<ConfigError>("{}: bytes may only hold ASCII characters; write others as \\x..",
                               location.str());
    }
    if (c != '\\' || text.empty()) {
      out += c;
    } else if (raw) {
      out += c;
      if (text.starts_with("\r\n")) continue;
      out += text.front();
      text.remove_prefix(1);
    } else {
      if (text.starts_with("\r\n")) text.remove_prefix(1);
      append_escape(out, text, bytes, location);
    }
  }
  if (bytes) return Value(Bytes{std::move(out)}).at(location);
  return Value(std::move(out)).at(location);
}

}  // namespace t5x::gin
