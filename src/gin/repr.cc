#include "gin/repr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "gin/registry.h"

namespace t5x::gin {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The character that begins at `at` of well-formed UTF-8, and its length in bytes.
std::pair<uint32_t, size_t> decode(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  uint32_t code = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length && at + i < text.size(); ++i) code = code << 6 | (text[at + i] & 0x3f);
  return {code, std::min(length, text.size() - at)};
}

// Characters that Python's repr() escapes: controls, separators, format characters and private use. The few
// unassigned ones that it escapes too are printed as they are.
bool is_printable(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad) return false;
  if (c == 0x1680 || (c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f)) return false;
  if ((c >= 0x205f && c <= 0x206f) || c == 0x3000 || c == 0xfeff) return false;
  if (c >= 0xe000 && c <= 0xf8ff) return false;
  return (c & 0xfffe) != 0xfffe && c < 0xe0000;
}

// The quote that Python's repr() picks.
char quote_for(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  return single && text.find('"') == std::string_view::npos ? '"' : '\'';
}

// The escape of a character that every kind of string escapes, or nothing.
std::string_view short_escape(char c) {
  switch (c) {
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {};
  }
}

std::string repr_bytes(std::string_view bytes) {
  const char quote = quote_for(bytes);
  std::string out = fmt::format("b{}", quote);
  for (char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == quote) {
      out += '\\';
      out += c;
    } else if (auto escape = short_escape(c); !escape.empty()) {
      out += escape;
    } else if (code < 0x20 || code >= 0x7f) {
      out += fmt::format("\\x{:02x}", code);
    } else {
      out += c;
    }
  }
  return out + quote;
}

// Keys in the order in which pprint prints them: numbers and strings by value, other kinds apart.
std::vector<const std::pair<Value, Value>*> sorted_entries(const Value& dict) {
  auto rank = [](const Value& v) { return v.is(Kind::kFloat) ? Kind::kInt : v.kind(); };
  auto less = [&](const std::pair<Value, Value>* a, const std::pair<Value, Value>* b) {
    const Value& x = a->first;
    const Value& y = b->first;
    if (rank(x) != rank(y)) return rank(x) < rank(y);
    if (rank(x) == Kind::kInt) return Convert<double>::from(x) < Convert<double>::from(y);
    if (x.is(Kind::kString)) return x.as_string() < y.as_string();
    return x.repr() < y.repr();
  };
  std::vector<const std::pair<Value, Value>*> order;
  for (const auto& entry : dict.entries()) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

// Python's pprint.PrettyPrinter with its default settings.
class PrettyPrinter {
 public:
  PrettyPrinter(size_t width, const ReferenceNamer& namer)
      : width_(static_cast<ptrdiff_t>(width)), namer_(namer) {}

  std::string print(const Value& value) {
    format(value, 0, 0, 0);
    return std::move(out_);
  }

 private:
  void format(const Value& value, ptrdiff_t indent, ptrdiff_t allowance, int level) {
    const std::string text = repr_value(value, namer_);
    if (length(text) <= width_ - indent - allowance) {
      out_ += text;
      return;
    }
    switch (value.kind()) {
      case Kind::kList:
        out_ += '[';
        format_items(value, indent, allowance + 1, level + 1);
        out_ += ']';
        break;
      case Kind::kTuple: {
        const std::string close = value.items().size() == 1 ? ",)" : ")";
        out_ += '(';
        format_items(value, indent, allowance + length(close), level + 1);
        out_ += close;
        break;
      }
      case Kind::kDict:
        out_ += '{';
        format_entries(value, indent, allowance + 1, level + 1);
        out_ += '}';
        break;
      case Kind::kString:
        format_string(value.as_string(), indent, allowance, level + 1);
        break;
      default:
        out_ += text;
    }
  }

  void format_items(const Value& value, ptrdiff_t indent, ptrdiff_t allowance, int level) {
    ++indent;
    const Value::Items& items = value.items();
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) new_line(",", indent);
      format(items[i], indent, i + 1 == items.size() ? allowance : 1, level);
    }
  }

  void format_entries(const Value& value, ptrdiff_t indent, ptrdiff_t allowance, int level) {
    ++indent;
    const auto entries = sorted_entries(value);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) new_line(",", indent);
      const std::string key = repr_value(entries[i]->first, namer_);
      out_ += key + ": ";
      format(entries[i]->second, indent + length(key) + 2, i + 1 == entries.size() ? allowance : 1, level);
    }
  }

  // Splits after white space into adjacent literals.
  void format_string(const std::string& text, ptrdiff_t indent, ptrdiff_t allowance, int level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> chunks;
    const std::vector<std::string> lines =
        split_after(text, [](std::string_view t, size_t i) { return t[i] == '\n'; });
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last_line = i + 1 == lines.size();
      const std::string whole = repr_string(lines[i]);
      if (length(whole) <= width_ - indent - (last_line ? allowance : 0)) {
        chunks.push_back(whole);
        continue;
      }
      const std::vector<std::string> words = split_after(lines[i], [](std::string_view t, size_t j) {
        return is_space(t[j]) && j + 1 < t.size() && !is_space(t[j + 1]);
      });
      std::string current;
      for (size_t j = 0; j < words.size(); ++j) {
        const bool last = last_line && j + 1 == words.size();
        if (length(repr_string(current + words[j])) > width_ - indent - (last ? allowance : 0)) {
          if (!current.empty()) chunks.push_back(repr_string(current));
          current = words[j];
        } else {
          current += words[j];
        }
      }
      if (!current.empty()) chunks.push_back(repr_string(current));
    }
    const bool brackets = level == 1 && chunks.size() > 1;
    if (brackets) out_ += '(';
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) new_line("", indent);
      out_ += chunks[i];
    }
    if (brackets) out_ += ')';
  }

  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  template <class Cut>
  static std::vector<std::string> split_after(std::string_view text, Cut cut_after) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (i + 1 == text.size() || cut_after(text, i)) {
        parts.emplace_back(text.substr(begin, i + 1 - begin));
        begin = i + 1;
      }
    }
    return parts;
  }

  void new_line(std::string_view before, ptrdiff_t indent) {
    out_ += before;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent), ' ');
  }

  static ptrdiff_t length(std::string_view text) { return static_cast<ptrdiff_t>(utf8_length(text)); }

  ptrdiff_t width_;
  const ReferenceNamer& namer_;
  std::string out_;
};

}  // namespace

size_t utf8_length(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string utf8_prefix(std::string_view text, size_t characters) {
  size_t end = 0;
  while (end < text.size() && characters > 0) {
    ++end;
    while (end < text.size() && is_continuation(text[end])) ++end;
    --characters;
  }
  return std::string(text.substr(0, end));
}

// The shortest digits that read back as the same number, laid out as Python does.
std::string repr_float(double value) {
  if (std::isnan(value)) return "nan";
  // Python prints inf, which is no literal; this reads back as it.
  if (std::isinf(value)) return value < 0 ? "-1e999" : "1e999";
  char buffer[64];
  auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
  const bool negative = text[0] == '-';
  std::string digits;
  for (char c : text.substr(0, e)) {
    if (c != '-' && c != '.') digits += c;
  }
  const std::string sign = negative ? "-" : "";
  constexpr int kLeastFixed = -4;
  constexpr int kLeastExponent = 16;
  if (exponent < kLeastFixed || exponent >= kLeastExponent) {
    std::string mantissa = digits.substr(0, 1);
    if (digits.size() > 1) mantissa += "." + digits.substr(1);
    return fmt::format("{}{}e{}{:02}", sign, mantissa, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string repr_string(std::string_view text) {
  const char quote = quote_for(text);
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const auto [code, length] = decode(text, i);
    if (text[i] == quote) {
      out += '\\';
      out += quote;
    } else if (auto escape = short_escape(text[i]); !escape.empty()) {
      out += escape;
    } else if (is_printable(code)) {
      out += text.substr(i, length);
    } else if (code < 0x100) {
      out += fmt::format("\\x{:02x}", code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\U{:08x}", code);
    }
    i += length;
  }
  return out + quote;
}

std::string repr_value(const Value& value, const ReferenceNamer& namer) {
  switch (value.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.as_int());
    case Kind::kFloat:
      return repr_float(value.as_float());
    case Kind::kString:
      return repr_string(value.as_string());
    case Kind::kBytes:
      return repr_bytes(value.as_bytes());
    case Kind::kList:
    case Kind::kTuple: {
      const bool list = value.is(Kind::kList);
      std::string out(1, list ? '[' : '(');
      for (const Value& item : value.items()) {
        if (out.size() > 1) out += ", ";
        out += repr_value(item, namer);
      }
      if (!list && value.items().size() == 1) out += ',';
      return out + (list ? ']' : ')');
    }
    case Kind::kDict: {
      std::string out = "{";
      for (const auto* entry : sorted_entries(value)) {
        if (out.size() > 1) out += ", ";
        out += repr_value(entry->first, namer) + ": " + repr_value(entry->second, namer);
      }
      return out + "}";
    }
    case Kind::kReference:
      return namer ? namer(value.as_reference()) : value.as_reference().str();
    case Kind::kMacro:
      return "%" + value.as_macro().name;
    case Kind::kObject:
      if (auto callable = value.as_object().as<Callable>()) {
        return namer ? namer(callable->reference()) : callable->reference().str();
      }
      return fmt::format("<{} at {}>", value.as_object().type_name(), value.as_object().address());
    case Kind::kPending:
      return fmt::format("<not run: {}>", value.as_pending().what);
  }
  return {};
}

std::string pretty_value(const Value& value, size_t width, const ReferenceNamer& namer) {
  return PrettyPrinter(width, namer).print(value);
}

bool is_literal(const Value& value) {
  switch (value.kind()) {
    case Kind::kFloat:
      return !std::isnan(value.as_float());
    case Kind::kList:
    case Kind::kTuple:
      return std::all_of(value.items().begin(), value.items().end(), is_literal);
    case Kind::kDict:
      return std::all_of(value.entries().begin(), value.entries().end(), [](const auto& entry) {
        return is_literal(entry.first) && is_literal(entry.second);
      });
    case Kind::kObject:
      return value.as_object().as<Callable>() != nullptr;
    case Kind::kPending:
      return false;
    default:
      return true;
  }
}

}  // namespace t5x::gin
