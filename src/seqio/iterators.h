// Shared by the iterators of this folder: states, and errors that name the stage and the example.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "seqio/dataset.h"

namespace t5x::seqio {

// {"kind": kind, "child": ...}
Json new_state(std::string_view kind, Iterator* child = nullptr);
// Throws DataError when the state is of another kind of stage.
void check_state(const Json& state, std::string_view kind);

template <class Examples>
Json save_examples(const Examples& examples, size_t from = 0) {
  Json list = Json::array();
  for (size_t i = from; i < examples.size(); ++i) list.push_back(to_json(examples[i]));
  return list;
}

// Runs `body`; an exception of any kind leaves as an Error that names the stage and the example.
template <class F>
void in_stage(const std::string& stage, uint64_t example, F&& body) {
  auto place = [&] { return fmt::format("preprocessor '{}', example {}", stage, example); };
  try {
    body();
  } catch (Error& e) {
    e.add_context(place());
    throw;
  } catch (const std::exception& e) {
    DataError error(fmt::format("failed: {}", e.what()));
    error.add_context(place());
    throw error;
  }
}

// Ordered maps on `num_threads` threads, `ahead` blocks of `block` examples; fn may be empty. With 0 threads
// the caller's own. States do not depend on the number of threads. `kind` is "map" or "prefetch".
struct WorkerOptions {
  std::string kind = "map", name = "map";
  int num_threads = 0;
  size_t block = 1, ahead = 2;
  std::shared_ptr<WaitCounter> waits = nullptr;
};
std::unique_ptr<Iterator> make_map_iterator(std::unique_ptr<Iterator> child, Dataset::MapFn fn,
                                            WorkerOptions options);

}  // namespace t5x::seqio
