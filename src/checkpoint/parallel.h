// Runs a counted loop on a few threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace t5x::checkpoint {

// body(i) for i in [0, count) on at most `threads` threads (the caller's included), in no order. After the
// first exception no new index starts; it is rethrown when all threads have stopped.
template <class F>
void parallel_for(int64_t count, unsigned threads, const F& body) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (;;) {
      const int64_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        next.store(count);
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < threads && i < count; ++i) workers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace t5x::checkpoint
