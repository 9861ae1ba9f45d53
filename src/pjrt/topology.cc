#include "pjrt/topology.h"

#include <cstdlib>

#include "base/error.h"
#include "pjrt/core.h"

namespace t5x::pjrt {

struct Topology::Core {
  const PJRT_Api* api = nullptr;
  PJRT_TopologyDescription* topology = nullptr;
  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() {
    if (topology == nullptr) return;
    T5X_PJRT_ARGS(PJRT_TopologyDescription_Destroy_Args, args);
    args.topology = topology;
    call_quietly(api, &PJRT_Api::PJRT_TopologyDescription_Destroy, args);
  }
};

Topology::Topology(std::shared_ptr<Core> core) : core_(std::move(core)) {
  constexpr std::string_view kAsked = "describing a topology";
  T5X_PJRT_ARGS(PJRT_TopologyDescription_PlatformName_Args, platform);
  platform.topology = core_->topology;
  call(core_->api, &PJRT_Api::PJRT_TopologyDescription_PlatformName, platform, kAsked);
  platform_name_.assign(platform.platform_name, platform.platform_name_size);
  T5X_PJRT_ARGS(PJRT_TopologyDescription_PlatformVersion_Args, version);
  version.topology = core_->topology;
  call(core_->api, &PJRT_Api::PJRT_TopologyDescription_PlatformVersion, version, kAsked);
  platform_version_.assign(version.platform_version, version.platform_version_size);
  T5X_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions_Args, devices);
  devices.topology = core_->topology;
  call(core_->api, &PJRT_Api::PJRT_TopologyDescription_GetDeviceDescriptions, devices, kAsked);
  num_devices_ = devices.num_descriptions;
}

Topology Topology::create(const TopologyOptions& options) {
  const std::filesystem::path path = find_plugin(options.plugin);
  if (const char* flags = std::getenv("XLA_FLAGS")) check_xla_flags(flags, path);
  auto core = std::make_shared<Core>();
  core->api = Plugin::load(path).api();
  const std::vector<PJRT_NamedValue> named = named_values(options.options);
  T5X_PJRT_ARGS(PJRT_TopologyDescription_Create_Args, args);
  args.topology_name = options.name.data();
  args.topology_name_size = options.name.size();
  args.create_options = named.data();
  args.num_options = named.size();
  call(core->api, &PJRT_Api::PJRT_TopologyDescription_Create, args,
       [&] { return fmt::format("creating the topology '{}' of {}", options.name, path.string()); });
  core->topology = args.topology;
  return Topology(std::move(core));
}

CompiledProgram Topology::compile(std::string_view stablehlo, const CompileOptions& options) const {
  const CompileOptions all = with_platform_overrides(options, platform_name_);
  const std::string bytes = serialize_compile_options(all);
  if (static_cast<uint64_t>(all.num_replicas * all.num_partitions) > num_devices_)
    throw_error<ConfigError>("{} replicas of {} partitions need more than the topology's {} devices",
                             all.num_replicas, all.num_partitions, num_devices_);
  constexpr std::string_view kFormat = "mlir";
  T5X_PJRT_ARGS(PJRT_Program, program);
  program.code = const_cast<char*>(stablehlo.data());
  program.code_size = stablehlo.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  T5X_PJRT_ARGS(PJRT_Compile_Args, args);
  args.topology = core_->topology;
  args.program = &program;
  args.compile_options = bytes.data();
  args.compile_options_size = bytes.size();
  call(core_->api, &PJRT_Api::PJRT_Compile, args, "compiling a program ahead of time");
  return CompiledProgram(core_->api, args.executable, core_);
}

}  // namespace t5x::pjrt
