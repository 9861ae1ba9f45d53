// Trimming, padding and packing. Packing is seqio's greedy algorithm: examples go into the row one after
// another until one does not fit; a row also ends after every max(lengths) examples, so that a row never
// spans two such groups. An example's feature is taken up to its number of non-zero ids.
#include <algorithm>
#include <cstring>

#include "seqio/feature_converter.h"
#include "seqio/iterators.h"

namespace t5x::seqio {
namespace {

struct Row {
  std::string name;
  int64_t length = 0, used = 0;
  int32_t segment = 0;
  Array tokens = {}, segments = {}, positions = {};

  void clear() {
    tokens = Array(DType::kInt32, Shape{length});
    segments = Array(DType::kInt32, Shape{length});
    positions = Array(DType::kInt32, Shape{length});
    used = segment = 0;
  }
  void append(std::span<const int32_t> ids) {
    if (ids.empty()) return;
    ++segment;
    auto at = static_cast<size_t>(used);
    std::copy(ids.begin(), ids.end(), tokens.values<int32_t>().begin() + used);
    std::span<int32_t> to_segment = segments.values<int32_t>().subspan(at, ids.size());
    std::span<int32_t> to_position = positions.values<int32_t>().subspan(at, ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      to_segment[i] = ids[i] == 0 ? 0 : segment;
      to_position[i] = static_cast<int32_t>(i);
    }
    used += static_cast<int64_t>(ids.size());
  }
};

class Pack : public Iterator {
 public:
  Pack(std::unique_ptr<Iterator> child, const SequenceLength& lengths) : child_(std::move(child)) {
    for (const auto& [name, length] : lengths) {
      rows_.push_back({.name = name, .length = length});
      group_ = std::max(group_, static_cast<uint64_t>(length));
    }
    clear();
  }

  bool next(Example& out) override {
    for (;;) {
      if (!waiting_.empty()) {
        // The example that did not fit opens the row after.
        Example example = std::move(waiting_);
        waiting_.clear();
        add(example);
      } else {
        Example example;
        bool ended = in_group_ < group_ && !child_->next(example);
        if (ended || in_group_ == group_) {
          if (in_group_ == 0) return false;
          in_group_ = 0;
          emit(out);
          return true;
        }
        ++in_group_;
        bool fits = true;
        for (const Row& row : rows_)
          fits = fits && row.used + static_cast<int64_t>(part(example, row).size()) <= row.length;
        if (!fits) {
          waiting_ = std::move(example);
          emit(out);
          return true;
        }
        add(example);
      }
    }
  }
  void restart() override {
    child_->restart();
    waiting_.clear();
    in_group_ = 0;
    clear();
  }
  Json save() override {
    Json state = new_state("pack", child_.get());
    state["in_group"] = in_group_;
    state["waiting"] = to_json(waiting_);
    Json rows = Json::array();
    for (const Row& row : rows_)
      rows.push_back({{"used", row.used},
                      {"segment", row.segment},
                      {"values", to_json(Example{{"tokens", row.tokens},
                                                 {"segments", row.segments},
                                                 {"positions", row.positions}})}});
    state["rows"] = std::move(rows);
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "pack");
    child_->restore(state.at("child"));
    in_group_ = state.at("in_group").get<uint64_t>();
    waiting_ = example_from_json(state.at("waiting"));
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Json& saved = state.at("rows").at(i);
      Row& row = rows_[i];
      Example values = example_from_json(saved.at("values"));
      if (values.array("tokens").size() != row.length)
        throw_error<DataError>("the saved state packs feature '{}' to length {}, this pipeline to {}",
                               row.name, values.array("tokens").size(), row.length);
      row.used = saved.at("used").get<int64_t>();
      row.segment = saved.at("segment").get<int32_t>();
      row.tokens = values.array("tokens");
      row.segments = values.array("segments");
      row.positions = values.array("positions");
    }
  }

 private:
  std::span<const int32_t> part(const Example& example, const Row& row) const {
    const Array& array = example.array(row.name);
    if (array.shape().rank() != 1)
      throw_error<DataError>("only features of rank 1 can be packed, but '{}' is {}", row.name,
                             array.describe());
    std::span<const int32_t> ids = array.values<int32_t>();
    ids = ids.first(std::min(ids.size(), static_cast<size_t>(row.length)));
    auto nonzero = ids.size() - static_cast<size_t>(std::count(ids.begin(), ids.end(), 0));
    return ids.first(nonzero);
  }
  void add(const Example& example) {
    for (Row& row : rows_) row.append(part(example, row));
  }
  void emit(Example& out) {
    out.clear();
    for (Row& row : rows_) {
      out.set(row.name, std::move(row.tokens));
      out.set(row.name + "_segment_ids", std::move(row.segments));
      out.set(row.name + "_positions", std::move(row.positions));
    }
    clear();
  }
  void clear() {
    for (Row& row : rows_) row.clear();
  }

  std::unique_ptr<Iterator> child_;
  std::vector<Row> rows_;
  Example waiting_;
  uint64_t group_ = 0, in_group_ = 0;
};

Array pad_to(const Array& array, int64_t length) {
  std::vector<int64_t> dims = array.shape().dims();
  if (dims.empty()) throw_error<DataError>("a scalar cannot be padded");
  if (dims[0] == length) return array;
  Array cut = slice(array, 0, length);
  if (cut.shape()[0] == length) return cut;
  dims[0] = length;
  Array padded(array.dtype(), Shape(dims));
  if (cut.nbytes() != 0) std::memcpy(padded.bytes(), cut.bytes(), cut.nbytes());
  return padded;
}

}  // namespace

Dataset trim_dataset(const Dataset& dataset, const SequenceLength& lengths) {
  auto fn = [lengths](Example& example, uint64_t) {
    for (const auto& [name, length] : lengths) {
      FeatureValue* value = example.find(name);
      const Array* array = value == nullptr ? nullptr : std::get_if<Array>(value);
      if (array == nullptr || array->shape().rank() == 0) continue;
      int64_t end = length >= 0 ? length : array->shape()[0] + length;
      *value = slice(*array, 0, end);
    }
  };
  return dataset.map(fn, {.name = "trim"});
}

Dataset trim_and_pad_dataset(const Dataset& dataset, const SequenceLength& lengths) {
  auto fn = [lengths](Example& example, uint64_t) {
    for (const auto& [name, length] : lengths)
      if (example.has(name)) example.set(name, pad_to(example.array(name), length));
  };
  return dataset.map(fn, {.name = "trim_and_pad"});
}

Dataset trim_and_pack_dataset(const Dataset& dataset, const SequenceLength& lengths) {
  if (lengths.empty()) throw_error<ConfigError>("packing needs the length of at least one feature");
  for (const auto& [name, length] : lengths)
    if (length < 1) throw_error<ConfigError>("feature '{}' cannot be packed to length {}", name, length);
  return Dataset([=] { return std::make_unique<Pack>(dataset.iterator(), lengths); });
}

}  // namespace t5x::seqio
