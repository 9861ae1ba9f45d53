// Devices that need not be here: programs are compiled for them ahead of time, to learn whether they compile,
// what memory they need and which collectives they use, or to be loaded there later.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/compile_options.h"
#include "pjrt/compiled_program.h"

namespace t5x::pjrt {

struct TopologyOptions {
  // Empty: see find_plugin.
  std::string plugin = {};
  // In the plugin's language: "v5e:16x16", "v4:8x8x8"; may be empty where options say it all.
  std::string name = {};
  OptionMap options = {};
};

class Topology {
 public:
  // Throws DeviceError if the plugin does not know it. TPU plugins want TPU_SKIP_MDS_QUERY=1 in the
  // environment where there is no TPU, or they wait for minutes.
  static Topology create(const TopologyOptions& options);

  const std::string& platform_name() const { return platform_name_; }
  const std::string& platform_version() const { return platform_version_; }
  size_t num_devices() const { return num_devices_; }

  // Throws DeviceError with the compiler's message, ConfigError when more devices are asked than there are.
  CompiledProgram compile(std::string_view stablehlo, const CompileOptions& options = {}) const;

 private:
  struct Core;
  explicit Topology(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
  std::string platform_name_, platform_version_;
  size_t num_devices_ = 0;
};

}  // namespace t5x::pjrt
