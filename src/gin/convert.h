// From a gin value to a C++ type. Convert<T> says what it expects in Python's words, whether a value fits,
// and makes the T. Integers are taken as floats, never the other way round; lists and tuples are both
// sequences.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gin/value.h"

namespace t5x::gin {

// accepts(v) tells whether from(v) works; a Pending of a dry run is accepted by the callers, not here.
template <class T>
struct Convert;

template <>
struct Convert<Value> {
  static std::string expected() { return "any value"; }
  static bool accepts(const Value&) { return true; }
  static Value from(const Value& v) { return v; }
};

template <>
struct Convert<bool> {
  static std::string expected() { return "a bool (True or False)"; }
  static bool accepts(const Value& v) { return v.is(Kind::kBool); }
  static bool from(const Value& v) { return v.as_bool(); }
};

template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct Convert<T> {
  static std::string expected() {
    std::string text = "an int";
    if (std::is_unsigned_v<T>) text += " of at least 0";
    if (sizeof(T) < 8) text += " of at most " + std::to_string(std::numeric_limits<T>::max());
    return text;
  }
  static bool accepts(const Value& v) {
    if (!v.is(Kind::kInt)) return false;
    if constexpr (std::is_unsigned_v<T>) {
      return v.as_int() >= 0 && static_cast<uint64_t>(v.as_int()) <= std::numeric_limits<T>::max();
    } else {
      return v.as_int() >= std::numeric_limits<T>::min() && v.as_int() <= std::numeric_limits<T>::max();
    }
  }
  static T from(const Value& v) { return static_cast<T>(v.as_int()); }
};

template <class T>
requires(std::is_floating_point_v<T>) struct Convert<T> {
  static std::string expected() { return "a float"; }
  static bool accepts(const Value& v) { return v.is(Kind::kFloat) || v.is(Kind::kInt); }
  static T from(const Value& v) {
    return v.is(Kind::kInt) ? static_cast<T>(v.as_int()) : static_cast<T>(v.as_float());
  }
};

template <>
struct Convert<std::string> {
  static std::string expected() { return "a str"; }
  static bool accepts(const Value& v) { return v.is(Kind::kString); }
  static std::string from(const Value& v) { return v.as_string(); }
};

template <class T>
struct Convert<std::optional<T>> {
  static std::string expected() { return Convert<T>::expected() + " or None"; }
  static bool accepts(const Value& v) { return v.is_none() || Convert<T>::accepts(v); }
  static std::optional<T> from(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return Convert<T>::from(v);
  }
};

template <class T>
struct Convert<std::vector<T>> {
  static std::string expected() { return "a list, each item " + Convert<T>::expected(); }
  static bool accepts(const Value& v) {
    if (!v.is(Kind::kList) && !v.is(Kind::kTuple)) return false;
    for (const Value& item : v.items()) {
      if (!item.is(Kind::kPending) && !Convert<T>::accepts(item)) return false;
    }
    return true;
  }
  static std::vector<T> from(const Value& v) {
    std::vector<T> out;
    for (const Value& item : v.items()) out.push_back(Convert<T>::from(item));
    return out;
  }
};

// std::map<std::string, V> or std::vector<std::pair<std::string, V>> (which keeps the order): a dict.
template <class V>
struct Convert<std::vector<std::pair<std::string, V>>> {
  static std::string expected() { return "a dict of str to " + Convert<V>::expected(); }
  static bool accepts(const Value& v) {
    if (!v.is(Kind::kDict)) return false;
    for (const auto& [key, value] : v.entries()) {
      if (!key.is(Kind::kString)) return false;
      if (!value.is(Kind::kPending) && !Convert<V>::accepts(value)) return false;
    }
    return true;
  }
  static std::vector<std::pair<std::string, V>> from(const Value& v) {
    std::vector<std::pair<std::string, V>> out;
    for (const auto& [key, value] : v.entries()) out.emplace_back(key.as_string(), Convert<V>::from(value));
    return out;
  }
};

template <class V>
struct Convert<std::map<std::string, V>> {
  using Pairs = Convert<std::vector<std::pair<std::string, V>>>;
  static std::string expected() { return Pairs::expected(); }
  static bool accepts(const Value& v) { return Pairs::accepts(v); }
  static std::map<std::string, V> from(const Value& v) {
    std::map<std::string, V> out;
    for (auto& [key, value] : Pairs::from(v)) out.insert_or_assign(key, std::move(value));
    return out;
  }
};

// An object that a configurable made. None is not an object: use std::optional<std::shared_ptr<T>> for that.
template <class T>
struct Convert<std::shared_ptr<T>> {
  static std::string expected() { return "an object of type " + demangle(typeid(T)); }
  static bool accepts(const Value& v) { return v.is(Kind::kObject) && v.as_object().as<T>() != nullptr; }
  static std::shared_ptr<T> from(const Value& v) { return v.as_object().as<T>(); }
};

}  // namespace t5x::gin
