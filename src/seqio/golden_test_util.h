// Golden files of the tests: those of the repository, and all of them where
// T5X_GOLDEN_DIR names a directory whose folder seqio/ holds them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "seqio/dataset.h"

namespace t5x::seqio {

inline std::string golden_path(const std::string& file) {
  return std::string(T5X_SOURCE_DIR) + "/tests/golden/seqio/" + file;
}

inline std::string full_golden_dir() {
  const char* dir = std::getenv("T5X_GOLDEN_DIR");
  return dir == nullptr ? "" : std::string(dir) + "/seqio";
}

struct Golden {
  Json json;
  bool full = false;  // lists are whole, not cut
};

inline std::vector<Golden> goldens(const std::string& name) {
  std::vector<Golden> all{{Json::parse(read_file(golden_path(name))), false}};
  if (std::string dir = full_golden_dir(); !dir.empty())
    all.push_back({Json::parse(read_file(fs::path(dir) / name)), true});
  return all;
}

// {"inputs": [1, 2], ...} with int32 features.
inline Example example_of(const Json& json) {
  Example example;
  for (const auto& [name, ids] : json.items()) example.set(name, ints(ids.get<std::vector<int32_t>>()));
  return example;
}

inline std::vector<Example> examples_of(const Json& list) {
  std::vector<Example> examples;
  for (const Json& item : list) examples.push_back(example_of(item));
  return examples;
}

// Integer features as golden files write them.
inline Json plain(const Example& example) {
  Json json = Json::object();
  for (const auto& [name, value] : example) {
    if (const auto* array = std::get_if<Array>(&value)) {
      Json list = Json::array();
      Array wide = array->cast(DType::kInt64);
      for (int64_t x : wide.values<int64_t>()) list.push_back(x);
      json[name] = list;
    }
  }
  return json;
}

// The examples of `dataset` against a golden list; a cut list is compared as far as it goes.
inline void expect_examples(const Dataset& dataset, const Json& expected, bool full,
                            const std::string& what) {
  std::vector<Example> got = collect(dataset, full ? expected.size() + 1 : expected.size());
  EXPECT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
    ASSERT_EQ(plain(got[i]), expected[i]) << what << ", example " << i;
}

// Examples {"x": [i]} for i in [0, n).
inline Dataset counting(int64_t n) {
  return Dataset::generate(static_cast<uint64_t>(n), [](uint64_t i) {
    return Example{{"x", ints({static_cast<int32_t>(i)})}};
  });
}

inline std::vector<int32_t> values_of(const std::vector<Example>& examples) {
  std::vector<int32_t> values;
  for (const Example& example : examples) values.push_back(example.ints("x")[0]);
  return values;
}

}  // namespace t5x::seqio
