#include "seqio/feature_converter.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace t5x::seqio {
namespace {

template <class Map>
std::string names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_feature(const Example& example, const std::string& name,
                   const FeatureConverter::FeatureSpec& spec) {
  const Array& array = example.array(name);
  if (array.dtype() != spec.dtype || array.shape().rank() != static_cast<size_t>(spec.rank))
    throw_error<DataError>("feature '{}' should be {} of rank {}, but is {}", name, t5x::name(spec.dtype),
                           spec.rank, array.describe());
}

Array map_ids(const Array& from, auto fn) {
  Array to = Array::uninitialized(DType::kInt32, from.shape());
  std::span<const int32_t> in = from.values<int32_t>();
  std::span<int32_t> out = to.values<int32_t>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = fn(i, in[i]);
  return to;
}

// What a decoder is fed, from "targets" and, packed, its segment ids.
void add_decoder_features(const Example& from, const ConverterOptions& options, Example& to) {
  const Array& targets = from.array("targets");
  Array inputs = Array::uninitialized(DType::kInt32, targets.shape());
  std::span<const int32_t> segments;
  if (options.pack) segments = from.ints("targets_segment_ids");
  make_autoregressive_inputs(targets.values<int32_t>(), segments, options.bos_id, inputs.values<int32_t>());
  to.set("decoder_target_tokens", targets);
  to.set("decoder_input_tokens", std::move(inputs));
  to.set("decoder_loss_weights", map_ids(targets, [](size_t, int32_t id) { return id != 0 ? 1 : 0; }));
  if (!options.pack) return;
  to.set("decoder_segment_ids", from.array("targets_segment_ids"));
  to.set("decoder_positions", from.array("targets_positions"));
}

FeatureConverter::Specs decoder_specs(bool pack) {
  FeatureConverter::Specs specs{
      {"decoder_target_tokens", {}}, {"decoder_input_tokens", {}}, {"decoder_loss_weights", {}}};
  if (pack) specs.insert({{"decoder_segment_ids", {}}, {"decoder_positions", {}}});
  return specs;
}

SequenceLength same_length(const FeatureConverter::Specs& specs, int64_t length) {
  SequenceLength lengths;
  for (const auto& [name, spec] : specs) lengths[name] = length;
  return lengths;
}

int64_t length_of(const SequenceLength& lengths, const std::string& name) {
  auto found = lengths.find(name);
  if (found == lengths.end()) throw_error<ConfigError>("the length of feature '{}' was not given", name);
  return found->second;
}

}  // namespace

FeatureConverter::FeatureConverter(ConverterOptions options) : options_(std::move(options)) {
  if (options_.pack && !options_.passthrough_features.empty())
    throw_error<ConfigError>("packing is incompatible with pass-through features; set pack = false");
}

Dataset FeatureConverter::pack_or_pad(const Dataset& dataset, const SequenceLength& lengths) const {
  return pack() ? trim_and_pack_dataset(dataset, lengths) : trim_and_pad_dataset(dataset, lengths);
}

Dataset FeatureConverter::convert(const Dataset& dataset, const SequenceLength& lengths) const {
  Specs specs = task_features();
  if (specs.empty()) return convert_features(dataset, lengths);
  for (const auto& [feature, spec] : specs)
    if (!lengths.contains(feature))
      throw_error<ConfigError>("{} needs the length of feature '{}', but only has those of: {}", name(),
                               feature, names_of(lengths));
  for (const auto& [feature, length] : lengths)
    if (!specs.contains(feature))
      throw_error<ConfigError>("{} has no feature '{}'; it takes the lengths of: {}", name(), feature,
                               names_of(specs));

  auto check = [specs, lengths, options = options_](Example& example, uint64_t) {
    Example checked;
    for (const auto& [feature, spec] : specs) {
      check_feature(example, feature, spec);
      const Array& array = example.array(feature);
      if (options.apply_length_check && spec.rank > 0 && array.shape()[0] > lengths.at(feature))
        throw_error<DataError>(
            "feature '{}' has length {}, but its length was given as {}; trim it or give a larger length",
            feature, array.shape()[0], lengths.at(feature));
      checked.set(feature, array);
    }
    for (const std::string& feature : options.passthrough_features)
      checked.set(feature, std::as_const(example).at(feature));
    example = std::move(checked);
  };
  return convert_features(dataset.map(check, {.name = name()}), lengths);
}

FeatureConverter::Specs EncDecFeatureConverter::task_features() const {
  return {{"inputs", {}}, {"targets", {}}};
}

FeatureConverter::Specs EncDecFeatureConverter::model_features() const {
  Specs specs = decoder_specs(pack());
  specs.insert({"encoder_input_tokens", {}});
  if (pack()) specs.insert({{"encoder_segment_ids", {}}, {"encoder_positions", {}}});
  return specs;
}

SequenceLength EncDecFeatureConverter::model_feature_lengths(const SequenceLength& lengths) const {
  SequenceLength model;
  for (const auto& [feature, spec] : model_features())
    model[feature] = length_of(lengths, feature.starts_with("encoder") ? "inputs" : "targets");
  return model;
}

Dataset EncDecFeatureConverter::convert_features(const Dataset& dataset,
                                                 const SequenceLength& lengths) const {
  auto fn = [options = options()](Example& example, uint64_t) {
    Example model{{"encoder_input_tokens", example.array("inputs")}};
    add_decoder_features(example, options, model);
    if (options.pack) {
      model.set("encoder_segment_ids", example.array("inputs_segment_ids"));
      model.set("encoder_positions", example.array("inputs_positions"));
    }
    for (const std::string& feature : options.passthrough_features)
      model.set(feature, std::as_const(example).at(feature));
    example = std::move(model);
  };
  return pack_or_pad(dataset, lengths).map(fn, {.name = name()});
}

FeatureConverter::Specs LMFeatureConverter::task_features() const { return {{"targets", {}}}; }
FeatureConverter::Specs LMFeatureConverter::model_features() const { return decoder_specs(pack()); }
SequenceLength LMFeatureConverter::model_feature_lengths(const SequenceLength& lengths) const {
  return same_length(model_features(), length_of(lengths, "targets"));
}

Dataset LMFeatureConverter::convert_features(const Dataset& dataset, const SequenceLength& lengths) const {
  auto fn = [options = options()](Example& example, uint64_t) {
    Example model;
    add_decoder_features(example, options, model);
    for (const std::string& feature : options.passthrough_features)
      model.set(feature, std::as_const(example).at(feature));
    example = std::move(model);
  };
  return pack_or_pad(dataset, lengths).map(fn, {.name = name()});
}

FeatureConverter::Specs PrefixLMFeatureConverter::task_features() const {
  return {{"inputs", {}}, {"targets", {}}};
}

FeatureConverter::Specs PrefixLMFeatureConverter::model_features() const {
  Specs specs = decoder_specs(pack());
  specs.insert({"decoder_causal_attention", {}});
  return specs;
}

SequenceLength PrefixLMFeatureConverter::model_feature_lengths(const SequenceLength& lengths) const {
  return same_length(model_features(), length_of(lengths, "inputs") + length_of(lengths, "targets"));
}

Dataset PrefixLMFeatureConverter::convert_features(const Dataset& dataset,
                                                   const SequenceLength& lengths) const {
  // Each token carries the width of its example's inputs through the packing; 0 would be taken for padding.
  auto concatenate = [](Example& example, uint64_t) {
    std::span<const int32_t> inputs = example.ints("inputs"), targets = example.ints("targets");
    auto width = static_cast<int32_t>(inputs.size());
    std::vector<int32_t> joined(inputs.begin(), inputs.end());
    joined.insert(joined.end(), targets.begin(), targets.end());
    if (targets.empty()) joined.push_back(0);
    example.set("inputs_width", ints(std::vector<int32_t>(joined.size(), width == 0 ? -1 : width)));
    example.set("inputs_width_add_pos", ints(std::vector<int32_t>(joined.size(), width + 1)));
    example.set("targets", ints(joined));
    example.erase("inputs");
  };
  int64_t length = length_of(lengths, "inputs") + length_of(lengths, "targets");
  auto fn = [options = options(), only_targets = loss_on_targets_only_](Example& example, uint64_t) {
    Example model;
    add_decoder_features(example, options, model);
    std::vector<int32_t> range(static_cast<size_t>(example.array("targets").size()));
    std::iota(range.begin(), range.end(), 0);
    std::span<const int32_t> positions = options.pack ? example.ints("targets_positions") : range;
    auto before = [&](size_t i, int32_t width) { return positions[i] < width ? 1 : 0; };
    model.set("decoder_causal_attention", map_ids(example.array("inputs_width_add_pos"), before));
    if (only_targets) {
      std::span<const int32_t> widths = example.ints("inputs_width");
      model.set("decoder_loss_weights", map_ids(example.array("targets"), [&](size_t i, int32_t id) {
                  return before(i, widths[i]) != (id != 0 ? 1 : 0) ? 1 : 0;
                }));
    }
    for (const std::string& feature : options.passthrough_features)
      model.set(feature, std::as_const(example).at(feature));
    example = std::move(model);
  };
  SequenceLength joined{{"targets", length}, {"inputs_width", length}, {"inputs_width_add_pos", length}};
  return pack_or_pad(dataset.map(concatenate, {.name = name()}), joined).map(fn, {.name = name()});
}

void make_autoregressive_inputs(std::span<const int32_t> targets, std::span<const int32_t> sequence_id,
                                int32_t bos_id, std::span<int32_t> out) {
  if (out.size() != targets.size() || (!sequence_id.empty() && sequence_id.size() != targets.size()))
    throw_error<ShapeError>(
        "make_autoregressive_inputs: {} targets, {} sequence ids and {} outputs should be equal",
        targets.size(), sequence_id.size(), out.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    // Before the first position the sequence id is 0.
    bool same = sequence_id.empty() || sequence_id[i] == (i == 0 ? 0 : sequence_id[i - 1]);
    out[i] = i > 0 && same ? targets[i - 1] : bos_id;
  }
}

}  // namespace t5x::seqio
