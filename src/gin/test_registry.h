// For the tests of this folder: configurables with the names and parameters of t5x's, whose calls are
// counted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gin/config.h"
#include "gin/registry.h"

namespace t5x::gin {

struct Vocabulary {
  virtual ~Vocabulary() = default;
};
struct SentencePiece : Vocabulary {
  explicit SentencePiece(std::string path) : file(std::move(path)) {}
  std::string file;
};
struct Dataset {
  std::string task;
  std::vector<std::pair<std::string, int64_t>> lengths;
  int64_t batch_size = 0;
  bool shuffle = false;
};
struct Model {
  std::shared_ptr<Vocabulary> vocabulary;
  double z_loss = 0;
};

// Fills a registry; `calls` counts the calls by full name.
class TestRegistry {
 public:
  TestRegistry();
  Registry registry;
  std::map<std::string, int> calls;

 private:
  void add(std::string name, std::vector<Param> params, std::function<Value(const Args&)> call = {},
           bool cheap = false);
};

// What `body` throws as ConfigError, or "" if nothing.
template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace t5x::gin
