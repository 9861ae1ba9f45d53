// Maps, in the caller's thread or on workers. Workers take turns to pull a block of examples, which fixes its
// place in the queue and the indices (and so the seeds) of its examples; then they work on their blocks side
// by side, and the consumer takes blocks in the order of the queue.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "seqio/iterators.h"

namespace t5x::seqio {
namespace {

class SerialMap : public Iterator {
 public:
  SerialMap(std::unique_ptr<Iterator> child, Dataset::MapFn fn, WorkerOptions options)
      : child_(std::move(child)), fn_(std::move(fn)), options_(std::move(options)) {}

  bool next(Example& out) override {
    if (!ready_.empty()) {
      out = std::move(ready_.front());
      ready_.pop_front();
    } else {
      // The time to make an element here is time its consumer stands waiting.
      auto start = std::chrono::steady_clock::now();
      if (!child_->next(out)) return false;
      if (fn_) in_stage(options_.name, index_, [&] { fn_(out, index_); });
      ++index_;
      if (options_.waits)
        options_.waits->add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                            true);
    }
    return true;
  }
  void restart() override {
    ready_.clear();
    index_ = 0;
    child_->restart();
  }
  Json save() override {
    Json state = new_state(options_.kind, child_.get());
    state["index"] = index_;
    state["ready"] = save_examples(ready_);
    return state;
  }
  void restore(const Json& state) override {
    check_state(state, options_.kind);
    child_->restore(state.at("child"));
    index_ = state.at("index").get<uint64_t>();
    ready_.clear();
    for (const Json& example : state.at("ready")) ready_.push_back(example_from_json(example));
  }

 private:
  std::unique_ptr<Iterator> child_;
  Dataset::MapFn fn_;
  WorkerOptions options_;
  uint64_t index_ = 0;
  std::deque<Example> ready_;  // made before the state was saved
};

class ParallelMap : public Iterator {
 public:
  ParallelMap(std::unique_ptr<Iterator> child, Dataset::MapFn fn, WorkerOptions options)
      : child_(std::move(child)), fn_(std::move(fn)), options_(std::move(options)) {}
  ~ParallelMap() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool next(Example& out) override {
    for (;;) {
      if (current_ && current_->taken < current_->examples.size()) {
        out = std::move(current_->examples[current_->taken++]);
        return true;
      }
      if (current_ && current_->error) std::rethrow_exception(current_->error);
      if (!take_block()) return false;
    }
  }
  void restart() override {
    Pause pause(*this);
    child_->restart();
    reset(0);
  }
  Json save() override {
    Pause pause(*this);
    Json ready = Json::array();
    auto add = [&](const Block& block) {
      // The error would be lost with the state, and the example with it.
      if (block.error) std::rethrow_exception(block.error);
      for (size_t i = block.taken; i < block.examples.size(); ++i)
        ready.push_back(to_json(block.examples[i]));
    };
    if (current_) add(*current_);
    for (const auto& block : queue_) add(*block);
    Json state = new_state(options_.kind, child_.get());
    state["index"] = index_;
    state["ready"] = std::move(ready);
    return state;
  }
  void restore(const Json& state) override {
    Pause pause(*this);
    check_state(state, options_.kind);
    child_->restore(state.at("child"));
    reset(state.at("index").get<uint64_t>());
    auto block = std::make_shared<Block>();
    for (const Json& example : state.at("ready")) block->examples.push_back(example_from_json(example));
    block->done = true;
    current_ = std::move(block);
  }

 private:
  struct Block {
    std::vector<Example> examples;
    size_t taken = 0;
    std::exception_ptr error;  // comes after the examples
    bool done = false;
  };

  // While one lives, no worker touches the child or a block.
  class Pause {
   public:
    explicit Pause(ParallelMap& map) : map_(map), lock_(map.mutex_) {
      map_.paused_ = true;
      map_.ready_.wait(lock_, [&] { return map_.active_ == 0; });
    }
    ~Pause() {
      map_.paused_ = false;
      lock_.unlock();
      map_.work_.notify_all();
    }

   private:
    ParallelMap& map_;
    std::unique_lock<std::mutex> lock_;
  };

  void reset(uint64_t index) {
    queue_.clear();
    current_.reset();
    index_ = index;
    ended_ = false;
  }

  // The next block in order into current_; false at the end.
  bool take_block() {
    std::unique_lock lock(mutex_);
    while (threads_.size() < static_cast<size_t>(options_.num_threads))
      threads_.emplace_back([this] { work(); });
    auto is_ready = [&] { return queue_.empty() ? ended_ && !pulling_ : queue_.front()->done; };
    double waited = 0;
    bool had_to_wait = !is_ready();
    if (had_to_wait) {
      auto start = std::chrono::steady_clock::now();
      ready_.wait(lock, is_ready);
      waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    if (queue_.empty()) return false;
    current_ = std::move(queue_.front());
    queue_.pop_front();
    if (options_.waits && !current_->examples.empty()) options_.waits->add(waited, had_to_wait);
    lock.unlock();
    work_.notify_one();
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] {
        return stop_ || (!paused_ && !pulling_ && !ended_ && queue_.size() < options_.ahead);
      });
      if (stop_) return;
      auto block = std::make_shared<Block>();
      queue_.push_back(block);
      pulling_ = true;
      ++active_;
      uint64_t first = index_;
      lock.unlock();
      bool ended = pull(*block);
      lock.lock();
      index_ += block->examples.size();
      pulling_ = false;
      ended_ = ended_ || ended;
      lock.unlock();
      work_.notify_one();
      process(*block, first);
      lock.lock();
      block->done = true;
      if (block->error) ended_ = true;
      --active_;
      ready_.notify_all();
    }
  }

  // True at the end of the child's epoch or at an error.
  bool pull(Block& block) noexcept {
    try {
      for (size_t i = 0; i < options_.block; ++i) {
        Example example;
        if (!child_->next(example)) return true;
        block.examples.push_back(std::move(example));
      }
      return false;
    } catch (...) {
      block.error = std::current_exception();
      return true;
    }
  }

  void process(Block& block, uint64_t first) noexcept {
    if (!fn_) return;
    for (size_t i = 0; i < block.examples.size(); ++i) {
      try {
        in_stage(options_.name, first + i, [&] { fn_(block.examples[i], first + i); });
      } catch (...) {
        block.error = std::current_exception();
        block.examples.resize(i);
        return;
      }
    }
  }

  std::unique_ptr<Iterator> child_;
  const Dataset::MapFn fn_;
  const WorkerOptions options_;
  std::shared_ptr<Block> current_;  // the consumer's own

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::deque<std::shared_ptr<Block>> queue_;
  uint64_t index_ = 0;
  int active_ = 0;
  bool pulling_ = false, ended_ = false, paused_ = false, stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Iterator> make_map_iterator(std::unique_ptr<Iterator> child, Dataset::MapFn fn,
                                            WorkerOptions options) {
  if (options.num_threads <= 0)
    return std::make_unique<SerialMap>(std::move(child), std::move(fn), std::move(options));
  return std::make_unique<ParallelMap>(std::move(child), std::move(fn), std::move(options));
}

}  // namespace t5x::seqio
