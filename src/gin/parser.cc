#include "gin/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::gin {

namespace {

// Deeper nesting than any person writes; keeps hostile input from using up the stack.
constexpr int kMaxDepth = 100;

bool ends_statement(const Token& token) {
  return token.kind == TokenKind::kNewline || token.kind == TokenKind::kDedent ||
         token.kind == TokenKind::kEnd;
}

}  // namespace

std::string ImportStatement::str() const {
  std::string text;
  if (is_from) {
    const size_t dot = module.rfind('.');
    text = fmt::format("from {} import {}", module.substr(0, dot), module.substr(dot + 1));
  } else {
    text = "import " + module;
  }
  if (!alias.empty()) text += " as " + alias;
  return text;
}

std::string ImportStatement::bound_name() const {
  if (!alias.empty()) return alias;
  return is_from ? module.substr(module.rfind('.') + 1) : module.substr(0, module.find('.'));
}

std::string ImportStatement::bound_module() const {
  return is_from || !alias.empty() ? module : module.substr(0, module.find('.'));
}

Parser::Parser(std::string_view text, std::string origin, std::function<void(Reference&)> on_reference)
    : lexer_(text, std::move(origin)), tokens_(lexer_.run()), on_reference_(std::move(on_reference)) {}

void Parser::advance() {
  if (at_ + 1 < tokens_.size()) ++at_;
}

bool Parser::at_operator(std::string_view op) const {
  return token().kind == TokenKind::kOperator && token().text == op;
}

void Parser::fail(const Location& location, const std::string& message) const {
  throw_syntax_error(location, message, lexer_.line(location.line));
}

std::string Parser::found() const {
  switch (token().kind) {
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kIndent:
    case TokenKind::kDedent:
      return "a change of indentation";
    case TokenKind::kEnd:
      return "the end of the text";
    default: {
      constexpr size_t kLongest = 40;
      std::string text(token().text.substr(0, kLongest));
      return fmt::format("'{}{}'", text, token().text.size() > kLongest ? "..." : "");
    }
  }
}

void Parser::expect_operator(std::string_view op, std::string_view after) {
  if (!at_operator(op))
    fail(token().location, fmt::format("expected '{}' after {}, found {}", op, after, found()));
  advance();
}

void Parser::expect_line_end() {
  if (!ends_statement(token())) {
    fail(token().location,
         fmt::format("expected the end of the line after this statement, found {}", found()));
  }
  if (token().kind == TokenKind::kNewline) advance();
}

std::optional<Statement> Parser::next() {
  if (!queue_.empty()) {
    Statement statement = std::move(queue_.front());
    queue_.pop_front();
    return statement;
  }
  // Outside blocks indentation means nothing: bindings may come indented, as flags in scripts often do.
  while (token().kind == TokenKind::kIndent || token().kind == TokenKind::kDedent ||
         token().kind == TokenKind::kNewline) {
    advance();
  }
  if (token().kind == TokenKind::kEnd) return std::nullopt;

  const Selector selector = parse_selector(/*scoped=*/true, /*periods_in_scope=*/false);
  std::optional<Statement> statement;
  if (at_operator("=")) {
    advance();
    statement = split_key(selector, parse_value());
  } else if (at_operator(":")) {
    return parse_block(selector);
  } else if (selector.text == "import" || selector.text == "from") {
    statement = parse_import(selector.text == "from", selector.location);
  } else if (selector.text == "include") {
    if (token().kind != TokenKind::kString) {
      fail(token().location,
           fmt::format("expected a file path in quotes after 'include', found {}", found()));
    }
    const Location location = token().location;
    const Value path = parse_strings();
    if (!path.is(Kind::kString)) fail(location, "expected a file path as a str, found bytes");
    statement = IncludeStatement{path.as_string(), location};
  } else {
    fail(token().location, fmt::format("expected '=' or ':' after '{}', found {}", selector.text, found()));
  }
  expect_line_end();
  return statement;
}

// A run of NAME tokens with '.' and '/' between them and no space anywhere.
Parser::Selector Parser::parse_selector(bool scoped, bool periods_in_scope) {
  if (token().kind != TokenKind::kName) {
    fail(token().location, fmt::format("expected a name, found {}", found()));
  }
  const Location location = token().location;
  std::string text;
  uint32_t end = location.column;
  bool spaced = false;
  bool want_name = true;
  while (want_name ? token().kind == TokenKind::kName : at_operator(".") || at_operator("/")) {
    spaced = spaced || token().location.column != end || token().location.line != location.line;
    text += token().text;
    end = token().end_column;
    want_name = !want_name;
    advance();
  }
  if (spaced) fail(location, fmt::format("the name '{}' must be written without spaces", text));
  if (want_name) fail(location, fmt::format("the name '{}' must not end in '{}'", text, text.back()));
  const size_t slash = text.rfind('/');
  if (slash != std::string::npos) {
    if (!scoped) fail(location, fmt::format("expected a module name without '/', found '{}'", text));
    if (!periods_in_scope && text.substr(0, slash).find('.') != std::string::npos) {
      fail(location, fmt::format("the scope '{}' must not hold a '.'", text.substr(0, slash)));
    }
  }
  return {std::move(text), location};
}

std::string Parser::parse_identifier(std::string_view what) {
  if (token().kind != TokenKind::kName) {
    fail(token().location, fmt::format("expected {}, found {}", what, found()));
  }
  std::string name(token().text);
  advance();
  return name;
}

ImportStatement Parser::parse_import(bool is_from, const Location& location) {
  ImportStatement statement;
  statement.is_from = is_from;
  statement.location = location;
  statement.module = parse_selector(/*scoped=*/false, false).text;
  if (is_from) {
    if (token().kind != TokenKind::kName || token().text != "import") {
      fail(token().location,
           fmt::format("expected 'import' after 'from {}', found {}", statement.module, found()));
    }
    advance();
    statement.module += "." + parse_identifier("the name to import");
  }
  if (token().kind == TokenKind::kName && token().text == "as") {
    advance();
    statement.alias = parse_identifier("a name after 'as'");
  }
  return statement;
}

Statement Parser::parse_block(const Selector& selector) {
  expect_operator(":", "the name of a block");
  if (token().kind != TokenKind::kNewline) {
    fail(token().location,
         fmt::format("expected the end of the line after '{}:', found {}", selector.text, found()));
  }
  advance();
  if (token().kind != TokenKind::kIndent) {
    fail(token().location,
         fmt::format("expected indented bindings below '{}:', found {}", selector.text, found()));
  }
  advance();
  const size_t slash = selector.text.rfind('/');
  BlockStatement block;
  block.scope = slash == std::string::npos ? "" : selector.text.substr(0, slash);
  block.selector = selector.text.substr(slash == std::string::npos ? 0 : slash + 1);
  block.location = selector.location;
  while (token().kind != TokenKind::kDedent && token().kind != TokenKind::kEnd) {
    BindingStatement binding{block.scope, block.selector, {}, {}, token().location};
    binding.param = parse_identifier(fmt::format("the name of a parameter of '{}'", selector.text));
    expect_operator("=", fmt::format("'{}'", binding.param));
    binding.value = parse_value();
    expect_line_end();
    queue_.emplace_back(std::move(binding));
  }
  if (token().kind == TokenKind::kDedent) advance();
  return block;
}

// `a/b/name.param` or the macro `a/NAME`.
BindingStatement Parser::split_key(const Selector& selector, Value value) const {
  BindingStatement binding;
  binding.location = selector.location;
  binding.value = std::move(value);
  const size_t slash = selector.text.rfind('/');
  if (slash != std::string::npos) binding.scope = selector.text.substr(0, slash);
  std::string rest = selector.text.substr(slash == std::string::npos ? 0 : slash + 1);
  const size_t dot = rest.rfind('.');
  binding.selector = rest.substr(0, dot);
  if (dot != std::string::npos) binding.param = rest.substr(dot + 1);
  return binding;
}

Value Parser::parse_value() {
  if (depth_ >= kMaxDepth) {
    fail(token().location, fmt::format("brackets are nested deeper than {} levels", kMaxDepth));
  }
  ++depth_;
  const Location location = token().location;
  Value value = parse_value_here(location);
  --depth_;
  return value.at(location);
}

Value Parser::parse_value_here(const Location& location) {
  if (token().kind == TokenKind::kString) return parse_strings();
  bool negative = false;
  if (at_operator("-") || at_operator("+")) {
    negative = at_operator("-");
    advance();
    if (token().kind != TokenKind::kNumber) {
      fail(token().location,
           fmt::format("expected a number after '{}', found {}", negative ? '-' : '+', found()));
    }
  }
  if (token().kind == TokenKind::kNumber) {
    Value value = in_context(fmt::format("line: {}", lexer_.line(location.line).substr(0, 200)),
                             [&] { return number_value(token().text, negative, location); });
    advance();
    return value;
  }
  if (token().kind == TokenKind::kName) {
    const std::string name(token().text);
    if (name != "None" && name != "True" && name != "False") {
      fail(location, fmt::format("'{0}' is not a value: a str is written '{0}' in quotes, a macro %{0}, a "
                                 "reference @{0}{1}",
                                 name, did_you_mean(name, {"None", "True", "False"})));
    }
    advance();
    return name == "None" ? Value() : Value(name == "True");
  }
  if (token().kind == TokenKind::kOperator) {
    const char op = token().text[0];
    if (op == '[' || op == '(' || op == '{' || op == '@' || op == '%') {
      advance();
      if (op == '{') return parse_dict(location);
      if (op == '@') return parse_reference(location);
      if (op == '%') return parse_macro(location);
      return parse_sequence(location, op == '[' ? "]" : ")");
    }
  }
  fail(location, fmt::format("expected a value, found {}", found()));
}

Value Parser::parse_sequence(const Location& location, std::string_view close) {
  Value::Items items;
  bool comma = false;
  while (!at_operator(close)) {
    items.push_back(parse_value());
    if (at_operator(",")) {
      comma = true;
      advance();
    } else if (!at_operator(close)) {
      fail(token().location, fmt::format("expected ',' or '{}' in the {} that begins in line {}, found {}",
                                         close, close == "]" ? "list" : "tuple", location.line, found()));
    }
  }
  advance();
  if (close == "]") return Value::list(std::move(items));
  // Parentheses around one value without a comma only group.
  if (items.size() == 1 && !comma) return items[0];
  return Value::tuple(std::move(items));
}

Value Parser::parse_dict(const Location& location) {
  Value::Entries entries;
  while (!at_operator("}")) {
    const Location key_location = token().location;
    Value key = parse_value();
    if (key.is(Kind::kList) || key.is(Kind::kDict)) {
      fail(key_location, fmt::format("the key of a dict cannot be {}; use a tuple", key.describe()));
    }
    expect_operator(":", "the key of a dict");
    Value value = parse_value();
    entries.emplace_back(std::move(key), std::move(value));
    if (at_operator(",")) {
      advance();
    } else if (!at_operator("}")) {
      fail(token().location, fmt::format("expected ',' or '}}' in the dict that begins in line {}, found {}",
                                         location.line, found()));
    }
  }
  advance();
  return Value::dict(std::move(entries));
}

// Adjacent strings are one.
Value Parser::parse_strings() {
  const Location location = token().location;
  std::string text;
  bool bytes = false;
  for (bool first = true; token().kind == TokenKind::kString; first = false) {
    const Value part = string_value(token().text, token().location);
    if (!first && bytes != part.is(Kind::kBytes)) fail(token().location, "cannot join a str and bytes");
    bytes = part.is(Kind::kBytes);
    text += bytes ? part.as_bytes() : part.as_string();
    advance();
  }
  return (bytes ? Value(Bytes{std::move(text)}) : Value(std::move(text))).at(location);
}

Value Parser::parse_reference(const Location& location) {
  const Selector selector = parse_selector(/*scoped=*/true, /*periods_in_scope=*/true);
  Reference reference;
  const size_t slash = selector.text.rfind('/');
  if (slash != std::string::npos) reference.scope = selector.text.substr(0, slash);
  reference.name = selector.text.substr(slash == std::string::npos ? 0 : slash + 1);
  if (at_operator("(")) {
    advance();
    if (!at_operator(")")) {
      fail(token().location,
           fmt::format("expected ')' after '@{}(', found {}: arguments are bound as '{}.param = value'",
                       selector.text, found(), selector.text));
    }
    advance();
    reference.call = true;
  }
  // `@NAME/macro()` is the long form of %NAME.
  if (reference.call && (reference.name == "macro" || reference.name == "gin.macro") &&
      !reference.scope.empty()) {
    return Value(Macro{reference.scope}).at(location);
  }
  if (on_reference_) on_reference_(reference);
  return Value(std::move(reference)).at(location);
}

Value Parser::parse_macro(const Location& location) {
  return Value(Macro{parse_selector(/*scoped=*/true, /*periods_in_scope=*/true).text}).at(location);
}

Value Parser::whole_value() {
  while (token().kind == TokenKind::kIndent) advance();
  Value value = parse_value();
  while (ends_statement(token()) && token().kind != TokenKind::kEnd) advance();
  if (token().kind != TokenKind::kEnd) {
    fail(token().location, fmt::format("expected nothing after the value, found {}", found()));
  }
  return value;
}

Value parse_value(const std::string& text, const std::string& origin) {
  return Parser(text, origin).whole_value();
}

}  // namespace t5x::gin
