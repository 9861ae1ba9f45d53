#include "gin/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "gin/config.h"

namespace t5x::gin {

namespace {

std::string_view last_component(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Whether `name` ends with the dotted components of `selector`.
bool has_suffix(std::string_view name, std::string_view selector) {
  if (!name.ends_with(selector)) return false;
  return name.size() == selector.size() || name[name.size() - selector.size() - 1] == '.';
}

}  // namespace

const Param* Configurable::find_param(std::string_view param) const {
  auto found = std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.name == param; });
  return found == params.end() ? nullptr : &*found;
}

Registry::Registry() {
  constants_.emplace("gin.REQUIRED", Value());
  add({.name = "gin.singleton",
       .params = {required<Callable>("constructor", "called once for each scope")},
       .call = {},  // the evaluator keeps the objects
       .help = "one object for all who evaluate @NAME/gin.singleton()"});
}

const Configurable& Registry::add(Configurable configurable) {
  if (configurable.module.empty()) {
    const size_t dot = configurable.name.rfind('.');
    if (dot != std::string::npos) configurable.module = configurable.name.substr(0, dot);
  }
  std::vector<std::string> all = configurable.aliases;
  all.push_back(configurable.name);
  for (const std::string& name : all) {
    if (by_name_.contains(name))
      throw_error<ConfigError>("a configurable named '{}' is already registered", name);
  }
  configurables_.push_back(std::make_unique<Configurable>(std::move(configurable)));
  const Configurable* added = configurables_.back().get();
  for (const std::string& name : all) {
    by_name_.emplace(name, added);
    by_last_.emplace(std::string(last_component(name)), Named{name, added});
  }
  return *added;
}

void Registry::alias(const std::string& alias, const std::string& name) {
  const Configurable* target = find(name);
  if (target == nullptr)
    throw_error<ConfigError>("cannot make '{}' an alias of '{}', which is unknown", alias, name);
  if (const Configurable* other = find(alias); other != nullptr && other != target) {
    throw_error<ConfigError>("a configurable named '{}' is already registered", alias);
  }
  for (auto& configurable : configurables_) {
    if (configurable.get() == target) configurable->aliases.push_back(alias);
  }
  if (by_name_.emplace(alias, target).second) {
    by_last_.emplace(std::string(last_component(alias)), Named{alias, target});
  }
}

void Registry::constant(const std::string& name, Value value) {
  if (!constant_matches(name).empty())
    throw_error<ConfigError>("a constant matching '{}' already exists", name);
  constants_.emplace(name, std::move(value));
}

const Configurable* Registry::find(std::string_view full_name) const {
  auto found = by_name_.find(full_name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<const Configurable*> Registry::matches(std::string_view selector) const {
  if (const Configurable* exact = find(selector)) return {exact};
  std::vector<const Configurable*> out;
  auto [begin, end] = by_last_.equal_range(last_component(selector));
  for (auto at = begin; at != end; ++at) {
    const Named& named = at->second;
    if (has_suffix(named.name, selector) && std::find(out.begin(), out.end(), named.target) == out.end()) {
      out.push_back(named.target);
    }
  }
  return out;
}

std::vector<std::string> Registry::constant_matches(std::string_view selector) const {
  if (constants_.contains(selector)) return {std::string(selector)};
  std::vector<std::string> out;
  for (const auto& [name, value] : constants_) {
    if (has_suffix(name, selector)) out.push_back(name);
  }
  return out;
}

bool Registry::has_module(std::string_view module) const {
  const std::string prefix = std::string(module) + ".";
  auto at = by_name_.lower_bound(prefix);
  return at != by_name_.end() && at->first.starts_with(prefix);
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> out;
  for (const auto& [name, target] : by_name_) out.push_back(name);
  return out;
}

std::string Registry::minimal_selector(const Configurable& configurable) const {
  std::string_view name = configurable.name;
  for (size_t dot = name.rfind('.');; dot = name.rfind('.', dot - 1)) {
    if (dot == std::string_view::npos) return configurable.name;
    const std::string_view suffix = name.substr(dot + 1);
    if (matches(suffix) == std::vector<const Configurable*>{&configurable}) return std::string(suffix);
    if (dot == 0) return configurable.name;
  }
}

Value Callable::operator()(const Kwargs& kwargs) const { return config_->call(reference_, kwargs); }

Value Callable::call(const std::vector<Value>& positional, const Kwargs& kwargs) const {
  const std::vector<Param>& params = reference_.target->params;
  if (positional.size() > params.size()) {
    throw_error<ConfigError>("'{}' takes at most {} arguments, given {}", name(), params.size(),
                             positional.size());
  }
  Kwargs all;
  for (size_t i = 0; i < positional.size(); ++i) all.emplace_back(params[i].name, positional[i]);
  all.insert(all.end(), kwargs.begin(), kwargs.end());
  return (*this)(all);
}

const std::string& Callable::name() const { return reference_.target->name; }

bool Convert<Callable>::accepts(const Value& v) {
  return v.is(Kind::kObject) && v.as_object().as<Callable>() != nullptr;
}

Callable Convert<Callable>::from(const Value& v) { return *v.as_object().as<Callable>(); }

const Value* Args::find(std::string_view param) const {
  auto found =
      std::find_if(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == param; });
  return found == values_.end() ? nullptr : &found->second;
}

const Value& Args::value(std::string_view param) const {
  if (const Value* v = find(param)) return *v;
  throw_error<ConfigError>("configurable '{}' has no value for parameter '{}'; bind it: {}.{} = ...",
                           configurable_->name, param, last_component(configurable_->name), param);
}

void Args::throw_mismatch(std::string_view param, const std::string& expected, const Value& v) const {
  throw_error<ConfigError>("expected {} for parameter '{}' of configurable '{}', got {}, set at {}", expected,
                           param, configurable_->name, v.describe(), v.location().str());
}

void Args::fail(std::string_view param, std::string_view message) const {
  const Value* v = find(param);
  throw_error<ConfigError>("parameter '{}' of configurable '{}' is {}, set at {}: {}", param,
                           configurable_->name, v ? v->describe() : "not set",
                           v ? v->location().str() : "nowhere", message);
}

}  // namespace t5x::gin
