// What the compiler made of a program, whether loaded on devices or compiled for devices that are elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pjrt/buffer.h"

struct PJRT_Api;
struct PJRT_Executable;

namespace t5x::pjrt {

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

class CompiledProgram {
 public:
  CompiledProgram(CompiledProgram&& other) noexcept { *this = std::move(other); }
  CompiledProgram& operator=(CompiledProgram&& other) noexcept;
  ~CompiledProgram() { release(); }

  // What one device gets for each result. Throws DeviceError for types this project has no arrays of.
  std::vector<std::shared_ptr<const TensorSpec>> outputs() const;
  MemoryStats memory_stats() const;
  // Properties such as "flops" and "bytes accessed"; empty where the plugin has none.
  std::map<std::string, double> cost_analysis() const;
  // The optimised program and its format: "hlo" or "hlo_with_config", protobufs of XLA.
  struct Text {
    std::string format, code;
  };
  Text optimized_program() const;
  // Empty where the plugin has none.
  std::string fingerprint() const;
  // Bytes for Client::load of the very same plugin on the same kind of machine.
  std::string serialize() const;

 private:
  friend class Executable;
  friend class Topology;
  CompiledProgram() = default;
  // Takes ownership of `executable`; `owner` lives as long.
  CompiledProgram(const PJRT_Api* api, PJRT_Executable* executable, std::shared_ptr<void> owner);
  void release() noexcept;

  const PJRT_Api* api_ = nullptr;
  PJRT_Executable* executable_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace t5x::pjrt
