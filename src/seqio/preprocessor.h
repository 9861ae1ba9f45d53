// Preprocessors: small values, each dataset -> dataset. seqio's own are here, T5's in token_preprocessors.h.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "seqio/dataset.h"
#include "seqio/feature.h"

namespace t5x::seqio {

// What a preprocessor may use, beside the examples.
struct PreprocessorArgs {
  const Features& output_features;
  // Throws ConfigError when the caller gave none but the preprocessor needs it.
  const SequenceLength& sequence_length() const;
  bool has_sequence_length() const { return lengths != nullptr; }
  // The most tokens of `feature`, without the place of its end-of-sequence.
  int64_t length_before_eos(const std::string& feature) const;

  const SequenceLength* lengths = nullptr;
  SeedManager* seeds = nullptr;
  int num_threads = 0;
};

class Preprocessor {
 public:
  using Apply = std::function<Dataset(const Dataset&, const PreprocessorArgs&)>;
  Preprocessor(std::string name, Apply apply, bool needs_sequence_length = false)
      : name_(std::move(name)), apply_(std::move(apply)), needs_sequence_length_(needs_sequence_length) {}
  const std::string& name() const { return name_; }
  // Such a preprocessor must stand after the cache point.
  bool needs_sequence_length() const { return needs_sequence_length_; }
  bool is_cache_placeholder() const { return cache_placeholder_; }
  bool cache_required() const { return cache_required_; }
  Dataset operator()(const Dataset& dataset, const PreprocessorArgs& args) const {
    return apply_(dataset, args);
  }

  friend Preprocessor cache_dataset_placeholder(bool required);

 private:
  std::string name_;
  Apply apply_;
  bool needs_sequence_length_ = false;
  bool cache_placeholder_ = false, cache_required_ = false;
};

// Marks where the offline cache is cut: what stands before is cached.
Preprocessor cache_dataset_placeholder(bool required = false);

// A function of one example; with_seed: it also gets a seed of its own, reproducible from the pipeline's.
Preprocessor map_examples(std::string name, std::function<void(Example&)> fn);
Preprocessor map_examples_with_seed(std::string name, std::function<void(Example&, Seed)> fn);
Preprocessor filter_examples(std::string name, std::function<bool(const Example&)> keep);

// {new name: old name, or "" for an empty text}; other features are dropped.
Preprocessor rekey(std::map<std::string, std::string> key_map);

struct TokenizeOptions {
  bool copy_pretokenized = true;  // keep the text as <feature>_pretokenized
  bool with_eos = false;
};
// Text of every output feature to ids.
Preprocessor tokenize(TokenizeOptions options = {});
// Appends end-of-sequence to features with add_eos. The final trim may cut it off again.
Preprocessor append_eos();
// The same, but first trims to length - 1 where a length is given.
Preprocessor append_eos_after_trim();
// inputs = the last length tokens of inputs.
Preprocessor truncate_inputs_left();

struct ParseTsvOptions {
  std::vector<std::string> field_names = {"inputs", "targets"};
  char delimiter = '\t';
};
// kLineKey to one text feature per field. Throws DataError when a line has another number of fields.
Preprocessor parse_tsv(ParseTsvOptions options = {});

struct PreprocessTsvOptions {
  char delimiter = '\t';
  int num_fields = 2;
  // "{0}" is field 0, and so on.
  std::string inputs_format = "{0}";
  std::string targets_format = "{1}";
  // Not empty: formats use these names, "{question}".
  std::vector<std::string> field_names = {};
};
// kLineKey to "inputs" and "targets" by templates.
Preprocessor preprocess_tsv(PreprocessTsvOptions options = {});

// "{field}" templates over the features of an example (text, or numbers printed).
Preprocessor preprocess_examples(std::string inputs_format, std::string targets_format);

}  // namespace t5x::seqio
