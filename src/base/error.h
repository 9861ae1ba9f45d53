// Errors: one family of exceptions. A message says what was expected, what came and what to do; context
// ("in encoder/layers_0", "pretrain.gin:12:3", "shard 3, record 17") is added while the stack unwinds.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace t5x {

class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) { compose(); }

  // Adds the place the error passed through, innermost first.
  void add_context(std::string place);

  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }
  // The message and, on lines of their own, the places it passed through.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  std::string message_;
  std::vector<std::string> context_;
  std::string text_;
};

// A wrong configuration: a gin file, a flag, a value out of range.
class ConfigError : public Error {
  using Error::Error;
};
// Shapes, dtypes or attributes that do not fit an operation.
class ShapeError : public Error {
  using Error::Error;
};
// Bad or missing input data.
class DataError : public Error {
  using Error::Error;
};
// The operating system said no: a file, a directory, a full disk.
class IoError : public Error {
  using Error::Error;
};
// A checkpoint that cannot be read or written.
class CheckpointError : public Error {
  using Error::Error;
};
// The accelerator plugin is missing or reported an error.
class DeviceError : public Error {
  using Error::Error;
};
// A training run that cannot go on, such as one whose loss is no longer finite.
class TrainError : public Error {
  using Error::Error;
};
// A defect of this program: please report it.
class InternalError : public Error {
  using Error::Error;
};

// throw_error<DataError>("expected {} columns, found {}", 2, 1)
template <class E, class... Args>
[[noreturn]] void throw_error(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

// Runs `body` and adds `place` to any Error that leaves it.
template <class F>
decltype(auto) in_context(std::string place, F&& body) {
  try {
    return std::forward<F>(body)();
  } catch (Error& e) {
    e.add_context(std::move(place));
    throw;
  }
}

}  // namespace t5x
