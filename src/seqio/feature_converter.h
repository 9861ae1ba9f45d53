// Feature converters: from the features of a task to those of an architecture, packed or not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "seqio/dataset.h"
#include "seqio/feature.h"

namespace t5x::seqio {

struct ConverterOptions {
  bool pack = true;
  int32_t bos_id = 0;
  bool apply_length_check = true;  // an example longer than its task length is a DataError
  std::vector<std::string> passthrough_features = {};  // only with pack = false
};

class FeatureConverter {
 public:
  struct FeatureSpec {
    DType dtype = DType::kInt32;
    int rank = 1;
  };
  using Specs = std::map<std::string, FeatureSpec>;

  explicit FeatureConverter(ConverterOptions options = {});
  virtual ~FeatureConverter() = default;
  bool pack() const { return options_.pack; }
  const ConverterOptions& options() const { return options_; }

  // Checks that the examples are as promised and converts them; outputs have exactly the lengths that
  // model_feature_lengths() says. Throws ConfigError when `task_feature_lengths` names other features.
  Dataset convert(const Dataset& dataset, const SequenceLength& task_feature_lengths) const;
  virtual Specs task_features() const = 0;
  virtual Specs model_features() const = 0;
  virtual SequenceLength model_feature_lengths(const SequenceLength& task_feature_lengths) const = 0;
  virtual std::string name() const = 0;

 protected:
  virtual Dataset convert_features(const Dataset& dataset,
                                   const SequenceLength& task_feature_lengths) const = 0;
  // Trimmed and padded, or packed, as `pack` says.
  Dataset pack_or_pad(const Dataset& dataset, const SequenceLength& lengths) const;

 private:
  ConverterOptions options_;
};
using FeatureConverterPtr = std::shared_ptr<const FeatureConverter>;

// inputs, targets -> encoder_input_tokens, decoder_target_tokens, decoder_input_tokens, decoder_loss_weights
// and, packed, encoder_/decoder_ segment_ids and positions. All int32 [length].
class EncDecFeatureConverter : public FeatureConverter {
 public:
  using FeatureConverter::FeatureConverter;
  Specs task_features() const override;
  Specs model_features() const override;
  SequenceLength model_feature_lengths(const SequenceLength& task_feature_lengths) const override;
  std::string name() const override { return "EncDecFeatureConverter"; }

 protected:
  Dataset convert_features(const Dataset& dataset, const SequenceLength& lengths) const override;
};

// targets -> decoder_target_tokens, decoder_input_tokens, decoder_loss_weights [, segment ids and positions].
class LMFeatureConverter : public FeatureConverter {
 public:
  using FeatureConverter::FeatureConverter;
  Specs task_features() const override;
  Specs model_features() const override;
  SequenceLength model_feature_lengths(const SequenceLength& task_feature_lengths) const override;
  std::string name() const override { return "LMFeatureConverter"; }

 protected:
  Dataset convert_features(const Dataset& dataset, const SequenceLength& lengths) const override;
};

// inputs, targets -> the LM's features over inputs + targets and decoder_causal_attention.
class PrefixLMFeatureConverter : public FeatureConverter {
 public:
  explicit PrefixLMFeatureConverter(ConverterOptions options = {}, bool loss_on_targets_only = true)
      : FeatureConverter(std::move(options)), loss_on_targets_only_(loss_on_targets_only) {}
  Specs task_features() const override;
  Specs model_features() const override;
  SequenceLength model_feature_lengths(const SequenceLength& task_feature_lengths) const override;
  std::string name() const override { return "PrefixLMFeatureConverter"; }

 protected:
  Dataset convert_features(const Dataset& dataset, const SequenceLength& lengths) const override;

 private:
  bool loss_on_targets_only_;
};

// Every feature unchanged.
class PassThroughFeatureConverter : public FeatureConverter {
 public:
  using FeatureConverter::FeatureConverter;
  Specs task_features() const override { return {}; }
  Specs model_features() const override { return {}; }
  SequenceLength model_feature_lengths(const SequenceLength& lengths) const override { return lengths; }
  std::string name() const override { return "PassThroughFeatureConverter"; }

 protected:
  Dataset convert_features(const Dataset& dataset, const SequenceLength&) const override { return dataset; }
};

// targets shifted right by one, bos_id first; where sequence_id changes, bos_id again. Empty sequence_id: one
// sequence. Both [length].
void make_autoregressive_inputs(std::span<const int32_t> targets, std::span<const int32_t> sequence_id,
                                int32_t bos_id, std::span<int32_t> out);
// Features named in `lengths` cut to that length; others untouched. A length of -1 drops the last token, as
// seqio does.
Dataset trim_dataset(const Dataset& dataset, const SequenceLength& lengths);
// Cut and right-padded with zeros to exactly that length.
Dataset trim_and_pad_dataset(const Dataset& dataset, const SequenceLength& lengths);
// Packs rank 1 int32 features greedily, in order, as seqio does, and adds <feature>_segment_ids (from 1, 0 is
// padding) and <feature>_positions. Features without a length are dropped.
Dataset trim_and_pack_dataset(const Dataset& dataset, const SequenceLength& lengths);

}  // namespace t5x::seqio
