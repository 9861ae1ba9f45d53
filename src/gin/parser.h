// The grammar of gin files: a pull parser that gives one statement at a time. Semantics: google/gin-config,
// config_parser.py. Errors are ConfigErrors with file:line:column and the offending text.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gin/lexer.h"
#include "gin/value.h"

namespace t5x::gin {

// `scope/selector.param = value`, or a macro `scope/selector = value` (param empty).
struct BindingStatement {
  std::string scope;
  std::string selector;
  std::string param;
  Value value;
  Location location;
};
// `scope/selector:`; its bindings follow as BindingStatements.
struct BlockStatement {
  std::string scope;
  std::string selector;
  Location location;
};
// `import module [as alias]` or `from package import name [as alias]` (module = package.name).
struct ImportStatement {
  std::string module;
  bool is_from = false;
  std::string alias;
  Location location;

  std::string str() const;
  // The name that the statement binds, and the module that this name stands for.
  std::string bound_name() const;
  std::string bound_module() const;
};
// `include 'path'`.
struct IncludeStatement {
  std::string path;
  Location location;
};
using Statement = std::variant<BindingStatement, BlockStatement, ImportStatement, IncludeStatement>;

class Parser {
 public:
  // `on_reference` sees every reference as it is read and may fill its target.
  Parser(std::string_view text, std::string origin, std::function<void(Reference&)> on_reference = {});

  // Nothing at the end of the text.
  std::optional<Statement> next();
  // Reads the text as one value instead.
  Value whole_value();

 private:
  struct Selector {
    std::string text;
    Location location;
  };
  const Token& token() const { return tokens_[at_]; }
  void advance();
  bool at_operator(std::string_view op) const;
  void expect_operator(std::string_view op, std::string_view after);
  void expect_line_end();
  [[noreturn]] void fail(const Location& location, const std::string& message) const;
  std::string found() const;

  Selector parse_selector(bool scoped, bool periods_in_scope);
  std::string parse_identifier(std::string_view what);
  ImportStatement parse_import(bool is_from, const Location& location);
  Statement parse_block(const Selector& selector);
  BindingStatement split_key(const Selector& selector, Value value) const;
  Value parse_value();
  Value parse_value_here(const Location& location);
  Value parse_sequence(const Location& location, std::string_view close);
  Value parse_dict(const Location& location);
  Value parse_strings();
  Value parse_reference(const Location& location);
  Value parse_macro(const Location& location);

  Lexer lexer_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::deque<Statement> queue_;
  std::function<void(Reference&)> on_reference_;
};

// The value that `text` spells, all of it.
Value parse_value(const std::string& text, const std::string& origin = "<value>");

}  // namespace t5x::gin
