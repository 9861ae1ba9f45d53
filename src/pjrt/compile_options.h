// How a program is to be compiled; sent to the plugin as xla's CompileOptionsProto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace t5x::pjrt {

using OptionValue = std::variant<std::string, bool, int64_t, double>;
using OptionMap = std::map<std::string, OptionValue>;

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // Shardy annotations (sdy.*) decide the partitioning; otherwise GSPMD's (mhlo.sharding) do.
  bool use_shardy_partitioner = true;
  // Global device ids, [replica][partition] row-major; empty: the plugin's default, 0, 1, ...
  std::vector<int64_t> device_ids = {};
  // XLA flags for this program, by name without dashes; enums by their full names.
  OptionMap overrides = {};
  // Adds the platform's measured defaults (platform_overrides) to `overrides`, where the plugin knows them.
  bool tuned = true;
};

// Throws ConfigError when a count is below 1 (a plugin would abort) or device_ids does not fit the counts.
void check_compile_options(const CompileOptions& options);
// Options that made programs of this project faster on the named platform ("cpu", ...).
OptionMap platform_overrides(std::string_view platform);
// `options` with the platform's added where `tuned` is set and the caller has not set them.
CompileOptions with_platform_overrides(CompileOptions options, std::string_view platform);
// CompileOptionsProto bytes. The same options always give the same bytes.
std::string serialize_compile_options(const CompileOptions& options);

}  // namespace t5x::pjrt
