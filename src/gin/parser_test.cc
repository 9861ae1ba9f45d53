#include "gin/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "gin/test_registry.h"

namespace t5x::gin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string value_error(const std::string& text) {
  return error_of([&] { parse_value(text, "x.gin"); });
}
std::string parse_error(const std::string& text) {
  return error_of([&] {
    Parser parser(text, "x.gin");
    while (parser.next()) {
    }
  });
}
BindingStatement only_binding(const std::string& text) {
  Parser parser(text, "x.gin");
  auto statement = parser.next();
  EXPECT_FALSE(parser.next());
  return std::get<BindingStatement>(*statement);
}

struct Literal {
  const char* text;
  const char* repr;
};
class Literals : public ::testing::TestWithParam<Literal> {};
TEST_P(Literals, ReadsAsPythonDoes) { EXPECT_EQ(parse_value(GetParam().text).repr(), GetParam().repr); }
INSTANTIATE_TEST_SUITE_P(
    Parser, Literals,
    ::testing::Values(
        Literal{"None", "None"}, Literal{"True", "True"}, Literal{"0", "0"}, Literal{"00", "0"},
        Literal{"1_000", "1000"}, Literal{"- 5", "-5"}, Literal{"0x_ff", "255"}, Literal{"0B11", "3"},
        Literal{"-0o17", "-15"}, Literal{"-9223372036854775808", "-9223372036854775808"},
        Literal{"1e-5", "1e-05"}, Literal{"1.", "1.0"}, Literal{".5", "0.5"}, Literal{"1E+5", "100000.0"},
        Literal{"1e999", "1e999"}, Literal{"1e-999", "0.0"}, Literal{"1e16", "1e+16"}, Literal{"09.5", "9.5"},
        Literal{"'a' \"b\"", "'ab'"}, Literal{"('a'\n 'b')", "'ab'"}, Literal{"r'\\n'", "'\\\\n'"},
        Literal{"'\\x41\\101\\u0042'", "'AAB'"}, Literal{"'\\q'", "'\\\\q'"}, Literal{"'a\\\nb'", "'ab'"},
        Literal{"'''a\n'b'''", "\"a\\n'b\""}, Literal{"b'\\xff\\u1'", "b'\\xff\\\\u1'"},
        Literal{"Rb'\\x'", "b'\\\\x'"}, Literal{"()", "()"}, Literal{"(1)", "1"}, Literal{"(1,)", "(1,)"},
        Literal{"[1, 2,]", "[1, 2]"}, Literal{"{'a': 1, 'a': 2,}", "{'a': 2}"},
        Literal{"{1: 'x', 1.0: 'y'}", "{1: 'y'}"}, Literal{"[ # comment\n 1,\n\n 2 ]", "[1, 2]"},
        Literal{"@a/b.c", "@a/b.c"}, Literal{"@a.b/c()", "@a.b/c()"}, Literal{"@f( )", "@f()"},
        Literal{"%A/B", "%A/B"}, Literal{"%gin.REQUIRED", "%gin.REQUIRED"}, Literal{"@A/macro()", "%A"},
        Literal{"[@f, {'k': %M}]", "[@f, {'k': %M}]"}),
    [](const auto& which) { return "Literal" + std::to_string(which.index); });

TEST(Parser, UnknownEscapeNIsAnError) { EXPECT_THAT(value_error("'\\N{DASH}'"), HasSubstr("not supported")); }

struct BadText {
  const char* text;
  const char* message;
};
class BadValues : public ::testing::TestWithParam<BadText> {};
TEST_P(BadValues, Throws) {
  EXPECT_THAT(value_error(GetParam().text), AllOf(StartsWith("x.gin:"), HasSubstr(GetParam().message)));
}
INSTANTIATE_TEST_SUITE_P(
    Parser, BadValues,
    ::testing::Values(BadText{"", "expected a value, found the end"}, BadText{"true", "did you mean 'True'"},
                      BadText{"hello", "'hello' in quotes"}, BadText{"1_", "'_' must stand"},
                      BadText{"1__0", "'_' must stand"}, BadText{"012", "leading zeros"},
                      BadText{"0z1", "known prefixes"}, BadText{"0x", "base 16"}, BadText{"0b2", "base 2"},
                      BadText{"9223372036854775808", "64 bits"}, BadText{"-9223372036854775809", "64 bits"},
                      BadText{"1.2.3", "not a number"}, BadText{"1e", "not a number"},
                      BadText{"12abc", "not a number"}, BadText{"3j", "complex"},
                      BadText{"-'a'", "expected a number after '-'"}, BadText{"'a", "not closed"},
                      BadText{"'''a", "not closed"}, BadText{"f'a'", "prefix 'f'"},
                      BadText{"'\\xg1'", "hexadecimal"}, BadText{"'\\ud800'", "no Unicode character"},
                      BadText{"'\\U00110000'", "no Unicode character"}, BadText{"b'\xc3\xa9'", "ASCII"},
                      BadText{"'a' b'b'", "cannot join"}, BadText{"[1", "'[' was never closed"},
                      BadText{"[1)", "does not close"}, BadText{"]", "closes nothing"},
                      BadText{"[1 2]", "expected ',' or ']'"}, BadText{"(1 2)", "expected ',' or ')'"},
                      BadText{"{1}", "expected ':'"}, BadText{"{1: 2 3: 4}", "or '}'"},
                      BadText{"{[1]: 2}", "key of a dict"}, BadText{"[,]", "expected a value"},
                      BadText{"@", "expected a name"}, BadText{"@f(1)", "expected ')'"},
                      BadText{"@a/", "must not end in '/'"}, BadText{"@a .b", "without spaces"},
                      BadText{"%", "expected a name"}, BadText{"$", "unexpected character '$'"},
                      BadText{"1 + 2", "found '+'"}, BadText{"\x01", "control character 0x01"},
                      BadText{"'\xff'", "not UTF-8"}, BadText{"lambda: 1", "not a value"}),
    [](const auto& which) { return "Value" + std::to_string(which.index); });

class BadStatements : public ::testing::TestWithParam<BadText> {};
TEST_P(BadStatements, Throws) {
  EXPECT_THAT(parse_error(GetParam().text), AllOf(StartsWith("x.gin:"), HasSubstr(GetParam().message)));
}
INSTANTIATE_TEST_SUITE_P(
    Parser, BadStatements,
    ::testing::Values(BadText{"a.b", "expected '=' or ':'"}, BadText{"a.b =", "found the end of the line"},
                      BadText{"a.b = 1 2", "expected the end of the line"}, BadText{"= 1", "expected a name"},
                      BadText{"a..b = 1", "must not end in '.'"}, BadText{"a/ = 1", "must not end in '/'"},
                      BadText{"a.b/c.d = 1", "must not hold a '.'"}, BadText{"a . b = 1", "without spaces"},
                      BadText{"1a = 2", "expected a name"}, BadText{"include x", "file path in quotes"},
                      BadText{"include b'x'", "as a str"}, BadText{"import", "expected a name"},
                      BadText{"import a/b", "without '/'"}, BadText{"from a", "expected 'import'"},
                      BadText{"from a import", "name to import"}, BadText{"import a as", "after 'as'"},
                      BadText{"a:\nb = 1", "expected indented bindings"},
                      BadText{"a: b = 1", "end of the line after"},
                      BadText{"a:\n  b.c = 1", "expected '=' after 'b'"},
                      BadText{"a:\n  b = 1\n    c = 2", "change of indentation"},
                      BadText{"a:\n    b = 1\n  c = 2", "matches no line above"},
                      BadText{"a = \\", "line continuation"}, BadText{"a.b = [1,\nc.d = 2", "never closed"}),
    [](const auto& which) { return "Statement" + std::to_string(which.index); });

TEST(Parser, DeepNestingThrows) {
  EXPECT_THAT(value_error(std::string(5000, '[') + std::string(5000, ']')), HasSubstr("nested deeper"));
}

TEST(Parser, ErrorShowsPlaceLineAndCaret) {
  EXPECT_THAT(parse_error("a = 1\n  b.c = $x\n"), StartsWith("x.gin:2:9: unexpected character '$'\n"
                                                             "      b.c = $x\n"
                                                             "            ^"));
}

TEST(Parser, SplitsScopeSelectorAndParameter) {
  const BindingStatement b = only_binding("s/t/m.name.param = 1");
  EXPECT_EQ(b.scope + "|" + b.selector + "|" + b.param, "s/t|m.name|param");
}
TEST(Parser, MacroHasNoParameter) {
  const BindingStatement b = only_binding("s/NAME = 1");
  EXPECT_EQ(b.scope + "|" + b.selector + "|" + b.param, "s|NAME|");
}
TEST(Parser, ContinuesLinesAfterBackslash) { EXPECT_EQ(only_binding("a.b = \\\n  3").value.repr(), "3"); }
TEST(Parser, ReadsWindowsLineEnds) { EXPECT_EQ(only_binding("a.b = [1,\r\n 2]\r\n").value.repr(), "[1, 2]"); }
TEST(Parser, SkipsByteOrderMark) { EXPECT_EQ(only_binding("\xef\xbb\xbf# c\na.b = 1").location.line, 2U); }
TEST(Parser, ValueKnowsItsPlace) {
  EXPECT_EQ(only_binding("\na.b = [1]").value.location().str(), "x.gin:2:7");
}
TEST(Parser, TopLevelMayBeIndented) { EXPECT_EQ(only_binding("   a.b = 1\n").value.repr(), "1"); }

TEST(Parser, BlockGivesItsBindings) {
  Parser parser("s/m.f:  # comment\n  # another\n\n  a = 1\n  # c\n  b = [\n2]\n\nX = 3\n", "x.gin");
  const auto block = std::get<BlockStatement>(*parser.next());
  const auto a = std::get<BindingStatement>(*parser.next());
  const auto b = std::get<BindingStatement>(*parser.next());
  const auto x = std::get<BindingStatement>(*parser.next());
  EXPECT_EQ(block.scope + "|" + block.selector, "s|m.f");
  EXPECT_EQ(a.scope + "|" + a.selector + "|" + a.param + a.value.repr(), "s|m.f|a1");
  EXPECT_EQ(b.param + b.value.repr(), "b[2]");
  EXPECT_EQ(x.selector, "X");
}
TEST(Parser, BlocksFollowOneAnother) {
  Parser parser("f:\n  a = 1\ng:\n  b = 2", "x.gin");
  parser.next();
  parser.next();
  EXPECT_EQ(std::get<BlockStatement>(*parser.next()).selector, "g");
}

struct ImportCase {
  const char* text;
  const char* name;
  const char* module;
};
class Imports : public ::testing::TestWithParam<ImportCase> {};
TEST_P(Imports, BindsNameToModule) {
  Parser parser(GetParam().text, "x.gin");
  const auto import = std::get<ImportStatement>(*parser.next());
  EXPECT_EQ(import.bound_name(), GetParam().name);
  EXPECT_EQ(import.bound_module(), GetParam().module);
  EXPECT_EQ(import.str(), GetParam().text);
}
INSTANTIATE_TEST_SUITE_P(Parser, Imports,
                         ::testing::Values(ImportCase{"import a.b.c", "a", "a"},
                                           ImportCase{"import a.b as x", "x", "a.b"},
                                           ImportCase{"from a.b import c", "c", "a.b.c"},
                                           ImportCase{"from a import c as d", "d", "a.c"}),
                         [](const auto& which) { return "Import" + std::to_string(which.index); });

}  // namespace
}  // namespace t5x::gin
