#include "seqio/preprocessor.h"

#include <cstring>

#include "base/error.h"
#include "base/strings.h"

namespace t5x::seqio {
namespace {

int32_t eos_of(const std::string& name, const Feature& feature) {
  if (auto eos = feature.vocabulary->eos_id()) return *eos;
  throw_error<ConfigError>("feature '{}' wants an end-of-sequence, but {} has none; set add_eos = false",
                           name, feature.vocabulary->describe());
}

// values[:keep] and `id` behind them.
Array with_id(const std::string& name, const Array& values, int64_t keep, int32_t id) {
  if (values.shape().rank() != 1)
    throw_error<DataError>("feature '{}' should have rank 1 to take an end-of-sequence, but is {}", name,
                           values.describe());
  Array longer = Array::uninitialized(values.dtype(), Shape{keep + 1});
  size_t bytes = byte_size(values.dtype()) * static_cast<size_t>(keep);
  if (bytes != 0) std::memcpy(longer.bytes(), values.bytes(), bytes);
  if (values.dtype() == DType::kInt32)
    longer.values<int32_t>().back() = id;
  else if (values.dtype() == DType::kInt64)
    longer.values<int64_t>().back() = id;
  else
    throw_error<DataError>("feature '{}' should hold ids, but is {}", name, values.describe());
  return longer;
}

Array ids_of(const std::string& text, const Vocabulary& vocabulary, DType dtype, std::optional<int32_t> eos) {
  // Kept between calls: one allocation per example, that of the array.
  thread_local std::vector<int32_t> ids;
  ids.clear();
  vocabulary.encode(text, ids);
  if (eos) ids.push_back(*eos);
  Array array = ints(ids);
  return dtype == DType::kInt32 ? array : array.cast(dtype);
}

// "{name}" and "{0}" replaced by what `value` gives.
std::string fill_template(std::string_view format,
                          const std::function<std::string(const std::string&)>& value) {
  std::string text;
  while (!format.empty()) {
    size_t open = format.find('{');
    text += format.substr(0, open);
    if (open == std::string_view::npos) break;
    size_t close = format.find('}', open);
    if (close == std::string_view::npos)
      throw_error<ConfigError>("the template part '{}' has no closing brace", format.substr(open));
    text += value(std::string(format.substr(open + 1, close - open - 1)));
    format.remove_prefix(close + 1);
  }
  return text;
}

std::string as_text(const std::string& name, const FeatureValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* array = std::get_if<Array>(&value); array != nullptr && array->size() == 1) {
    if (is_float(array->dtype())) return fmt::format("{}", array->cast(DType::kFloat64).item<double>());
    return std::to_string(array->cast(DType::kInt64).item<int64_t>());
  }
  throw_error<DataError>("feature '{}' is {}, which cannot stand in a template", name, describe(value));
}

std::vector<std::string> fields_of(const std::string& line, char delimiter, size_t expected) {
  std::vector<std::string> fields = split(line, delimiter);
  if (fields.size() != expected)
    throw_error<DataError>("malformed row: expected {} fields, found {}: '{}'", expected, fields.size(),
                           line.substr(0, 80));
  return fields;
}

// Appends end-of-sequence where wanted; keep(name, n) tokens stay before it.
Preprocessor eos_appender(std::string name, bool after_trim) {
  auto apply = [name, after_trim](const Dataset& dataset, const PreprocessorArgs& args) {
    Features features = args.output_features;
    SequenceLength lengths =
        after_trim && args.has_sequence_length() ? args.sequence_length() : SequenceLength{};
    auto fn = [features, lengths](Example& example, uint64_t) {
      for (auto& [key, value] : example) {
        auto feature = features.find(key);
        if (feature == features.end() || !feature->second.add_eos) continue;
        const Array& array = example.array(key);
        int64_t size = array.shape().rank() == 0 ? 0 : array.shape()[0], keep = size;
        if (auto length = lengths.find(key); length != lengths.end()) {
          // A length of 0 makes the end of the slice -1, which drops one token, as seqio does.
          keep = length->second - 1;
          keep = keep < 0 ? std::max<int64_t>(0, size + keep) : std::min(keep, size);
        }
        value = with_id(key, array, keep, eos_of(key, feature->second));
      }
    };
    return dataset.map(fn, {.name = name});
  };
  return Preprocessor(name, apply);
}

}  // namespace

const SequenceLength& PreprocessorArgs::sequence_length() const {
  if (lengths == nullptr)
    throw_error<ConfigError>(
        "a preprocessor needs sequence lengths, but none were given; pass them with the request");
  return *lengths;
}

int64_t PreprocessorArgs::length_before_eos(const std::string& feature) const {
  auto length = sequence_length().find(feature);
  if (length == sequence_length().end())
    throw_error<ConfigError>("a preprocessor needs the length of feature '{}', which was not given", feature);
  auto found = output_features.find(feature);
  if (found == output_features.end())
    throw_error<ConfigError>("a preprocessor needs output feature '{}', which the task does not have",
                             feature);
  return length->second - (found->second.add_eos ? 1 : 0);
}

Preprocessor cache_dataset_placeholder(bool required) {
  Preprocessor marker("cache_dataset_placeholder",
                      [](const Dataset& dataset, const PreprocessorArgs&) { return dataset; });
  marker.cache_placeholder_ = true;
  marker.cache_required_ = required;
  return marker;
}

Preprocessor map_examples(std::string name, std::function<void(Example&)> fn) {
  return Preprocessor(name, [name, fn](const Dataset& dataset, const PreprocessorArgs&) {
    return dataset.map([fn](Example& example, uint64_t) { fn(example); }, {.name = name});
  });
}

Preprocessor map_examples_with_seed(std::string name, std::function<void(Example&, Seed)> fn) {
  return Preprocessor(name, [name, fn](const Dataset& dataset, const PreprocessorArgs& args) {
    SeedStreams seeds = args.seeds->streams(1);
    return dataset.map([fn, seeds](Example& example, uint64_t index) { fn(example, seeds.get(index)); },
                       {.name = name});
  });
}

Preprocessor filter_examples(std::string name, std::function<bool(const Example&)> keep) {
  return Preprocessor(name, [name, keep](const Dataset& dataset, const PreprocessorArgs&) {
    return dataset.filter(keep, name);
  });
}

Preprocessor rekey(std::map<std::string, std::string> key_map) {
  return map_examples("rekey", [key_map](Example& example) {
    if (key_map.empty()) return;
    Example renamed;
    for (const auto& [to, from] : key_map)
      renamed.set(to, from.empty() ? FeatureValue(std::string()) : std::as_const(example).at(from));
    example = std::move(renamed);
  });
}

Preprocessor tokenize(TokenizeOptions options) {
  auto apply = [options](const Dataset& dataset, const PreprocessorArgs& args) {
    auto fn = [options, features = args.output_features](Example& example, uint64_t) {
      Example tokenized;
      for (auto& [key, value] : example) {
        auto feature = features.find(key);
        if (feature == features.end() || feature->second.vocabulary->is_pass_through()) {
          tokenized.set(key, std::move(value));
          continue;
        }
        const std::string& text = std::as_const(example).text(key);
        std::optional<int32_t> eos;
        if (options.with_eos && feature->second.add_eos) eos = eos_of(key, feature->second);
        Array ids = ids_of(text, *feature->second.vocabulary, feature->second.dtype, eos);
        if (options.copy_pretokenized) tokenized.set(key + "_pretokenized", std::move(value));
        tokenized.set(key, std::move(ids));
      }
      example = std::move(tokenized);
    };
    return dataset.map(fn, {.name = "tokenize", .num_threads = args.num_threads});
  };
  return Preprocessor("tokenize", apply);
}

Preprocessor append_eos() { return eos_appender("append_eos", false); }
Preprocessor append_eos_after_trim() { return eos_appender("append_eos_after_trim", true); }

Preprocessor truncate_inputs_left() {
  auto apply = [](const Dataset& dataset, const PreprocessorArgs& args) {
    int64_t length = args.sequence_length().at("inputs");
    auto fn = [length](Example& example, uint64_t) {
      const Array& inputs = example.array("inputs");
      int64_t size = inputs.shape()[0];
      example.set("inputs", slice(inputs, std::max<int64_t>(0, size - length), size));
    };
    return dataset.map(fn, {.name = "truncate_inputs_left"});
  };
  return Preprocessor("truncate_inputs_left", apply, true);
}

Preprocessor parse_tsv(ParseTsvOptions options) {
  return map_examples("parse_tsv", [options](Example& example) {
    std::vector<std::string> fields =
        fields_of(example.text(kLineKey), options.delimiter, options.field_names.size());
    Example parsed;
    for (size_t i = 0; i < fields.size(); ++i) parsed.set(options.field_names[i], std::move(fields[i]));
    example = std::move(parsed);
  });
}

Preprocessor preprocess_tsv(PreprocessTsvOptions options) {
  size_t expected =
      options.field_names.empty() ? static_cast<size_t>(options.num_fields) : options.field_names.size();
  return map_examples("preprocess_tsv", [options, expected](Example& example) {
    std::vector<std::string> fields = fields_of(example.text(kLineKey), options.delimiter, expected);
    auto value = [&](const std::string& key) {
      for (size_t i = 0; i < fields.size(); ++i)
        if (options.field_names.empty() ? key == std::to_string(i) : key == options.field_names[i])
          return fields[i];
      throw_error<ConfigError>("the template names field '{}', which the rows do not have", key);
    };
    example = {{"inputs", fill_template(options.inputs_format, value)},
               {"targets", fill_template(options.targets_format, value)}};
  });
}

Preprocessor preprocess_examples(std::string inputs_format, std::string targets_format) {
  return map_examples("preprocess_examples", [=](Example& example) {
    auto value = [&](const std::string& key) { return as_text(key, std::as_const(example).at(key)); };
    example = {{"inputs", fill_template(inputs_format, value)},
               {"targets", fill_template(targets_format, value)}};
  });
}

}  // namespace t5x::seqio
