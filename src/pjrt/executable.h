// A compiled program, loaded on its devices and ready to run. Arguments are checked against the declared
// signature before they reach the plugin, which takes any buffer of the right size in bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pjrt/buffer.h"
#include "pjrt/compiled_program.h"

struct PJRT_LoadedExecutable;

namespace t5x::pjrt {

struct ArgumentSpec {
  TensorSpec spec = {};
  // The program may overwrite it (tf.aliasing_output or jax.buffer_donor in the text); the buffer is gone
  // after.
  bool donated = false;
  // Shown in error messages: "params/encoder/layers_0/mlp/wi/kernel".
  std::string name = {};
};

struct ExecuteOptions {
  // Arguments to keep although the program donates them; the plugin copies instead.
  std::vector<int64_t> non_donatable = {};
};

class Executable {
 public:
  Executable(Executable&& other) noexcept { *this = std::move(other); }
  Executable& operator=(Executable&& other) noexcept;
  ~Executable() { release(); }

  const std::vector<ArgumentSpec>& arguments() const { return arguments_; }
  // What one device gets for each result.
  size_t num_outputs() const { return outputs_.size(); }
  const TensorSpec& output(size_t i) const { return *outputs_[i]; }
  // The devices it runs on here, as indices into Client::addressable_devices(), in execution order.
  const std::vector<size_t>& devices() const { return devices_; }

  // Starts the program: arguments[device][argument] -> outputs[device][result]. Returns at once on plugins
  // that run asynchronously; errors of the computation come out of Buffer::await and to_host. Donated
  // arguments are empty afterwards. Throws ShapeError (count, dtype, shape) and DeviceError (deleted,
  // donated, wrong device, the same buffer donated and used twice) before anything runs.
  std::vector<std::vector<Buffer>> execute(std::span<const std::span<Buffer* const>> arguments,
                                           const ExecuteOptions& options = {}) const;
  // The same for a program on one device.
  std::vector<Buffer> execute(std::span<Buffer* const> arguments, const ExecuteOptions& options = {}) const;

  // Memory, costs, the optimised program, bytes to store.
  const CompiledProgram& program() const { return program_; }
  MemoryStats memory_stats() const { return program_.memory_stats(); }
  std::string serialize() const { return program_.serialize(); }

 private:
  friend class Client;
  Executable(std::shared_ptr<ClientCore> core, PJRT_LoadedExecutable* loaded,
             std::vector<ArgumentSpec> arguments);
  void release() noexcept;
  void read_devices();
  void check_arguments(std::span<const std::span<Buffer* const>> arguments) const;
  void check_argument(const Buffer* buffer, size_t index, size_t device) const;
  void check_donation(std::span<const std::span<Buffer* const>> arguments,
                      const std::vector<bool>& kept) const;
  std::string describe_argument(size_t index) const;

  std::shared_ptr<ClientCore> core_;
  PJRT_LoadedExecutable* loaded_ = nullptr;
  CompiledProgram program_;
  std::vector<ArgumentSpec> arguments_;
  std::vector<std::shared_ptr<const TensorSpec>> outputs_;
  std::vector<size_t> devices_;
  std::vector<size_t> donated_;
};

}  // namespace t5x::pjrt
