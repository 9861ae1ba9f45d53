// Shuffle, interleave and sample, in the orders of tf.data (shuffle_dataset_op.cc, interleave_dataset_op.cc
// and sample_from_datasets in data/experimental).
#include <algorithm>

#include "seqio/iterators.h"

namespace t5x::seqio {
namespace {

class Shuffle : public Iterator {
 public:
  Shuffle(std::unique_ptr<Iterator> child, size_t size, int64_t seed)
      : child_(std::move(child)), size_(size), seed_(seed) {
    seeds_ = WordStream(dataset_generator(seed_));
    begin_epoch();
  }

  bool next(Example& out) override {
    for (Example example; !child_ended_ && end_ - start_ < size_;) {
      if (!child_->next(example)) {
        child_ended_ = true;
        break;
      }
      size_t slot = end_++ % size_;
      if (slot == buffer_.size())
        buffer_.push_back(std::move(example));
      else
        buffer_[slot] = std::move(example);
    }
    if (start_ == end_) return false;
    size_t chosen = (start_ + words_.next() % (end_ - start_)) % size_;
    size_t first = start_++ % size_;
    out = std::move(buffer_[chosen]);
    if (chosen != first) buffer_[chosen] = std::move(buffer_[first]);
    return true;
  }
  void restart() override {
    child_->restart();
    begin_epoch();
  }
  Json save() override {
    Json state = new_state("shuffle", child_.get());
    state["seed"] = seed_;
    state["seeds_position"] = seeds_.position();
    state["epoch_seeds"] = epoch_seeds_;
    state["position"] = words_.position();
    state["ended"] = child_ended_;
    Json held = Json::array();
    for (size_t i = start_; i < end_; ++i) held.push_back(to_json(buffer_[i % size_]));
    state["buffer"] = std::move(held);
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "shuffle");
    child_->restore(state.at("child"));
    seed_ = state.at("seed").get<int64_t>();
    seeds_ = WordStream(dataset_generator(seed_));
    seeds_.seek(state.at("seeds_position").get<uint64_t>());
    epoch_seeds_ = state.at("epoch_seeds").get<std::array<uint64_t, 2>>();
    words_ = WordStream(Philox::from_seeds(epoch_seeds_[0], epoch_seeds_[1]));
    words_.seek(state.at("position").get<uint64_t>());
    child_ended_ = state.at("ended").get<bool>();
    const Json& held = state.at("buffer");
    if (held.size() > size_)
      throw_error<DataError>("the saved shuffle buffer holds {} examples, this pipeline's only {}",
                             held.size(), size_);
    start_ = 0;
    end_ = held.size();
    buffer_.clear();
    for (const Json& example : held) buffer_.push_back(example_from_json(example));
  }

 private:
  void begin_epoch() {
    epoch_seeds_[0] = seeds_.next();
    epoch_seeds_[1] = seeds_.next();
    words_ = WordStream(Philox::from_seeds(epoch_seeds_[0], epoch_seeds_[1]));
    start_ = end_ = 0;
    child_ended_ = false;
    buffer_.clear();
  }

  std::unique_ptr<Iterator> child_;
  size_t size_;
  int64_t seed_;
  WordStream seeds_, words_;
  std::array<uint64_t, 2> epoch_seeds_{};
  std::vector<Example> buffer_;  // a ring; [start_, end_) modulo size_ is filled
  size_t start_ = 0, end_ = 0;
  bool child_ended_ = false;
};

class Interleave : public Iterator {
 public:
  Interleave(std::unique_ptr<Iterator> inputs, Dataset::ExpandFn open, size_t cycle, size_t block)
      : inputs_(std::move(inputs)), open_(std::move(open)), block_(block), slots_(cycle) {}

  bool next(Example& out) override {
    while (!inputs_ended_ || num_open_ > 0) {
      Slot& slot = slots_[at_];
      if (slot.iterator) {
        if (slot.iterator->next(out)) {
          if (++taken_ == block_) advance();
          return true;
        }
        slot = {};
        --num_open_;
        advance();
      } else if (!inputs_ended_) {
        if (inputs_->next(slot.input)) {
          slot.iterator = open_(slot.input).iterator();
          ++num_open_;
        } else {
          inputs_ended_ = true;
        }
      } else {
        advance();
      }
    }
    return false;
  }
  void restart() override {
    inputs_->restart();
    clear();
  }
  Json save() override {
    Json state = new_state("interleave", inputs_.get());
    state["at"] = at_;
    state["taken"] = taken_;
    state["ended"] = inputs_ended_;
    Json open = Json::object();
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].iterator)
        open[std::to_string(i)] = {{"input", to_json(slots_[i].input)},
                                   {"state", slots_[i].iterator->save()}};
    state["open"] = std::move(open);
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, "interleave");
    inputs_->restore(state.at("child"));
    clear();
    at_ = state.at("at").get<size_t>();
    taken_ = state.at("taken").get<size_t>();
    inputs_ended_ = state.at("ended").get<bool>();
    for (const auto& [key, saved] : state.at("open").items()) {
      Slot& slot = slots_.at(std::stoul(key));
      slot.input = example_from_json(saved.at("input"));
      slot.iterator = open_(slot.input).iterator();
      slot.iterator->restore(saved.at("state"));
      ++num_open_;
    }
  }

 private:
  struct Slot {
    Example input;
    std::unique_ptr<Iterator> iterator;
  };
  void advance() {
    taken_ = 0;
    at_ = (at_ + 1) % slots_.size();
  }
  void clear() {
    for (Slot& slot : slots_) slot = {};
    at_ = taken_ = num_open_ = 0;
    inputs_ended_ = false;
  }

  std::unique_ptr<Iterator> inputs_;
  Dataset::ExpandFn open_;
  size_t block_;
  std::vector<Slot> slots_;
  size_t at_ = 0, taken_ = 0, num_open_ = 0;
  bool inputs_ended_ = false;
};

class Sample : public Iterator {
 public:
  Sample(std::vector<std::unique_ptr<Iterator>> children, std::vector<double> weights, int64_t seed,
         bool stop_on_empty)
      : children_(std::move(children)),
        live_(children_.size(), true),
        picks_(weights),
        seed_(seed),
        stop_on_empty_(stop_on_empty),
        words_(dataset_random(seed)) {}

  bool next(Example& out) override {
    if (ended_) return false;
    if (children_.size() == 1) return children_[0]->next(out);
    while (std::count(live_.begin(), live_.end(), true) > 0) {
      int64_t first = words_.next();
      size_t k = picks_.pick({first, words_.next()});
      if (!live_[k]) continue;
      if (children_[k]->next(out)) return true;
      live_[k] = false;
      if (stop_on_empty_) break;
    }
    ended_ = true;
    return false;
  }
  void restart() override {
    for (auto& child : children_) child->restart();
    live_.assign(children_.size(), true);
    words_.seek(0);
    ended_ = false;
  }
  Json save() override {
    Json states = Json::array();
    for (auto& child : children_) states.push_back(child->save());
    return {{"kind", "sample"}, {"seed", seed_},   {"position", words_.position()},
            {"live", live_},    {"ended", ended_}, {"children", std::move(states)}};
  }
  void restore(const Json& state) override {
    check_state(state, "sample");
    const Json& states = state.at("children");
    if (states.size() != children_.size())
      throw_error<DataError>("the saved state mixes {} datasets, this pipeline {}", states.size(),
                             children_.size());
    for (size_t i = 0; i < children_.size(); ++i) children_[i]->restore(states[i]);
    seed_ = state.at("seed").get<int64_t>();
    words_ = dataset_random(seed_);
    words_.seek(state.at("position").get<uint64_t>());
    live_ = state.at("live").get<std::vector<bool>>();
    ended_ = state.at("ended").get<bool>();
  }

 private:
  std::vector<std::unique_ptr<Iterator>> children_;
  std::vector<bool> live_;
  Multinomial picks_;
  int64_t seed_;
  bool stop_on_empty_, ended_ = false;
  WordStream words_;
};

}  // namespace

Dataset Dataset::shuffle(size_t buffer_size, std::optional<int64_t> seed) const {
  if (buffer_size == 0) throw_error<ConfigError>("a shuffle buffer must hold at least one example");
  return Dataset([=, self = *this] {
    return std::make_unique<Shuffle>(self.iterator(), buffer_size, seed ? *seed : random_seed());
  });
}

Dataset Dataset::interleave(ExpandFn open, size_t cycle, size_t block) const {
  if (cycle == 0 || block == 0)
    throw_error<ConfigError>("interleave needs cycle and block lengths of at least 1");
  return Dataset(
      [=, self = *this] { return std::make_unique<Interleave>(self.iterator(), open, cycle, block); });
}

Dataset Dataset::sample(std::vector<Dataset> datasets, std::vector<double> weights,
                        std::optional<int64_t> seed, bool stop_on_empty) {
  if (datasets.size() != weights.size())
    throw_error<ConfigError>("{} datasets to sample from, but {} weights", datasets.size(), weights.size());
  std::vector<Dataset> used;
  std::vector<double> used_weights;
  for (size_t i = 0; i < datasets.size(); ++i) {
    if (weights[i] <= 0) continue;
    used.push_back(datasets[i]);
    used_weights.push_back(weights[i]);
  }
  if (used.empty()) return Dataset::in_memory({});
  return Dataset([=] {
    std::vector<std::unique_ptr<Iterator>> children;
    for (const Dataset& dataset : used) children.push_back(dataset.iterator());
    return std::make_unique<Sample>(std::move(children), used_weights, seed ? *seed : random_seed(),
                                    stop_on_empty);
  });
}

}  // namespace t5x::seqio
