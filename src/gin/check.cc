#include "gin/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "gin/runtime.h"

namespace t5x::gin {

std::vector<Problem> Checker::run() {
  problems_ = config_.problems_;
  for (const auto& [name, value] : config_.macros_) check_names(value, name);
  for (const auto& [key, params] : config_.bindings_) {
    const std::string prefix =
        (key.scope.empty() ? "" : key.scope + "/") + config_.registry_->minimal_selector(*key.target) + ".";
    for (const auto& [name, value] : params) {
      check_names(value, prefix + name);
      check_type(*key.target, name, value);
    }
  }
  // By file in the order of reading, then by line.
  std::map<std::string, size_t> order;
  for (size_t i = 0; i < config_.files_.size(); ++i) order.emplace(config_.files_[i], i);
  auto place = [&](const Problem& problem) {
    const std::string file = problem.location.file ? *problem.location.file : "";
    auto found = order.find(file);
    const size_t rank = found == order.end() ? order.size() : found->second;
    return std::tuple(rank, file, problem.location.line, problem.location.column);
  };
  std::stable_sort(problems_.begin(), problems_.end(),
                   [&](const Problem& a, const Problem& b) { return place(a) < place(b); });
  return std::move(problems_);
}

void Checker::add(const Location& location, std::string message) {
  const bool known = std::any_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
    return problem.message == message && problem.location.str() == location.str();
  });
  if (!known) problems_.push_back({location, std::move(message)});
}

bool Checker::is_required_marker(const Value& value) const {
  return value.is(Kind::kMacro) && config_.registry_->constant_matches(value.as_macro().name) ==
                                       std::vector<std::string>{"gin.REQUIRED"};
}

void Checker::check_names(const Value& value, const std::string& key) {
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kTuple:
      for (const Value& item : value.items()) check_names(item, key);
      break;
    case Kind::kDict:
      for (const auto& [k, item] : value.entries()) {
        check_names(k, key);
        check_names(item, key);
      }
      break;
    case Kind::kReference: {
      const Reference& reference = value.as_reference();
      if (reference.target == nullptr && !reference.foreign && !reference.why.empty()) {
        add(value.location(), fmt::format("unknown reference '{}': {}", reference.str(), reference.why));
      }
      break;
    }
    case Kind::kMacro: {
      const std::string& name = value.as_macro().name;
      if (is_required_marker(value)) {
        add(value.location(),
            fmt::format("'{0}' is marked %gin.REQUIRED here but never set; set it in a gin file "
                        "({0} = ...) or with --gin.{0}=VALUE",
                        key));
        break;
      }
      const std::vector<std::string> constants = config_.registry_->constant_matches(name);
      if (constants.size() > 1) {
        add(value.location(), fmt::format("the constant '%{}' is ambiguous: it may be '%{}' or '%{}'", name,
                                          constants[0], constants[1]));
      } else if (constants.empty() && find_macro(config_.macros_, name) == nullptr) {
        std::vector<std::string> names;
        for (const auto& [macro, bound] : config_.macros_) names.push_back(macro);
        add(value.location(), fmt::format("the macro '%{0}' is used in '{1}' but never set{2}; set it in a "
                                          "gin file ({0} = ...) or with "
                                          "--gin.{0}=VALUE",
                                          name, key, did_you_mean(name, names)));
      }
      break;
    }
    default:
      break;
  }
}

Value Checker::without_macros(const Value& value, std::set<std::string>& open) {
  switch (value.kind()) {
    case Kind::kMacro: {
      const std::string& name = value.as_macro().name;
      const std::vector<std::string> constants = config_.registry_->constant_matches(name);
      if (constants.size() == 1 && constants[0] != "gin.REQUIRED") {
        return config_.registry_->constant_value(constants[0]).at(value.location());
      }
      const Value* bound = constants.empty() ? find_macro(config_.macros_, name) : nullptr;
      if (bound == nullptr || !open.insert(name).second) return Value(Pending{name});
      Value inner = without_macros(*bound, open);
      open.erase(name);
      return inner;
    }
    case Kind::kReference: {
      const Reference& reference = value.as_reference();
      if (reference.call || reference.target == nullptr) return Value(Pending{reference.str()});
      return Value::object(std::make_shared<Callable>(config_, reference)).at(value.location());
    }
    case Kind::kList:
    case Kind::kTuple: {
      Value::Items items;
      for (const Value& item : value.items()) items.push_back(without_macros(item, open));
      Value out = value.is(Kind::kList) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
      return out.at(value.location());
    }
    case Kind::kDict: {
      Value::Entries entries;
      for (const auto& [key, item] : value.entries()) {
        entries.emplace_back(without_macros(key, open), without_macros(item, open));
      }
      return Value::dict(std::move(entries)).at(value.location());
    }
    default:
      return value;
  }
}

void Checker::check_type(const Configurable& target, const std::string& name, const Value& value) {
  const Param* param = target.find_param(name);
  if (param == nullptr || param->accepts == nullptr) return;
  std::set<std::string> open;
  const Value known = without_macros(value, open);
  if (known.is(Kind::kPending)) return;
  if (known.is_none() && param->default_value && param->default_value->is_none()) return;
  if (param->accepts(known)) return;
  add(known.location(),
      fmt::format("expected {} for parameter '{}' of configurable '{}', got {}{}", param->expected, name,
                  target.name, known.describe(),
                  value.is(Kind::kMacro)
                      ? fmt::format(" (by %{}, used at {})", value.as_macro().name, value.location().str())
                      : ""));
}

}  // namespace t5x::gin
