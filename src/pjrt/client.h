// A connection to the devices of one plugin: the root of everything on devices. Buffers and executables keep
// what they need of it alive, so the client may go first.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.h"
#include "pjrt/buffer.h"
#include "pjrt/compile_options.h"
#include "pjrt/executable.h"

namespace t5x::pjrt {

struct ClientOptions {
  // Empty: see find_plugin.
  std::string plugin = {};
  // Virtual devices of a CPU plugin; 0: the plugin's default.
  int64_t cpu_device_count = 0;
  // Further options of the plugin, by its names.
  OptionMap options = {};
};

struct DeviceInfo {
  int id = 0;
  int process_index = 0;
  std::string kind;
  std::string description;
  bool addressable = false;
};

class Client {
 public:
  // Throws DeviceError (no plugin, not a plugin, the plugin refused) and ConfigError (XLA_FLAGS, options).
  static Client create(const ClientOptions& options = {});

  // "cpu", "cuda", "tpu"
  const std::string& platform_name() const;
  const std::string& platform_version() const;
  int process_index() const;
  // All devices of the job, this process's and the others'.
  const std::vector<DeviceInfo>& devices() const;
  // Those that this process feeds; everything here counts devices by their place in this list.
  const std::vector<DeviceInfo>& addressable_devices() const;
  // A line that tells apart whatever changes compiled code: plugin build, API and platform version, device
  // kind, XLA_FLAGS, and on the CPU its features and the number of usable cores. Part of cache keys.
  const std::string& identity() const;

  // Throws DeviceError when there is no such device or not enough memory.
  Buffer to_device(const Array& array, size_t device = 0, HostTransfer how = HostTransfer::kCopy) const;

  // Compiles StableHLO text whose @main takes `arguments` (the shapes one device sees).
  // Throws DeviceError with the compiler's message.
  Executable compile(std::string_view stablehlo, std::vector<ArgumentSpec> arguments,
                     const CompileOptions& options = {}) const;
  // Loads what Executable::serialize gave. Plugins load one another's bytes silently, so keep identity() with
  // them and compare. Throws DeviceError if the plugin refuses.
  Executable load(std::string_view serialized, std::vector<ArgumentSpec> arguments) const;

 private:
  explicit Client(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}
  std::shared_ptr<ClientCore> core_;
};

}  // namespace t5x::pjrt
