// A compiled program, loaded on its devices and ready to run. Arguments are checked against the declared
// signature before they reach the plugin, which takes any buffer of the right size in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pjrt/buffer.h"

struct PJRT_LoadedExecutable;
struct PJRT_Executable;

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

// Bytes on one device, as the compiler planned them.
struct MemoryStats {
  int64_t arguments = 0;
  int64_t outputs = 0;
  // The part of the arguments whose memory the outputs reuse.
  int64_t alias = 0;
  int64_t temporaries = 0;
  int64_t generated_code = 0;
  // 0 where the plugin does not tell.
  int64_t peak = 0;
  // Arguments, outputs and temporaries without what is shared.
  int64_t total() const { return arguments + outputs + temporaries - alias; }
};

class Executable {
 public:
  Executable(Executable&&) noexcept = default;
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

  MemoryStats memory_stats() const;
  // Properties such as "flops" and "bytes accessed"; empty where the plugin has none.
  std::map<std::string, double> cost_analysis() const;
  // The optimised program and its format: "hlo" or "hlo_with_config", protobufs of XLA.
  struct Program {
    std::string format, code;
  };
  Program optimized_program() const;
  // Empty where the plugin has none.
  std::string fingerprint() const;
  // Bytes for Client::load of the very same plugin on the same kind of machine.
  std::string serialize() const;

 private:
  friend class Client;
  Executable(std::shared_ptr<ClientCore> core, PJRT_LoadedExecutable* loaded,
             std::vector<ArgumentSpec> arguments);
  void release() noexcept;
  void read_outputs();
  void read_devices();
  void check_arguments(std::span<const std::span<Buffer* const>> arguments) const;
  void check_argument(const Buffer* buffer, size_t index, size_t device) const;
  void check_donation(std::span<const std::span<Buffer* const>> arguments,
                      const std::vector<bool>& kept) const;
  std::string describe_argument(size_t index) const;

  std::shared_ptr<ClientCore> core_;
  // A unique_ptr-like pair: both null after a move.
  struct Handle {
    PJRT_LoadedExecutable* loaded = nullptr;
    PJRT_Executable* executable = nullptr;
    Handle() = default;
    Handle(Handle&& other) noexcept
        : loaded(std::exchange(other.loaded, nullptr)),
          executable(std::exchange(other.executable, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
      loaded = std::exchange(other.loaded, nullptr);
      executable = std::exchange(other.executable, nullptr);
      return *this;
    }
  };
  Handle handle_;
  std::vector<ArgumentSpec> arguments_;
  std::vector<std::shared_ptr<const TensorSpec>> outputs_;
  std::vector<size_t> devices_;
  std::vector<size_t> donated_;
};

}  // namespace t5x::pjrt
