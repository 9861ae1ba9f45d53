// Calling the C API: every call's PJRT_Error becomes a DeviceError that says what was asked. Only the sources
// of this folder include this header; it is the one place that sees pjrt_c_api.h.
#pragma once

#include <fmt/format.h>
#include <xla/pjrt/c/pjrt_c_api.h>

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "pjrt/plugin.h"

// Declares zeroed arguments with their struct_size set.
#define T5X_PJRT_ARGS(type, variable) \
  type variable{};                    \
  variable.struct_size = type##_STRUCT_SIZE

namespace t5x::pjrt {

// "INVALID_ARGUMENT"
std::string_view error_code_name(int code);
// Takes ownership of `error`; throws DeviceError if there is one.
void throw_if_error(const PJRT_Api* api, PJRT_Error* error, std::string_view asked);
// The same, but false for UNIMPLEMENTED; true when there is no error.
bool throw_unless_unimplemented(const PJRT_Api* api, PJRT_Error* error, std::string_view asked);
// Takes ownership of `error`, for destructors.
void discard_error(const PJRT_Api* api, PJRT_Error* error) noexcept;
[[noreturn]] void throw_plugin_exception(std::string_view asked, const std::exception& exception);
[[noreturn]] void throw_missing_function(const PJRT_Api* api, std::string_view asked);

// Whether the plugin's table reaches as far as this function and has it.
template <class Function>
bool has_function(const PJRT_Api* api, Function* PJRT_Api::*member) {
  const auto* begin = reinterpret_cast<const char*>(api);
  const auto* field = reinterpret_cast<const char*>(&(api->*member));
  return static_cast<size_t>(field - begin) + sizeof(Function*) <= api->struct_size &&
         api->*member != nullptr;
}

// `asked` is a text, or a function that makes one when there is an error to report.
template <class Function, class Args, class Asked>
void call(const PJRT_Api* api, Function* PJRT_Api::*member, Args& args, const Asked& asked) {
  auto text = [&]() -> std::string {
    if constexpr (std::is_invocable_v<Asked>) {
      return asked();
    } else {
      return std::string(asked);
    }
  };
  if (!has_function(api, member)) throw_missing_function(api, text());
  PJRT_Error* error = nullptr;
  try {
    error = (api->*member)(&args);
  } catch (const std::exception& exception) {  // some plugins let their own exceptions out
    throw_plugin_exception(text(), exception);
  }
  if (error != nullptr) throw_if_error(api, error, text());
}
// For functions that some plugins leave out: false when this one does.
template <class Function, class Args>
bool call_if_implemented(const PJRT_Api* api, Function* PJRT_Api::*member, Args& args,
                         std::string_view asked) {
  return has_function(api, member) && throw_unless_unimplemented(api, (api->*member)(&args), asked);
}
// For destructors: never throws.
template <class Function, class Args>
void call_quietly(const PJRT_Api* api, Function* PJRT_Api::*member, Args& args) noexcept {
  if (has_function(api, member)) discard_error(api, (api->*member)(&args));
}

PJRT_Buffer_Type to_pjrt(DType dtype);
// Throws DeviceError for types that this project has no arrays of.
DType from_pjrt(PJRT_Buffer_Type type);

}  // namespace t5x::pjrt
