#include "seqio/example.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace t5x::seqio {
namespace {

std::string_view kind_of(const FeatureValue& value) {
  if (std::holds_alternative<Array>(value)) return "an array";
  return std::holds_alternative<std::string>(value) ? "a text" : "a list of texts";
}

}  // namespace

const FeatureValue* Example::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

FeatureValue* Example::find(std::string_view name) {
  return const_cast<FeatureValue*>(std::as_const(*this).find(name));
}

const FeatureValue& Example::at(std::string_view name) const {
  if (const FeatureValue* value = find(name)) return *value;
  throw_error<DataError>("feature '{}' is missing; the example has {{{}}}", name, describe());
}

FeatureValue& Example::at(std::string_view name) {
  return const_cast<FeatureValue&>(std::as_const(*this).at(name));
}

void Example::set(std::string_view name, FeatureValue value) {
  if (FeatureValue* there = find(name))
    *there = std::move(value);
  else
    items_.emplace_back(std::string(name), std::move(value));
}

void Example::erase(std::string_view name) {
  std::erase_if(items_, [&](const Item& item) { return item.first == name; });
}

const std::string& Example::text(std::string_view name) const {
  const FeatureValue& value = at(name);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  throw_error<DataError>("feature '{}' should be a text, but is {}", name, seqio::describe(value));
}

const Array& Example::array(std::string_view name) const {
  const FeatureValue& value = at(name);
  if (const auto* array = std::get_if<Array>(&value)) return *array;
  throw_error<DataError>("feature '{}' should be an array, but is {}; was it tokenized?", name,
                         kind_of(value));
}

std::string Example::describe() const {
  std::string text;
  for (const auto& [name, value] : items_)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, seqio::describe(value));
  return text;
}

Array ints(std::span<const int32_t> values) {
  return Array::from<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

Array slice(const Array& array, int64_t begin, int64_t end) {
  if (array.shape().rank() == 0) throw_error<DataError>("a scalar cannot be sliced");
  int64_t rows = array.shape()[0];
  begin = std::clamp<int64_t>(begin, 0, rows);
  end = std::clamp<int64_t>(end, begin, rows);
  if (begin == 0 && end == rows) return array;
  std::vector<int64_t> dims = array.shape().dims();
  dims[0] = end - begin;
  Array part = Array::uninitialized(array.dtype(), Shape(dims));
  size_t row_bytes = rows == 0 ? 0 : array.nbytes() / static_cast<size_t>(rows);
  if (part.nbytes() != 0)
    std::memcpy(part.bytes(), array.bytes() + row_bytes * static_cast<size_t>(begin), part.nbytes());
  return part;
}

bool identical(const FeatureValue& a, const FeatureValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* array = std::get_if<Array>(&a)) return array->identical(std::get<Array>(b));
  if (const auto* text = std::get_if<std::string>(&a)) return *text == std::get<std::string>(b);
  return std::get<Strings>(a) == std::get<Strings>(b);
}

bool identical(const Example& a, const Example& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && identical(x.second, y.second);
  });
}

std::string describe(const FeatureValue& value) {
  if (const auto* array = std::get_if<Array>(&value)) return array->describe();
  return std::holds_alternative<std::string>(value) ? "text" : "texts";
}

Json to_json(const FeatureValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<Strings>(&value)) return *texts;
  const Array& array = std::get<Array>(value);
  std::string_view bytes = array.as_bytes();
  return {{"dtype", name(array.dtype())},
          {"shape", array.shape().dims()},
          {"bytes", Json::binary(std::vector<uint8_t>(bytes.begin(), bytes.end()))}};
}

Json to_json(const Example& example) {
  // A list, because the order of features is kept.
  Json list = Json::array();
  for (const auto& [name, value] : example) list.push_back(Json::array({name, to_json(value)}));
  return list;
}

Example example_from_json(const Json& json) {
  Example example;
  for (const Json& item : json) {
    const Json& value = item.at(1);
    FeatureValue feature;
    if (value.is_string()) {
      feature = value.get<std::string>();
    } else if (value.is_array()) {
      feature = value.get<Strings>();
    } else {
      Array array(dtype_from_name(value.at("dtype").get<std::string>()),
                  Shape(value.at("shape").get<std::vector<int64_t>>()));
      const auto& bytes = value.at("bytes").get_binary();
      if (bytes.size() != array.nbytes())
        throw_error<DataError>("a saved array of {} has {} bytes", array.describe(), bytes.size());
      if (!bytes.empty()) std::memcpy(array.bytes(), bytes.data(), bytes.size());
      feature = std::move(array);
    }
    example.set(item.at(0).get<std::string>(), std::move(feature));
  }
  return example;
}

std::string to_bytes(const Json& state) {
  std::string bytes;
  Json::to_msgpack(state, nlohmann::detail::output_adapter<char>(bytes));
  return bytes;
}

Json from_bytes(std::string_view bytes) {
  try {
    return Json::from_msgpack(bytes.begin(), bytes.end());
  } catch (const Json::exception& e) {
    throw_error<DataError>("these {} bytes are not the state of a dataset: {}", bytes.size(), e.what());
  }
}

}  // namespace t5x::seqio
