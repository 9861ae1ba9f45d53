#include "pjrt/executable.h"

#include <utility>

#include "base/error.h"
#include "pjrt/core.h"

namespace t5x::pjrt {

Executable::Executable(std::shared_ptr<ClientCore> core, PJRT_LoadedExecutable* loaded,
                       std::vector<ArgumentSpec> arguments)
    : core_(std::move(core)), arguments_(std::move(arguments)) {
  handle_.loaded = loaded;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].donated) donated_.push_back(i);
  }
  try {
    T5X_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
    get.loaded_executable = loaded;
    call(core_->api, &PJRT_Api::PJRT_LoadedExecutable_GetExecutable, get, "asking about a compiled program");
    handle_.executable = get.executable;
    read_outputs();
    read_devices();
  } catch (...) {
    release();
    throw;
  }
}

Executable& Executable::operator=(Executable&& other) noexcept {
  if (this == &other) return *this;
  release();
  core_ = std::move(other.core_);
  handle_ = std::move(other.handle_);
  arguments_ = std::move(other.arguments_);
  outputs_ = std::move(other.outputs_);
  devices_ = std::move(other.devices_);
  donated_ = std::move(other.donated_);
  return *this;
}

void Executable::release() noexcept {
  if (PJRT_Executable* executable = std::exchange(handle_.executable, nullptr)) {
    T5X_PJRT_ARGS(PJRT_Executable_Destroy_Args, args);
    args.executable = executable;
    call_quietly(core_->api, &PJRT_Api::PJRT_Executable_Destroy, args);
  }
  if (PJRT_LoadedExecutable* loaded = std::exchange(handle_.loaded, nullptr)) {
    T5X_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, args);
    args.executable = loaded;
    call_quietly(core_->api, &PJRT_Api::PJRT_LoadedExecutable_Destroy, args);
  }
}

void Executable::read_outputs() {
  constexpr std::string_view kAsked = "asking for the results of a compiled program";
  T5X_PJRT_ARGS(PJRT_Executable_NumOutputs_Args, count);
  count.executable = handle_.executable;
  call(core_->api, &PJRT_Api::PJRT_Executable_NumOutputs, count, kAsked);
  if (count.num_outputs == 0) return;
  T5X_PJRT_ARGS(PJRT_Executable_OutputElementTypes_Args, types);
  types.executable = handle_.executable;
  call(core_->api, &PJRT_Api::PJRT_Executable_OutputElementTypes, types, kAsked);
  T5X_PJRT_ARGS(PJRT_Executable_OutputDimensions_Args, dims);
  dims.executable = handle_.executable;
  call(core_->api, &PJRT_Api::PJRT_Executable_OutputDimensions, dims, kAsked);
  if (types.num_output_types != count.num_outputs || dims.num_outputs != count.num_outputs)
    throw_error<DeviceError>("{}: the plugin lists {} results, {} types and {} shapes", kAsked,
                             count.num_outputs, types.num_output_types, dims.num_outputs);
  const int64_t* dim = dims.dims;
  for (size_t i = 0; i < count.num_outputs; ++i) {
    std::vector<int64_t> shape(dim, dim + dims.dim_sizes[i]);
    dim += dims.dim_sizes[i];
    outputs_.push_back(std::make_shared<const TensorSpec>(
        TensorSpec{from_pjrt(types.output_types[i]), Shape(std::move(shape))}));
  }
}

void Executable::read_devices() {
  T5X_PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices_Args, args);
  args.executable = handle_.loaded;
  call(core_->api, &PJRT_Api::PJRT_LoadedExecutable_AddressableDevices, args,
       "asking for the devices of a compiled program");
  for (size_t i = 0; i < args.num_addressable_devices; ++i)
    devices_.push_back(core_->index_of(args.addressable_devices[i]));
}

std::string Executable::describe_argument(size_t index) const {
  const ArgumentSpec& argument = arguments_[index];
  if (argument.name.empty()) return fmt::format("argument {}", index);
  return fmt::format("argument {} ({})", index, argument.name);
}

void Executable::check_argument(const Buffer* buffer, size_t index, size_t device) const {
  if (buffer == nullptr) throw_error<DeviceError>("{} is a null buffer", describe_argument(index));
  if (buffer->is_deleted())
    in_context(describe_argument(index), [&] { buffer->require_live("running a program"); });
  const TensorSpec& wanted = arguments_[index].spec;
  if (!(*buffer->spec_ == wanted))
    throw_error<ShapeError>("{} must be {}, but the buffer is {}", describe_argument(index),
                            wanted.describe(), buffer->spec_->describe());
  if (buffer->device_ != device)
    throw_error<DeviceError>("{} must be on device {}, but the buffer is on device {}; copy it with copy_to",
                             describe_argument(index), device, buffer->device_);
  if (buffer->core_ != core_)
    throw_error<DeviceError>("{} belongs to another client than the program", describe_argument(index));
}

// A donated buffer may not be used by any other argument, since the program overwrites it.
void Executable::check_donation(std::span<const std::span<Buffer* const>> arguments,
                                const std::vector<bool>& kept) const {
  for (const std::span<Buffer* const>& row : arguments) {
    size_t marked = 0;
    size_t clash = row.size();
    for (; marked < donated_.size() && clash == row.size(); ++marked) {
      const size_t i = donated_[marked];
      if (!kept.empty() && kept[i]) continue;
      if (row[i]->donating_) clash = i;
      row[i]->donating_ = true;
    }
    size_t next = 0;
    for (size_t i = 0; i < row.size() && clash == row.size(); ++i) {
      const bool donates = next < donated_.size() && donated_[next] == i;
      if (donates) ++next;
      if ((!donates || (!kept.empty() && kept[i])) && row[i]->donating_) clash = i;
    }
    for (size_t k = 0; k < marked; ++k) row[donated_[k]]->donating_ = false;
    if (clash != row.size())
      throw_error<DeviceError>(
          "{} is a buffer that another argument donates; give a copy, or list that argument as non-donatable",
          describe_argument(clash));
  }
}

void Executable::check_arguments(std::span<const std::span<Buffer* const>> arguments) const {
  if (handle_.loaded == nullptr) throw_error<DeviceError>("running a program that was moved away");
  if (arguments.size() != devices_.size())
    throw_error<ShapeError>("the program runs on {} devices, but arguments came for {}", devices_.size(),
                            arguments.size());
  for (size_t d = 0; d < arguments.size(); ++d) {
    if (arguments[d].size() != arguments_.size())
      throw_error<ShapeError>("the program takes {} arguments, but {} came for device {}", arguments_.size(),
                              arguments[d].size(), devices_[d]);
    for (size_t i = 0; i < arguments_.size(); ++i) check_argument(arguments[d][i], i, devices_[d]);
  }
}

std::vector<std::vector<Buffer>> Executable::execute(std::span<const std::span<Buffer* const>> arguments,
                                                     const ExecuteOptions& options) const {
  check_arguments(arguments);
  const size_t num_devices = devices_.size();
  const size_t num_arguments = arguments_.size();
  // Never donated: what the caller keeps, and host arrays that a device only borrows.
  std::vector<bool> kept;
  auto keep = [&](size_t i) {
    if (kept.empty()) kept.resize(num_arguments);
    kept[i] = true;
  };
  for (int64_t i : options.non_donatable) {
    if (i < 0 || static_cast<size_t>(i) >= num_arguments)
      throw_error<ShapeError>("non_donatable names argument {}, but the program has {}", i, num_arguments);
    keep(static_cast<size_t>(i));
  }
  check_donation(arguments, kept);
  std::vector<int64_t> non_donatable = options.non_donatable;
  for (size_t i : donated_) {
    bool borrowed = false;
    for (const auto& row : arguments) borrowed = borrowed || row[i]->borrows_host_;
    if (borrowed && (kept.empty() || !kept[i])) non_donatable.push_back(static_cast<int64_t>(i));
  }

  std::vector<PJRT_Buffer*> inputs(num_devices * num_arguments);
  std::vector<PJRT_Buffer* const*> input_rows(num_devices);
  std::vector<PJRT_Buffer*> outputs(num_devices * outputs_.size());
  std::vector<PJRT_Buffer**> output_rows(num_devices);
  for (size_t d = 0; d < num_devices; ++d) {
    for (size_t i = 0; i < num_arguments; ++i) inputs[d * num_arguments + i] = arguments[d][i]->buffer_;
    input_rows[d] = inputs.data() + d * num_arguments;
    output_rows[d] = outputs.data() + d * outputs_.size();
  }
  T5X_PJRT_ARGS(PJRT_ExecuteOptions, execute_options);
  execute_options.non_donatable_input_indices = non_donatable.data();
  execute_options.num_non_donatable_input_indices = non_donatable.size();
  T5X_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, args);
  args.executable = handle_.loaded;
  args.options = &execute_options;
  args.argument_lists = input_rows.data();
  args.num_devices = num_devices;
  args.num_args = num_arguments;
  args.output_lists = output_rows.data();
  call(core_->api, &PJRT_Api::PJRT_LoadedExecutable_Execute, args, "running a program");

  for (size_t i : donated_) {
    if (!kept.empty() && kept[i]) continue;
    for (const auto& row : arguments) {
      row[i]->release();
      row[i]->state_ = Buffer::State::kDonated;
    }
  }
  std::vector<std::vector<Buffer>> results(num_devices);
  for (size_t d = 0; d < num_devices; ++d) {
    results[d].reserve(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i)
      results[d].push_back(Buffer(core_, output_rows[d][i], outputs_[i], devices_[d], false));
  }
  return results;
}

std::vector<Buffer> Executable::execute(std::span<Buffer* const> arguments,
                                        const ExecuteOptions& options) const {
  std::vector<std::vector<Buffer>> results = execute(std::span(&arguments, 1), options);
  return std::move(results.front());
}

MemoryStats Executable::memory_stats() const {
  T5X_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats_Args, args);
  args.executable = handle_.executable;
  call(core_->api, &PJRT_Api::PJRT_Executable_GetCompiledMemoryStats, args,
       "asking for the memory that a program needs");
  return {args.argument_size_in_bytes, args.output_size_in_bytes,         args.alias_size_in_bytes,
          args.temp_size_in_bytes,     args.generated_code_size_in_bytes, args.peak_memory_in_bytes};
}

std::map<std::string, double> Executable::cost_analysis() const {
  T5X_PJRT_ARGS(PJRT_Executable_GetCostAnalysis_Args, args);
  args.executable = handle_.executable;
  if (!call_if_implemented(core_->api, &PJRT_Api::PJRT_Executable_GetCostAnalysis, args,
                           "asking what a program costs"))
    return {};
  std::map<std::string, double> out;
  for (size_t i = 0; i < args.num_properties; ++i) {
    const PJRT_NamedValue& value = args.properties[i];
    const std::string key(value.name, value.name_size);
    if (value.type == PJRT_NamedValue_kFloat) out[key] = value.float_value;
    if (value.type == PJRT_NamedValue_kInt64) out[key] = static_cast<double>(value.int64_value);
  }
  return out;
}

Executable::Program Executable::optimized_program() const {
  T5X_PJRT_ARGS(PJRT_Program, program);
  T5X_PJRT_ARGS(PJRT_Executable_OptimizedProgram_Args, args);
  args.executable = handle_.executable;
  args.program = &program;
  constexpr std::string_view kAsked = "asking for the optimised program";
  call(core_->api, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, kAsked);
  std::string code(program.code_size, '\0');
  program.code = code.data();
  call(core_->api, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, kAsked);
  return {std::string(program.format, program.format_size), std::move(code)};
}

std::string Executable::fingerprint() const {
  T5X_PJRT_ARGS(PJRT_Executable_Fingerprint_Args, args);
  args.executable = handle_.executable;
  if (!call_if_implemented(core_->api, &PJRT_Api::PJRT_Executable_Fingerprint, args,
                           "asking for the fingerprint of a program"))
    return {};
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

std::string Executable::serialize() const {
  T5X_PJRT_ARGS(PJRT_Executable_Serialize_Args, args);
  args.executable = handle_.executable;
  call(core_->api, &PJRT_Api::PJRT_Executable_Serialize, args, "serialising a compiled program");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  if (args.serialized_executable_deleter != nullptr)
    args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

}  // namespace t5x::pjrt
