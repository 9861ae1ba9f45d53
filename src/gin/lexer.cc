#include "gin/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::gin {

namespace {

// Bytes over 0x7f may be part of a name, as Python's identifiers may hold letters of any script.
bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }
bool is_name_part(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

constexpr size_t kTabWidth = 8;

}  // namespace

void throw_syntax_error(const Location& location, const std::string& message, std::string_view line) {
  std::string text = fmt::format("{}: {}", location.str(), message);
  constexpr size_t kLongest = 200;
  if (!strip(line).empty() && line.size() <= kLongest && location.column > 0) {
    std::string caret;
    for (size_t i = 0; i + 1 < location.column && i < line.size(); ++i) caret += line[i] == '\t' ? '\t' : ' ';
    text += fmt::format("\n    {}\n    {}^", line, caret);
  }
  throw ConfigError(text);
}

Lexer::Lexer(std::string_view text, std::string origin)
    : text_(std::make_shared<const std::string>(text)),
      origin_(std::make_shared<const std::string>(std::move(origin))) {}

std::string_view Lexer::line(uint32_t number) const {
  std::string_view rest = *text_;
  for (uint32_t i = 1; i < number; ++i) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

Location Lexer::here() const { return {origin_, line_, static_cast<uint32_t>(at_ - line_begin_ + 1)}; }

void Lexer::fail(const Location& location, const std::string& message) const {
  throw_syntax_error(location, message, line(location.line));
}

// Moves on and keeps count of lines; "\r\n" counts as one line end.
void Lexer::take(size_t count) {
  for (size_t i = 0; i < count && !done(); ++i) {
    if ((*text_)[at_++] == '\n') {
      ++line_;
      line_begin_ = at_;
    }
  }
}

void Lexer::push(TokenKind kind, size_t begin, const Location& location) {
  const auto end_column = static_cast<uint32_t>(location.column + (at_ - begin));
  tokens_.push_back({kind, std::string_view(*text_).substr(begin, at_ - begin), location, end_column});
}

std::vector<Token> Lexer::run() {
  if (size_t bad = find_invalid_utf8(*text_); bad != std::string_view::npos) {
    take(bad);
    throw_syntax_error(here(),
                       "this is not UTF-8; gin files are UTF-8 text, so save the file in that encoding", {});
  }
  if (text_->starts_with("\xef\xbb\xbf")) {
    at_ = 3;
    line_begin_ = 3;
  }
  lex_indentation();
  while (!done()) lex_token();
  if (!brackets_.empty()) {
    fail(brackets_.back().location, fmt::format("'{}' was never closed", brackets_.back().text));
  }
  if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) end_line(here());
  for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::kDedent, at_, here());
  push(TokenKind::kEnd, at_, here());
  return std::move(tokens_);
}

void Lexer::end_line(const Location& location) {
  // Blank lines and lines of comments alone end nothing.
  if (tokens_.empty()) return;
  const TokenKind last = tokens_.back().kind;
  if (last == TokenKind::kNewline || last == TokenKind::kIndent || last == TokenKind::kDedent) return;
  tokens_.push_back({TokenKind::kNewline, {}, location, location.column});
}

// At the start of a line: compares its indentation with those that are open. Blank lines and comments do not
// count.
void Lexer::lex_indentation() {
  for (;;) {
    size_t width = 0;
    while (peek() == ' ' || peek() == '\t' || peek() == '\f') {
      if (peek() == '\t') {
        width = (width / kTabWidth + 1) * kTabWidth;
      } else {
        width = peek() == '\f' ? 0 : width + 1;
      }
      take(1);
    }
    if (peek() == '#') {
      while (!done() && peek() != '\n') take(1);
    }
    if (peek() == '\r' && peek(1) == '\n') take(1);
    if (done()) return;
    if (peek() == '\n') {
      take(1);
      continue;
    }
    if (width > indents_.back()) {
      indents_.push_back(width);
      push(TokenKind::kIndent, at_, here());
      return;
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      push(TokenKind::kDedent, at_, here());
    }
    if (width != indents_.back()) {
      fail(here(), "this line's indentation matches no line above it; give all bindings of a block the same");
    }
    return;
  }
}

void Lexer::lex_token() {
  const char c = peek();
  if (c == ' ' || c == '\t' || c == '\f' || (c == '\r' && peek(1) == '\n')) {
    take(1);
  } else if (c == '#') {
    while (!done() && peek() != '\n') take(1);
  } else if (c == '\n') {
    const Location location = here();
    take(1);
    if (brackets_.empty()) {
      end_line(location);
      lex_indentation();
    }
  } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
    take(peek(1) == '\n' ? 2 : 3);
    if (done()) fail(here(), "the text ends after a line continuation '\\'");
  } else if (c == '\\') {
    fail(here(), "a line continuation '\\' must be the last character of its line");
  } else if (is_name_start(c)) {
    lex_name_or_string();
  } else if (c == '"' || c == '\'') {
    lex_string(at_, here());
  } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
    lex_number();
  } else {
    lex_operator();
  }
}

void Lexer::lex_name_or_string() {
  const size_t begin = at_;
  const Location location = here();
  while (is_name_part(peek())) take(1);
  const size_t length = at_ - begin;
  if (length <= 2 && (peek() == '"' || peek() == '\'')) {
    std::string prefix(*text_, begin, length);
    for (char& c : prefix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (prefix == "r" || prefix == "b" || prefix == "u" || prefix == "br" || prefix == "rb") {
      lex_string(begin, location);
      return;
    }
    fail(location, fmt::format("strings with the prefix '{}' are not supported; known: r, b, br, u",
                               std::string_view(*text_).substr(begin, length)));
  }
  push(TokenKind::kName, begin, location);
}

void Lexer::lex_string(size_t begin, const Location& location) {
  const char quote = peek();
  const bool triple = peek(1) == quote && peek(2) == quote;
  take(triple ? 3 : 1);
  for (;;) {
    if (done())
      fail(location, triple ? "this triple-quoted string is not closed" : "this string is not closed");
    const char c = peek();
    if (c == '\\') {
      take(peek(1) == '\r' && peek(2) == '\n' ? 3 : 2);
    } else if (c == '\n' && !triple) {
      fail(location, "this string is not closed before the end of its line");
    } else if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
      take(triple ? 3 : 1);
      break;
    } else {
      take(1);
    }
  }
  push(TokenKind::kString, begin, location);
}

// Takes everything that could belong to a number, so that `1_000x` is one bad number and not two tokens.
void Lexer::lex_number() {
  const size_t begin = at_;
  const Location location = here();
  const bool hexadecimal = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
  while (is_name_part(peek()) || peek() == '.') {
    const char c = peek();
    take(1);
    if (!hexadecimal && (c == 'e' || c == 'E') && (peek() == '+' || peek() == '-')) take(1);
  }
  push(TokenKind::kNumber, begin, location);
}

void Lexer::lex_operator() {
  const size_t begin = at_;
  const Location location = here();
  const char c = peek();
  constexpr std::string_view kKnown = "=:,./@%-+()[]{}";
  if (kKnown.find(c) == std::string_view::npos) {
    const auto code = static_cast<unsigned char>(c);
    fail(location, code < 0x20 || code == 0x7f ? fmt::format("unexpected control character 0x{:02x}", code)
                                               : fmt::format("unexpected character '{}'", c));
  }
  take(1);
  push(TokenKind::kOperator, begin, location);
  if (c == '(' || c == '[' || c == '{') {
    brackets_.push_back(tokens_.back());
  } else if (c == ')' || c == ']' || c == '}') {
    const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (brackets_.empty()) fail(location, fmt::format("'{}' closes nothing", c));
    if (brackets_.back().text[0] != open) {
      fail(location, fmt::format("'{}' does not close the '{}' of line {}", c, brackets_.back().text,
                                 brackets_.back().location.line));
    }
    brackets_.pop_back();
  }
}

}  // namespace t5x::gin
