#include "pjrt/client.h"

#include <sched.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/strings.h"
#include "pjrt/core.h"

namespace t5x::pjrt {
namespace {

constexpr int64_t kMostCpuDevices = 4096;

// Some plugins abort on a device count that is no integer or is out of range.
OptionMap checked_options(const ClientOptions& options) {
  constexpr const char* kCount = "cpu_device_count";
  OptionMap all = options.options;
  if (options.cpu_device_count != 0) all[kCount] = options.cpu_device_count;
  if (const auto it = all.find(kCount); it != all.end()) {
    const auto* count = std::get_if<int64_t>(&it->second);
    if (count == nullptr || *count < 1 || *count > kMostCpuDevices)
      throw_error<ConfigError>("the option {} must be an integer from 1 to {}", kCount, kMostCpuDevices);
  }
  return all;
}

DeviceInfo describe_device(const PJRT_Api* api, PJRT_Device* device) {
  constexpr std::string_view kAsked = "describing a device";
  T5X_PJRT_ARGS(PJRT_Device_GetDescription_Args, get);
  get.device = device;
  call(api, &PJRT_Api::PJRT_Device_GetDescription, get, kAsked);
  T5X_PJRT_ARGS(PJRT_DeviceDescription_Id_Args, id);
  id.device_description = get.device_description;
  call(api, &PJRT_Api::PJRT_DeviceDescription_Id, id, kAsked);
  T5X_PJRT_ARGS(PJRT_DeviceDescription_ProcessIndex_Args, process);
  process.device_description = get.device_description;
  call(api, &PJRT_Api::PJRT_DeviceDescription_ProcessIndex, process, kAsked);
  T5X_PJRT_ARGS(PJRT_DeviceDescription_Kind_Args, kind);
  kind.device_description = get.device_description;
  call(api, &PJRT_Api::PJRT_DeviceDescription_Kind, kind, kAsked);
  T5X_PJRT_ARGS(PJRT_DeviceDescription_ToString_Args, text);
  text.device_description = get.device_description;
  call(api, &PJRT_Api::PJRT_DeviceDescription_ToString, text, kAsked);
  T5X_PJRT_ARGS(PJRT_Device_IsAddressable_Args, addressable);
  addressable.device = device;
  call(api, &PJRT_Api::PJRT_Device_IsAddressable, addressable, kAsked);
  return {id.id, process.process_index, std::string(kind.device_kind, kind.device_kind_size),
          std::string(text.to_string, text.to_string_size), addressable.is_addressable};
}

void read_platform(ClientCore& core) {
  constexpr std::string_view kAsked = "asking for the platform";
  T5X_PJRT_ARGS(PJRT_Client_PlatformName_Args, platform);
  platform.client = core.client;
  call(core.api, &PJRT_Api::PJRT_Client_PlatformName, platform, kAsked);
  core.platform_name.assign(platform.platform_name, platform.platform_name_size);
  T5X_PJRT_ARGS(PJRT_Client_PlatformVersion_Args, version);
  version.client = core.client;
  call(core.api, &PJRT_Api::PJRT_Client_PlatformVersion, version, kAsked);
  core.platform_version.assign(version.platform_version, version.platform_version_size);
  T5X_PJRT_ARGS(PJRT_Client_ProcessIndex_Args, process);
  process.client = core.client;
  call(core.api, &PJRT_Api::PJRT_Client_ProcessIndex, process, kAsked);
  core.process_index = process.process_index;
}

void read_devices(ClientCore& core) {
  constexpr std::string_view kAsked = "listing the devices";
  T5X_PJRT_ARGS(PJRT_Client_Devices_Args, all);
  all.client = core.client;
  call(core.api, &PJRT_Api::PJRT_Client_Devices, all, kAsked);
  for (size_t i = 0; i < all.num_devices; ++i)
    core.devices.push_back(describe_device(core.api, all.devices[i]));
  T5X_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, own);
  own.client = core.client;
  call(core.api, &PJRT_Api::PJRT_Client_AddressableDevices, own, kAsked);
  for (size_t i = 0; i < own.num_addressable_devices; ++i) {
    core.addressable_handles.push_back(own.addressable_devices[i]);
    core.addressable.push_back(describe_device(core.api, own.addressable_devices[i]));
  }
  if (core.addressable.empty())
    throw_error<DeviceError>("the plugin {} has no device that this process can use",
                             core.plugin.path().string());
}

// The first "flags" line: every feature the compiler may use.
std::string cpu_features() {
  for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n')) {
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  }
  return "unknown";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

std::string make_identity(const ClientCore& core) {
  const char* flags = std::getenv("XLA_FLAGS");
  std::string text = fmt::format("plugin={} api={} platform={} version={} kind={} devices={} flags={}",
                                 core.plugin.build_id(), core.plugin.api_version(), core.platform_name,
                                 core.platform_version, core.addressable.front().kind, core.devices.size(),
                                 flags != nullptr ? flags : "");
  if (core.platform_name == "cpu")
    text += fmt::format(" cores={} cpu={}", usable_cores(), sha256_hex(cpu_features()));
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

// A program that overwrites arguments nobody declared as donated would write over memory still in use, even
// over host arrays that a device borrows.
void check_donations(std::string_view stablehlo, const std::vector<ArgumentSpec>& arguments) {
  size_t marked = 0;
  for (std::string_view mark : {"tf.aliasing_output", "jax.buffer_donor"}) {
    for (size_t at = stablehlo.find(mark); at != std::string_view::npos; at = stablehlo.find(mark, at + 1))
      ++marked;
  }
  size_t declared = 0;
  for (const ArgumentSpec& argument : arguments) declared += argument.donated ? 1 : 0;
  if (marked > declared)
    throw_error<ShapeError>(
        "the program donates {} of its arguments (tf.aliasing_output, jax.buffer_donor), but {} are declared "
        "so; "
        "set ArgumentSpec::donated for each",
        marked, declared);
}

}  // namespace

std::vector<PJRT_NamedValue> named_values(const OptionMap& options) {
  std::vector<PJRT_NamedValue> out;
  for (const auto& [name, value] : options) {
    T5X_PJRT_ARGS(PJRT_NamedValue, named);
    named.name = name.data();
    named.name_size = name.size();
    named.value_size = 1;
    if (const auto* text = std::get_if<std::string>(&value)) {
      named.type = PJRT_NamedValue_kString;
      named.string_value = text->data();
      named.value_size = text->size();
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      named.type = PJRT_NamedValue_kBool;
      named.bool_value = *flag;
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      named.type = PJRT_NamedValue_kInt64;
      named.int64_value = *number;
    } else {
      named.type = PJRT_NamedValue_kFloat;
      named.float_value = static_cast<float>(std::get<double>(value));
    }
    out.push_back(named);
  }
  return out;
}

ClientCore::~ClientCore() {
  if (client == nullptr) return;
  T5X_PJRT_ARGS(PJRT_Client_Destroy_Args, args);
  args.client = client;
  call_quietly(api, &PJRT_Api::PJRT_Client_Destroy, args);
}

size_t ClientCore::index_of(PJRT_Device* wanted) const {
  for (size_t i = 0; i < addressable_handles.size(); ++i) {
    if (addressable_handles[i] == wanted) return i;
  }
  throw_error<DeviceError>("the plugin named a device that this process cannot reach");
}

PJRT_Device* ClientCore::device(size_t index) const {
  if (index >= addressable_handles.size())
    throw_error<DeviceError>("there is no device {}: this process has {} ({})", index,
                             addressable_handles.size(), platform_name);
  return addressable_handles[index];
}

Client Client::create(const ClientOptions& options) {
  const OptionMap all = checked_options(options);
  const fs::path path = find_plugin(options.plugin);
  if (const char* flags = std::getenv("XLA_FLAGS")) check_xla_flags(flags, path);
  auto core = std::make_shared<ClientCore>(Plugin::load(path));

  const std::vector<PJRT_NamedValue> named = named_values(all);
  T5X_PJRT_ARGS(PJRT_Client_Create_Args, args);
  args.create_options = named.data();
  args.num_options = named.size();
  call(core->api, &PJRT_Api::PJRT_Client_Create, args,
       [&] { return "creating a client of " + path.string(); });
  core->client = args.client;
  read_platform(*core);
  read_devices(*core);
  return Client(std::move(core));
}

const std::string& Client::platform_name() const { return core_->platform_name; }
const std::string& Client::platform_version() const { return core_->platform_version; }
int Client::process_index() const { return core_->process_index; }
const std::vector<DeviceInfo>& Client::devices() const { return core_->devices; }
const std::vector<DeviceInfo>& Client::addressable_devices() const { return core_->addressable; }

const std::string& Client::identity() const {
  const std::lock_guard lock(core_->mutex);
  if (core_->identity.empty()) core_->identity = make_identity(*core_);
  return core_->identity;
}

Executable Client::compile(std::string_view stablehlo, std::vector<ArgumentSpec> arguments,
                           const CompileOptions& options) const {
  check_compile_options(options);
  check_donations(stablehlo, arguments);
  CompileOptions all = with_platform_overrides(options, core_->platform_name);
  {
    const std::lock_guard lock(core_->mutex);
    for (const std::string& name : core_->unsupported) {
      if (!options.overrides.contains(name)) all.overrides.erase(name);
    }
  }
  constexpr std::string_view kFormat = "mlir";
  T5X_PJRT_ARGS(PJRT_Program, program);
  program.code = const_cast<char*>(stablehlo.data());
  program.code_size = stablehlo.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  T5X_PJRT_ARGS(PJRT_Client_Compile_Args, args);
  args.client = core_->client;
  args.program = &program;
  while (true) {
    const std::string bytes = serialize_compile_options(all);
    args.compile_options = bytes.data();
    args.compile_options_size = bytes.size();
    try {
      call(core_->api, &PJRT_Api::PJRT_Client_Compile, args, "compiling a program");
      break;
    } catch (const DeviceError& error) {
      // Other plugins may not know an option this program adds by itself: go on without that one.
      auto refused = all.overrides.begin();
      while (refused != all.overrides.end() && (options.overrides.contains(refused->first) ||
                                                error.message().find(refused->first) == std::string::npos))
        ++refused;
      if (refused == all.overrides.end()) throw;
      log_warning("the plugin {} does not know the option {}; programs may run slower",
                  core_->plugin.path().string(), refused->first);
      const std::lock_guard lock(core_->mutex);
      core_->unsupported.insert(refused->first);
      all.overrides.erase(refused);
    }
  }
  return Executable(core_, args.executable, std::move(arguments));
}

Executable Client::load(std::string_view serialized, std::vector<ArgumentSpec> arguments) const {
  if (serialized.empty()) throw_error<DeviceError>("cannot load a compiled program from no bytes");
  T5X_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad_Args, args);
  args.client = core_->client;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  call(core_->api, &PJRT_Api::PJRT_Executable_DeserializeAndLoad, args, [&] {
    return fmt::format("loading a compiled program of {} bytes (compile it anew if this fails)",
                       serialized.size());
  });
  return Executable(core_, args.loaded_executable, std::move(arguments));
}

}  // namespace t5x::pjrt
