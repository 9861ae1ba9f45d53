#include "pjrt/executable.h"

#include <utility>

#include "base/error.h"
#include "pjrt/core.h"

namespace t5x::pjrt {

Executable::Executable(std::shared_ptr<ClientCore> core, PJRT_LoadedExecutable* loaded,
                       std::vector<ArgumentSpec> arguments)
    : core_(std::move(core)), arguments_(std::move(arguments)) {
  loaded_ = loaded;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].donated) donated_.push_back(i);
  }
  try {
    T5X_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
    get.loaded_executable = loaded;
    call(core_->api, &PJRT_Api::PJRT_LoadedExecutable_GetExecutable, get, "asking about a compiled program");
    program_ = CompiledProgram(core_->api, get.executable, core_);
    outputs_ = program_.outputs();
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
  loaded_ = std::exchange(other.loaded_, nullptr);
  program_ = std::move(other.program_);
  arguments_ = std::move(other.arguments_);
  outputs_ = std::move(other.outputs_);
  devices_ = std::move(other.devices_);
  donated_ = std::move(other.donated_);
  return *this;
}

void Executable::release() noexcept {
  if (PJRT_LoadedExecutable* loaded = std::exchange(loaded_, nullptr)) {
    T5X_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, args);
    args.executable = loaded;
    call_quietly(core_->api, &PJRT_Api::PJRT_LoadedExecutable_Destroy, args);
  }
}

void Executable::read_devices() {
  T5X_PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices_Args, args);
  args.executable = loaded_;
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
  if (loaded_ == nullptr) throw_error<DeviceError>("running a program that was moved away");
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
  args.executable = loaded_;
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

}  // namespace t5x::pjrt
