#include "pjrt/compiled_program.h"

#include <utility>

#include "base/error.h"
#include "pjrt/api.h"

namespace t5x::pjrt {

CompiledProgram::CompiledProgram(const PJRT_Api* api, PJRT_Executable* executable,
                                 std::shared_ptr<void> owner)
    : api_(api), executable_(executable), owner_(std::move(owner)) {}

CompiledProgram& CompiledProgram::operator=(CompiledProgram&& other) noexcept {
  if (this == &other) return *this;
  release();
  api_ = other.api_;
  executable_ = std::exchange(other.executable_, nullptr);
  owner_ = std::move(other.owner_);
  return *this;
}

void CompiledProgram::release() noexcept {
  if (PJRT_Executable* executable = std::exchange(executable_, nullptr)) {
    T5X_PJRT_ARGS(PJRT_Executable_Destroy_Args, args);
    args.executable = executable;
    call_quietly(api_, &PJRT_Api::PJRT_Executable_Destroy, args);
  }
  owner_.reset();
}

std::vector<std::shared_ptr<const TensorSpec>> CompiledProgram::outputs() const {
  constexpr std::string_view kAsked = "asking for the results of a compiled program";
  T5X_PJRT_ARGS(PJRT_Executable_NumOutputs_Args, count);
  count.executable = executable_;
  call(api_, &PJRT_Api::PJRT_Executable_NumOutputs, count, kAsked);
  std::vector<std::shared_ptr<const TensorSpec>> out;
  if (count.num_outputs == 0) return out;
  T5X_PJRT_ARGS(PJRT_Executable_OutputElementTypes_Args, types);
  types.executable = executable_;
  call(api_, &PJRT_Api::PJRT_Executable_OutputElementTypes, types, kAsked);
  T5X_PJRT_ARGS(PJRT_Executable_OutputDimensions_Args, dims);
  dims.executable = executable_;
  call(api_, &PJRT_Api::PJRT_Executable_OutputDimensions, dims, kAsked);
  if (types.num_output_types != count.num_outputs || dims.num_outputs != count.num_outputs)
    throw_error<DeviceError>("{}: the plugin lists {} results, {} types and {} shapes", kAsked,
                             count.num_outputs, types.num_output_types, dims.num_outputs);
  const int64_t* dim = dims.dims;
  for (size_t i = 0; i < count.num_outputs; ++i) {
    std::vector<int64_t> shape(dim, dim + dims.dim_sizes[i]);
    dim += dims.dim_sizes[i];
    out.push_back(std::make_shared<const TensorSpec>(
        TensorSpec{from_pjrt(types.output_types[i]), Shape(std::move(shape))}));
  }
  return out;
}

MemoryStats CompiledProgram::memory_stats() const {
  T5X_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats_Args, args);
  args.executable = executable_;
  call(api_, &PJRT_Api::PJRT_Executable_GetCompiledMemoryStats, args,
       "asking for the memory that a program needs");
  return {args.argument_size_in_bytes, args.output_size_in_bytes,         args.alias_size_in_bytes,
          args.temp_size_in_bytes,     args.generated_code_size_in_bytes, args.peak_memory_in_bytes};
}

std::map<std::string, double> CompiledProgram::cost_analysis() const {
  T5X_PJRT_ARGS(PJRT_Executable_GetCostAnalysis_Args, args);
  args.executable = executable_;
  if (!call_if_implemented(api_, &PJRT_Api::PJRT_Executable_GetCostAnalysis, args,
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

CompiledProgram::Text CompiledProgram::optimized_program() const {
  T5X_PJRT_ARGS(PJRT_Program, program);
  T5X_PJRT_ARGS(PJRT_Executable_OptimizedProgram_Args, args);
  args.executable = executable_;
  args.program = &program;
  constexpr std::string_view kAsked = "asking for the optimised program";
  call(api_, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, kAsked);
  std::string code(program.code_size, '\0');
  program.code = code.data();
  call(api_, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, kAsked);
  return {std::string(program.format, program.format_size), std::move(code)};
}

std::string CompiledProgram::fingerprint() const {
  T5X_PJRT_ARGS(PJRT_Executable_Fingerprint_Args, args);
  args.executable = executable_;
  if (!call_if_implemented(api_, &PJRT_Api::PJRT_Executable_Fingerprint, args,
                           "asking for the fingerprint of a program"))
    return {};
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

std::string CompiledProgram::serialize() const {
  T5X_PJRT_ARGS(PJRT_Executable_Serialize_Args, args);
  args.executable = executable_;
  call(api_, &PJRT_Api::PJRT_Executable_Serialize, args, "serialising a compiled program");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  if (args.serialized_executable_deleter != nullptr)
    args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

}  // namespace t5x::pjrt
