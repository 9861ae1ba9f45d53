// One element of a dataset: named features, in the order they were added. Values are host arrays, a string or
// a list of strings. A text source yields one feature, kLineKey.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/array.h"

namespace t5x::seqio {

// A state of an iterator, or a decoded value. Binary parts are allowed: write states with to_bytes().
using Json = nlohmann::json;

inline constexpr std::string_view kLineKey = "line";

using Strings = std::vector<std::string>;
using FeatureValue = std::variant<Array, std::string, Strings>;

class Example {
 public:
  using Item = std::pair<std::string, FeatureValue>;

  Example() = default;
  Example(std::initializer_list<Item> items) : items_(items) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const FeatureValue* find(std::string_view name) const;
  FeatureValue* find(std::string_view name);
  // Throws DataError with the names there are.
  const FeatureValue& at(std::string_view name) const;
  FeatureValue& at(std::string_view name);
  // Replaces the value of that name, or adds it at the end.
  void set(std::string_view name, FeatureValue value);
  void erase(std::string_view name);

  // Each throws DataError when the feature is missing or of another kind or dtype.
  const std::string& text(std::string_view name) const;
  const Array& array(std::string_view name) const;
  std::span<const int32_t> ints(std::string_view name) const { return array(name).values<int32_t>(); }

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  void clear() { items_.clear(); }
  // "inputs: int32(17), targets: text"
  std::string describe() const;

 private:
  std::vector<Item> items_;
};

// A rank 1 int32 array.
Array ints(std::span<const int32_t> values);
inline Array ints(std::initializer_list<int32_t> values) {
  return ints(std::span<const int32_t>(values.begin(), values.size()));
}
// array[begin:end] along the first axis; bounds are clipped to the array as Python does for indices >= 0.
Array slice(const Array& array, int64_t begin, int64_t end);
bool identical(const FeatureValue& a, const FeatureValue& b);
bool identical(const Example& a, const Example& b);
std::string describe(const FeatureValue& value);

// States as JSON. Arrays become binary, so that a state is written with to_bytes(), not dump().
Json to_json(const FeatureValue& value);
Json to_json(const Example& example);
Example example_from_json(const Json& json);
std::string to_bytes(const Json& state);
// Throws DataError when the bytes are not a state.
Json from_bytes(std::string_view bytes);

}  // namespace t5x::seqio
