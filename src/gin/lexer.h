// Python's lexical rules, as far as gin files need them: names, numbers, strings, operators, logical lines,
// indentation. Source: The Python Language Reference, chapter 2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gin/value.h"

namespace t5x::gin {

enum class TokenKind { kName, kNumber, kString, kOperator, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written, prefix and quotes included
  Location location;
  uint32_t end_column = 0;  // one past the last character, if it ends on the line it began
};

class Lexer {
 public:
  // Keeps its own copy of the text; tokens point into it.
  Lexer(std::string_view text, std::string origin);
  // The whole text. Throws ConfigError: unfinished string or bracket, odd characters, broken indentation,
  // invalid UTF-8.
  std::vector<Token> run();
  // The source line that holds a location, for messages.
  std::string_view line(uint32_t number) const;

 private:
  bool done() const { return at_ >= text_->size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_->size() ? (*text_)[at_ + ahead] : '\0'; }
  Location here() const;
  void take(size_t count);
  void push(TokenKind kind, size_t begin, const Location& location);
  void lex_indentation();
  void lex_token();
  void lex_name_or_string();
  void lex_string(size_t begin, const Location& location);
  void lex_number();
  void lex_operator();
  void end_line(const Location& location);
  [[noreturn]] void fail(const Location& location, const std::string& message) const;

  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const std::string> origin_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  size_t line_begin_ = 0;
  std::vector<size_t> indents_{0};
  std::vector<Token> brackets_;
  std::vector<Token> tokens_;
};

// The number or string that a token spells. Throws ConfigError at `location` with `show` (text for the
// message).
Value number_value(std::string_view text, bool negative, const Location& location);
// A str, or Bytes for b'...'.
Value string_value(std::string_view text, const Location& location);
// "file:1:2: message" and, when there is one, the source line with a caret.
[[noreturn]] void throw_syntax_error(const Location& location, const std::string& message,
                                     std::string_view line);

}  // namespace t5x::gin
