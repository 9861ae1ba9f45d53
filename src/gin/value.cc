#include "gin/value.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "gin/registry.h"
#include "gin/repr.h"

namespace t5x::gin {

namespace {

// Whether a float is exactly this integer.
bool same_number(int64_t i, double d) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  return d >= -kTwoTo63 && d < kTwoTo63 && std::trunc(d) == d && static_cast<int64_t>(d) == i;
}

bool is_number(const Value& v) { return v.is(Kind::kInt) || v.is(Kind::kFloat); }

// Equal keys of a dict have equal texts: 1 and 1.0 are one key, as in Python.
std::string key_text(const Value& key) {
  if (key.is(Kind::kFloat)) {
    constexpr double kTwoTo63 = 9223372036854775808.0;
    const double d = key.as_float();
    if (d >= -kTwoTo63 && d < kTwoTo63 && std::trunc(d) == d) return std::to_string(static_cast<int64_t>(d));
  }
  return key.repr();
}

bool same_dict(const Value::Entries& a, const Value::Entries& b) {
  if (a.size() != b.size()) return false;
  std::unordered_map<std::string, const Value*> values;
  for (const auto& [key, value] : b) values.emplace(key_text(key), &value);
  for (const auto& [key, value] : a) {
    auto found = values.find(key_text(key));
    if (found == values.end() || !(*found->second == value)) return false;
  }
  return true;
}

}  // namespace

std::string demangle(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                              std::free);
  return status == 0 ? name.get() : type.name();
}

std::string Location::str() const {
  if (!file) return "a default";
  if (file->starts_with("--") && line <= 1) return *file;
  if (line == 0) return *file;
  return fmt::format("{}:{}:{}", *file, line, column);
}

std::string Reference::str() const {
  return fmt::format("@{}{}{}{}", scope, scope.empty() ? "" : "/", name, call ? "()" : "");
}

Value::Value(Reference value) : data_(std::make_shared<const Reference>(std::move(value))) {}
Value::Value(Object value) : data_(std::make_shared<const Object>(std::move(value))) {}

Value Value::list(Items items) {
  Value v;
  v.data_ = ListData{std::make_shared<const Items>(std::move(items))};
  return v;
}

Value Value::tuple(Items items) {
  Value v;
  v.data_ = TupleData{std::make_shared<const Items>(std::move(items))};
  return v;
}

Value Value::dict(Entries entries) {
  Entries unique;
  std::unordered_map<std::string, size_t> places;
  for (auto& entry : entries) {
    auto [place, is_new] = places.emplace(key_text(entry.first), unique.size());
    if (is_new) {
      unique.push_back(std::move(entry));
    } else {
      unique[place->second].second = std::move(entry.second);
    }
  }
  Value v;
  v.data_ = DictData{std::make_shared<const Entries>(std::move(unique))};
  return v;
}

const Value::Items& Value::items() const {
  if (const auto* list = std::get_if<ListData>(&data_)) return *list->items;
  return *std::get<TupleData>(data_).items;
}

Value Value::at(Location location) const {
  Value v = *this;
  v.location_ = std::move(location);
  return v;
}

std::string Value::repr() const { return repr_value(*this); }

std::string Value::describe() const {
  std::string text = repr();
  constexpr size_t kLongest = 60;
  if (utf8_length(text) > kLongest) text = utf8_prefix(text, kLongest) + "...";
  switch (kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return fmt::format("the bool {}", text);
    case Kind::kInt:
      return fmt::format("the int {}", text);
    case Kind::kFloat:
      return fmt::format("the float {}", text);
    case Kind::kString:
      return fmt::format("the str {}", text);
    case Kind::kBytes:
      return fmt::format("the bytes {}", text);
    case Kind::kList:
      return fmt::format("the list {}", text);
    case Kind::kTuple:
      return fmt::format("the tuple {}", text);
    case Kind::kDict:
      return fmt::format("the dict {}", text);
    case Kind::kReference:
      return fmt::format("the reference {}", text);
    case Kind::kMacro:
      return fmt::format("the macro {}", text);
    case Kind::kObject:
      if (as_object().as<Callable>()) return fmt::format("the reference {}", text);
      return fmt::format("an object of type {}", as_object().type_name());
    case Kind::kPending:
      return fmt::format("the result of {}", as_pending().what);
  }
  return text;
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) {
    if (!is_number(a) || !is_number(b)) return false;
    return a.is(Kind::kInt) ? same_number(a.as_int(), b.as_float()) : same_number(b.as_int(), a.as_float());
  }
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Kind::kInt:
      return a.as_int() == b.as_int();
    case Kind::kFloat:
      return a.as_float() == b.as_float();
    case Kind::kString:
      return a.as_string() == b.as_string();
    case Kind::kBytes:
      return a.as_bytes() == b.as_bytes();
    case Kind::kList:
    case Kind::kTuple:
      return a.items() == b.items();
    case Kind::kDict:
      return same_dict(a.entries(), b.entries());
    case Kind::kReference: {
      const Reference& x = a.as_reference();
      const Reference& y = b.as_reference();
      const bool same_target =
          x.target != nullptr || y.target != nullptr ? x.target == y.target : x.name == y.name;
      return same_target && x.scope == y.scope && x.call == y.call;
    }
    case Kind::kMacro:
      return a.as_macro().name == b.as_macro().name;
    case Kind::kObject:
      return a.as_object().address() == b.as_object().address();
    case Kind::kPending:
      return false;
  }
  return false;
}

}  // namespace t5x::gin
