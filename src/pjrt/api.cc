#include "pjrt/api.h"

#include <array>

#include "base/error.h"

namespace t5x::pjrt {
namespace {

// In the order of PJRT_Error_Code, which is that of absl::StatusCode.
constexpr std::array<std::string_view, 17> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

PJRT_Error_Code code_of(const PJRT_Api* api, PJRT_Error* error) {
  T5X_PJRT_ARGS(PJRT_Error_GetCode_Args, args);
  args.error = error;
  discard_error(api, api->PJRT_Error_GetCode(&args));
  return args.code;
}

}  // namespace

std::string_view error_code_name(int code) {
  return code >= 0 && static_cast<size_t>(code) < kCodes.size() ? kCodes[static_cast<size_t>(code)]
                                                                : "UNKNOWN CODE";
}

void discard_error(const PJRT_Api* api, PJRT_Error* error) noexcept {
  if (error == nullptr) return;
  T5X_PJRT_ARGS(PJRT_Error_Destroy_Args, args);
  args.error = error;
  api->PJRT_Error_Destroy(&args);
}

void throw_if_error(const PJRT_Api* api, PJRT_Error* error, std::string_view asked) {
  if (error == nullptr) return;
  T5X_PJRT_ARGS(PJRT_Error_Message_Args, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text =
      fmt::format("{}: the device plugin said {}: {}", asked, error_code_name(code_of(api, error)),
                  std::string_view(message.message, message.message_size));
  discard_error(api, error);
  throw DeviceError(std::move(text));
}

bool throw_unless_unimplemented(const PJRT_Api* api, PJRT_Error* error, std::string_view asked) {
  if (error != nullptr && code_of(api, error) == PJRT_Error_Code_UNIMPLEMENTED) {
    discard_error(api, error);
    return false;
  }
  throw_if_error(api, error, asked);
  return true;
}

void throw_plugin_exception(std::string_view asked, const std::exception& exception) {
  throw_error<DeviceError>("{}: the device plugin threw an exception: {}", asked, exception.what());
}

void throw_missing_function(const PJRT_Api* api, std::string_view asked) {
  throw_error<DeviceError>("{}: the plugin (API {}.{}) has no such function; install a newer plugin", asked,
                           api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version);
}

PJRT_Buffer_Type to_pjrt(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return PJRT_Buffer_Type_PRED;
    case DType::kInt8:
      return PJRT_Buffer_Type_S8;
    case DType::kUInt8:
      return PJRT_Buffer_Type_U8;
    case DType::kInt16:
      return PJRT_Buffer_Type_S16;
    case DType::kUInt16:
      return PJRT_Buffer_Type_U16;
    case DType::kInt32:
      return PJRT_Buffer_Type_S32;
    case DType::kUInt32:
      return PJRT_Buffer_Type_U32;
    case DType::kInt64:
      return PJRT_Buffer_Type_S64;
    case DType::kUInt64:
      return PJRT_Buffer_Type_U64;
    case DType::kBFloat16:
      return PJRT_Buffer_Type_BF16;
    case DType::kFloat16:
      return PJRT_Buffer_Type_F16;
    case DType::kFloat32:
      return PJRT_Buffer_Type_F32;
    case DType::kFloat64:
      return PJRT_Buffer_Type_F64;
  }
  throw_error<InternalError>("no PJRT type for dtype {}", static_cast<int>(dtype));
}

DType from_pjrt(PJRT_Buffer_Type type) {
  for (int i = 0; i <= static_cast<int>(DType::kFloat64); ++i) {
    if (to_pjrt(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  }
  throw_error<DeviceError>(
      "the plugin gave a buffer of PJRT type {}, which this program has no arrays of; convert it in the "
      "program",
      static_cast<int>(type));
}

}  // namespace t5x::pjrt
