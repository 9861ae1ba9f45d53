#include "seqio/dataset.h"

#include <algorithm>
#include <cstring>

#include "seqio/iterators.h"

namespace t5x::seqio {

Json new_state(std::string_view kind, Iterator* child) {
  Json state{{"kind", kind}};
  if (child != nullptr) state["child"] = child->save();
  return state;
}

void check_state(const Json& state, std::string_view kind) {
  if (!state.is_object() || state.value("kind", "") != kind)
    throw_error<DataError>(
        "the saved state does not fit this pipeline: expected the state of '{}', found '{}'; restore into a "
        "pipeline "
        "built from the same task, lengths and options, or start the data anew",
        kind, state.is_object() ? state.value("kind", "nothing") : "no state");
}

void WaitCounter::add(double seconds, bool waited) {
  nanoseconds_ += static_cast<int64_t>(seconds * 1e9);
  ++elements_;
  if (waited) ++waits_;
}
double WaitCounter::seconds() const { return static_cast<double>(nanoseconds_.load()) * 1e-9; }
int64_t WaitCounter::elements() const { return elements_; }
int64_t WaitCounter::waits() const { return waits_; }

namespace {

class Generate : public Iterator {
 public:
  Generate(uint64_t n, std::function<Example(uint64_t)> make) : n_(n), make_(std::move(make)) {}
  bool next(Example& out) override {
    if (position_ >= n_) return false;
    out = make_(position_++);
    return true;
  }
  void restart() override { position_ = 0; }
  Json save() override { return {{"kind", "generate"}, {"position", position_}}; }
  void restore(const Json& state) override {
    check_state(state, "generate");
    position_ = state.at("position").get<uint64_t>();
  }

 private:
  uint64_t n_, position_ = 0;
  std::function<Example(uint64_t)> make_;
};

class Filter : public Iterator {
 public:
  Filter(std::unique_ptr<Iterator> child, Dataset::FilterFn keep, std::string name)
      : child_(std::move(child)), keep_(std::move(keep)), name_(std::move(name)) {}
  bool next(Example& out) override {
    for (bool kept = false; !kept; ++index_) {
      if (!child_->next(out)) return false;
      in_stage(name_, index_, [&] { kept = keep_(out); });
    }
    return true;
  }
  void restart() override { index_ = 0, child_->restart(); }
  Json save() override {
    Json state = new_state("filter", child_.get());
    state["index"] = index_;
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "filter");
    child_->restore(state.at("child"));
    index_ = state.at("index").get<uint64_t>();
  }

 private:
  std::unique_ptr<Iterator> child_;
  Dataset::FilterFn keep_;
  std::string name_;
  uint64_t index_ = 0;
};

class FlatMap : public Iterator {
 public:
  FlatMap(std::unique_ptr<Iterator> child, Dataset::FlatMapFn fn, size_t group, bool drop, std::string name)
      : child_(std::move(child)), fn_(std::move(fn)), size_(group), drop_(drop), name_(std::move(name)) {}
  bool next(Example& out) override {
    while (taken_ == made_.size()) {
      made_.clear();
      taken_ = 0;
      in_.clear();
      for (Example example; in_.size() < size_ && child_->next(example);) in_.push_back(std::move(example));
      if (in_.empty() || (drop_ && in_.size() < size_)) return false;
      in_stage(name_, group_, [&] { fn_(in_, group_, made_); });
      ++group_;
    }
    out = std::move(made_[taken_++]);
    return true;
  }
  void restart() override {
    made_.clear();
    taken_ = group_ = 0;
    child_->restart();
  }
  Json save() override {
    Json state = new_state("flat_map", child_.get());
    state["group"] = group_;
    state["made"] = save_examples(made_, taken_);
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "flat_map");
    child_->restore(state.at("child"));
    group_ = state.at("group").get<uint64_t>();
    made_.clear();
    taken_ = 0;
    for (const Json& example : state.at("made")) made_.push_back(example_from_json(example));
  }

 private:
  std::unique_ptr<Iterator> child_;
  Dataset::FlatMapFn fn_;
  size_t size_;
  bool drop_;
  std::string name_;
  std::vector<Example> in_, made_;
  size_t taken_ = 0;
  uint64_t group_ = 0;
};

// Examples begin, begin + step, ... below end.
class Range : public Iterator {
 public:
  Range(std::unique_ptr<Iterator> child, uint64_t begin, uint64_t step, uint64_t end)
      : child_(std::move(child)), begin_(begin), step_(step), end_(end) {}
  bool next(Example& out) override {
    while (position_ < end_) {
      if (!child_->next(out)) return false;
      uint64_t at = position_++;
      if (at >= begin_ && (at - begin_) % step_ == 0) return true;
    }
    return false;
  }
  void restart() override { position_ = 0, child_->restart(); }
  Json save() override {
    Json state = new_state("range", child_.get());
    state["position"] = position_;
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "range");
    child_->restore(state.at("child"));
    position_ = state.at("position").get<uint64_t>();
  }

 private:
  std::unique_ptr<Iterator> child_;
  uint64_t begin_, step_, end_, position_ = 0;
};

class Repeat : public Iterator {
 public:
  Repeat(std::unique_ptr<Iterator> child, std::optional<int64_t> epochs)
      : child_(std::move(child)), epochs_(epochs) {}
  bool next(Example& out) override {
    while (!epochs_ || epoch_ < *epochs_) {
      if (child_->next(out)) return any_ = true;
      if (!epochs_ && !any_)
        throw_error<DataError>(
            "the dataset is empty, so it cannot be repeated for ever; check the files, the split, the shard "
            "and the "
            "filters");
      ++epoch_;
      if (!epochs_ || epoch_ < *epochs_) {
        any_ = false;
        child_->restart();
      }
    }
    return false;
  }
  void restart() override {
    epoch_ = 0;
    any_ = false;
    child_->restart();
  }
  Json save() override {
    Json state = new_state("repeat", child_.get());
    state["epoch"] = epoch_;
    state["any"] = any_;
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "repeat");
    child_->restore(state.at("child"));
    epoch_ = state.at("epoch").get<int64_t>();
    any_ = state.at("any").get<bool>();
  }

 private:
  std::unique_ptr<Iterator> child_;
  std::optional<int64_t> epochs_;
  int64_t epoch_ = 0;
  bool any_ = false;  // in this epoch
};

class Freeze : public Iterator {
 public:
  explicit Freeze(Dataset dataset) : dataset_(std::move(dataset)), child_(dataset_.iterator()) {}
  bool next(Example& out) override { return child_->next(out); }
  void restart() override { child_ = dataset_.iterator(); }
  Json save() override { return new_state("freeze", child_.get()); }
  void restore(const Json& state) override {
    check_state(state, "freeze");
    child_->restore(state.at("child"));
  }

 private:
  Dataset dataset_;
  std::unique_ptr<Iterator> child_;
};

class Context : public Iterator {
 public:
  Context(std::unique_ptr<Iterator> child, std::string place)
      : child_(std::move(child)), place_(std::move(place)) {}
  bool next(Example& out) override {
    return in_context(place_, [&] { return child_->next(out); });
  }
  void restart() override {
    in_context(place_, [&] { child_->restart(); });
  }
  Json save() override {
    return in_context(place_, [&] { return child_->save(); });
  }
  void restore(const Json& state) override {
    in_context(place_, [&] { child_->restore(state); });
  }

 private:
  std::unique_ptr<Iterator> child_;
  std::string place_;
};

// Feature `name` of all examples as one array [n, length, ..]; length < 0: shapes must be equal.
Array stack(std::span<const Example> in, const std::string& name, int64_t length) {
  const Array& first = in[0].array(name);
  std::vector<int64_t> dims = first.shape().dims();
  if (length >= 0) dims.at(0) = length;
  std::vector<int64_t> all = dims;
  all.insert(all.begin(), static_cast<int64_t>(in.size()));
  Array stacked(first.dtype(), Shape(all));
  size_t stride = stacked.nbytes() / in.size();
  for (size_t i = 0; i < in.size(); ++i) {
    const Array& one = in[i].array(name);
    std::vector<int64_t> own = one.shape().dims();
    bool fits = one.dtype() == first.dtype() && own.size() == dims.size();
    for (size_t axis = 0; fits && axis < own.size(); ++axis)
      fits = axis == 0 && length >= 0 ? own[axis] <= length : own[axis] == dims[axis];
    if (!fits)
      throw_error<DataError>("feature '{}' cannot be batched: example {} of the batch is {}, expected {}{}",
                             name, i, one.describe(), length >= 0 ? "at most " : "",
                             Array(first.dtype(), Shape(dims)).describe());
    if (one.nbytes() != 0) std::memcpy(stacked.bytes() + i * stride, one.bytes(), one.nbytes());
  }
  return stacked;
}

}  // namespace

Dataset Dataset::in_memory(std::vector<Example> examples) {
  auto shared = std::make_shared<const std::vector<Example>>(std::move(examples));
  return generate(shared->size(), [shared](uint64_t i) { return (*shared)[i]; });
}

Dataset Dataset::generate(uint64_t n, std::function<Example(uint64_t)> example) {
  return Dataset([=] { return std::make_unique<Generate>(n, example); });
}

Dataset Dataset::map(MapFn fn, MapOptions options) const {
  return Dataset([=, self = *this] {
    WorkerOptions workers{.name = options.name, .num_threads = options.num_threads};
    // Blocks, because handing over costs as much as a short example.
    if (options.num_threads > 0)
      workers.block = 16, workers.ahead = 2 * static_cast<size_t>(options.num_threads) + 1;
    return make_map_iterator(self.iterator(), fn, workers);
  });
}

Dataset Dataset::filter(FilterFn keep, std::string name) const {
  return Dataset([=, self = *this] { return std::make_unique<Filter>(self.iterator(), keep, name); });
}

Dataset Dataset::flat_map(FlatMapFn fn, size_t group, bool drop_remainder, std::string name) const {
  return Dataset([=, self = *this] {
    return std::make_unique<FlatMap>(self.iterator(), fn, std::max<size_t>(group, 1), drop_remainder, name);
  });
}

Dataset Dataset::shard(int64_t count, int64_t index) const {
  if (count < 1 || index < 0 || index >= count)
    throw_error<ConfigError>("shard {} of {} does not exist; indices go from 0 to {}", index, count,
                             count - 1);
  return Dataset([=, self = *this] {
    return std::make_unique<Range>(self.iterator(), static_cast<uint64_t>(index),
                                   static_cast<uint64_t>(count), std::numeric_limits<uint64_t>::max());
  });
}

Dataset Dataset::take(uint64_t n) const {
  return Dataset([=, self = *this] { return std::make_unique<Range>(self.iterator(), 0, 1, n); });
}

Dataset Dataset::skip(uint64_t n) const {
  return Dataset([=, self = *this] {
    return std::make_unique<Range>(self.iterator(), n, 1, std::numeric_limits<uint64_t>::max());
  });
}

Dataset Dataset::repeat(std::optional<int64_t> epochs) const {
  return Dataset([=, self = *this] { return std::make_unique<Repeat>(self.iterator(), epochs); });
}

Dataset Dataset::freeze() const {
  return Dataset([self = *this] { return std::make_unique<Freeze>(self); });
}

Dataset Dataset::batch(size_t n, bool drop_remainder) const {
  auto fn = [](std::span<Example> in, uint64_t, std::vector<Example>& out) {
    Example batch;
    for (const auto& [name, value] : in[0]) batch.set(name, stack(in, name, -1));
    out.push_back(std::move(batch));
  };
  return flat_map(fn, n, drop_remainder, "batch");
}

Dataset Dataset::padded_batch(size_t n, std::map<std::string, int64_t> lengths, bool drop_remainder) const {
  auto fn = [lengths](std::span<Example> in, uint64_t, std::vector<Example>& out) {
    Example batch;
    for (const auto& [name, value] : in[0]) {
      int64_t length = -1;
      if (auto given = lengths.find(name); given != lengths.end()) {
        length = given->second;
      } else {
        for (const Example& example : in)
          if (const Array& array = example.array(name); array.shape().rank() > 0)
            length = std::max(length, array.shape()[0]);
      }
      batch.set(name, stack(in, name, length));
    }
    out.push_back(std::move(batch));
  };
  return flat_map(fn, n, drop_remainder, "padded_batch");
}

Dataset Dataset::prefetch(size_t depth, std::shared_ptr<WaitCounter> waits) const {
  return Dataset([=, self = *this] {
    return make_map_iterator(self.iterator(), {},
                             {.kind = "prefetch",
                              .name = "prefetch",
                              .num_threads = depth > 0 ? 1 : 0,
                              .block = 1,
                              .ahead = depth,
                              .waits = waits});
  });
}

Dataset Dataset::context(std::string place) const {
  return Dataset([=, self = *this] {
    return in_context(place, [&] { return std::make_unique<Context>(self.iterator(), place); });
  });
}

std::vector<Example> collect(const Dataset& dataset, size_t limit) {
  std::vector<Example> examples;
  std::unique_ptr<Iterator> iterator = dataset.iterator();
  for (Example example; examples.size() < limit && iterator->next(example);)
    examples.push_back(std::move(example));
  return examples;
}

}  // namespace t5x::seqio
