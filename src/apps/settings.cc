#include "apps/settings.h"

#include "base/error.h"

namespace t5x::apps {

std::vector<gin::Param> with_passed(std::vector<gin::Param> params, const std::vector<std::string>& passed) {
  for (const std::string& name : passed) {
    params.push_back(gin::param<gin::Value>(name, nullptr, "passed by the program"));
  }
  return params;
}

void reject(const gin::Args& args, std::string_view param, std::string_view why) {
  const gin::Value* value = args.find(param);
  if (value == nullptr) return;
  switch (value->kind()) {
    case gin::Kind::kNone:
      return;
    case gin::Kind::kBool:
      if (!value->as_bool()) return;
      break;
    case gin::Kind::kString:
      if (value->as_string().empty()) return;
      break;
    case gin::Kind::kList:
    case gin::Kind::kTuple:
      if (value->items().empty()) return;
      break;
    case gin::Kind::kDict:
      if (value->entries().empty()) return;
      break;
    default:
      break;
  }
  args.fail(param, fmt::format("{} is not supported: {}", value->describe(), why));
}

DType dtype_argument(const gin::Args& args, std::string_view param) {
  gin::Value value = args.value(param);
  if (gin::Convert<gin::Callable>::accepts(value)) value = gin::Convert<gin::Callable>::from(value)();
  if (!value.is(gin::Kind::kString))
    args.fail(param, "expected the name of a type such as 'bfloat16', found " + value.describe());
  try {
    return dtype_from_name(value.as_string());
  } catch (const Error& e) {
    args.fail(param, e.message());
  }
}

}  // namespace t5x::apps
