// Values as text: Python's repr() and pprint.pformat(), which gin's config strings are made of.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "gin/value.h"

namespace t5x::gin {

// How a reference is written; by default as in its source.
using ReferenceNamer = std::function<std::string(const Reference&)>;

std::string repr_value(const Value& value, const ReferenceNamer& namer = {});
// As pprint.pformat(value, width): breaks containers and long strings over lines, sorts the keys of dicts.
std::string pretty_value(const Value& value, size_t width, const ReferenceNamer& namer = {});
// Whether the text of the value parses again to it: no objects in it, no nan.
bool is_literal(const Value& value);

std::string repr_float(double value);
std::string repr_string(std::string_view text);
// In characters, not bytes.
size_t utf8_length(std::string_view text);
std::string utf8_prefix(std::string_view text, size_t characters);

}  // namespace t5x::gin
