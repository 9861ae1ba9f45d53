// What a task promises about its output features, and the small values that requests for data are made of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "seqio/vocabulary.h"

namespace t5x::seqio {

struct Feature {
  VocabularyPtr vocabulary;
  bool add_eos = true;
  bool required = true;
  DType dtype = DType::kInt32;
  int rank = 1;
};
// Sorted by name, as seqio keeps them.
using Features = std::map<std::string, Feature>;

// Feature name -> maximum length in tokens.
using SequenceLength = std::map<std::string, int64_t>;

// The part of the data a reader takes: index of num_shards, from 0.
struct ShardInfo {
  int64_t index = 0;
  int64_t num_shards = 1;
};

// Throws ConfigError naming the feature when a length is not positive or the name is no feature of
// `features`.
void check_lengths(const SequenceLength& lengths, const Features& features, const std::string& provider);

}  // namespace t5x::seqio
