// Evaluation of values, references and macros, and calls of configurables.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "gin/config.h"
#include "gin/repr.h"
#include "gin/runtime.h"

namespace t5x::gin {

namespace {

// As in gin, each thread has its own stack of scopes; the arguments under evaluation tell cycles.
thread_local std::string t_scope;
thread_local std::vector<std::string> t_under_evaluation;

constexpr size_t kMaxDepth = 200;

class Scope {
 public:
  explicit Scope(std::string scope) : previous_(std::exchange(t_scope, std::move(scope))) {}
  ~Scope() { t_scope = std::move(previous_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::string previous_;
};

class UnderEvaluation {
 public:
  explicit UnderEvaluation(std::string name) {
    const auto& stack = t_under_evaluation;
    auto same = std::find(stack.begin(), stack.end(), name);
    if (same != stack.end() || stack.size() >= kMaxDepth) {
      std::string chain;
      for (auto at = same == stack.end() ? stack.end() - 10 : same; at != stack.end(); ++at)
        chain += *at + " -> ";
      throw_error<ConfigError>("the configuration needs a value to make that very value: {}{}", chain, name);
    }
    t_under_evaluation.push_back(std::move(name));
  }
  ~UnderEvaluation() { t_under_evaluation.pop_back(); }
  UnderEvaluation(const UnderEvaluation&) = delete;
  UnderEvaluation& operator=(const UnderEvaluation&) = delete;
};

// A call of C++ code: what it evaluates is a fresh start, so that honest recursion in C++ is no cycle.
class FreshStack {
 public:
  FreshStack() { saved_.swap(t_under_evaluation); }
  ~FreshStack() { saved_.swap(t_under_evaluation); }
  FreshStack(const FreshStack&) = delete;
  FreshStack& operator=(const FreshStack&) = delete;

 private:
  std::vector<std::string> saved_;
};

bool has_pending(const Value& value) {
  switch (value.kind()) {
    case Kind::kPending:
      return true;
    case Kind::kList:
    case Kind::kTuple:
      return std::any_of(value.items().begin(), value.items().end(), has_pending);
    case Kind::kDict:
      return std::any_of(value.entries().begin(), value.entries().end(),
                         [](const auto& entry) { return has_pending(entry.second); });
    default:
      return false;
  }
}

std::string scoped_name(const std::string& scope, const Configurable& target) {
  return scope.empty() ? target.name : scope + "/" + target.name;
}

}  // namespace

const std::string& current_scope() { return t_scope; }

ScopeGuard::ScopeGuard(std::string_view scope) : previous_(t_scope) {
  if (scope.empty()) {
    t_scope.clear();  // gin.config_scope('') leaves all scopes
    return;
  }
  if (!t_scope.empty()) t_scope += '/';
  t_scope += scope;
}
ScopeGuard::~ScopeGuard() { t_scope = std::move(previous_); }

const Value* find_macro(const std::map<std::string, Value>& macros, const std::string& name) {
  for (std::string prefix = name;;) {
    if (auto found = macros.find(prefix); found != macros.end()) return &found->second;
    const size_t slash = prefix.rfind('/');
    if (slash == std::string::npos) return nullptr;
    prefix.resize(slash);
  }
}

std::string flag_for(const std::string& scope, const Configurable& target, const std::string& param,
                     const Registry& registry) {
  return fmt::format("--gin.{}{}{}.{}=VALUE", scope, scope.empty() ? "" : "/",
                     registry.minimal_selector(target), param);
}

Value Evaluator::evaluate(const Value& value) {
  switch (value.kind()) {
    case Kind::kReference:
      return evaluate_reference(value);
    case Kind::kMacro:
      return evaluate_macro(value.as_macro(), value.location());
    case Kind::kList:
    case Kind::kTuple: {
      Value::Items items;
      for (const Value& item : value.items()) items.push_back(evaluate(item));
      Value out = value.is(Kind::kList) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
      return out.at(value.location());
    }
    case Kind::kDict: {
      Value::Entries entries;
      for (const auto& [key, item] : value.entries()) entries.emplace_back(evaluate(key), evaluate(item));
      return Value::dict(std::move(entries)).at(value.location());
    }
    default:
      return value;
  }
}

Value Evaluator::evaluate_reference(const Value& value) {
  Reference reference = value.as_reference();
  if (reference.target == nullptr && reference.why.empty()) {  // a default written in C++
    const bool call = reference.call;
    const std::string scope = reference.scope;
    reference = config_.parse_reference(reference.name);
    reference.call = call;
    reference.scope = scope;
  }
  if (reference.target == nullptr) {
    throw_error<ConfigError>("{}: cannot evaluate '{}': {}", value.location().str(), reference.str(),
                             reference.why);
  }
  if (reference.call) return call(reference, {}, value.location()).at(value.location());
  // Nobody knows yet what else the caller will pass, so a dry run checks only what is bound.
  if (dry_ &&
      checked_.emplace(reference.scope.empty() ? t_scope : reference.scope, reference.target).second) {
    const Scope scope(reference.scope.empty() ? t_scope : reference.scope);
    collect(*reference.target, {}, /*whole=*/false);
  }
  return Value::object(std::make_shared<Callable>(config_, std::move(reference))).at(value.location());
}

Value Evaluator::evaluate_macro(const Macro& macro, const Location& location) {
  const std::vector<std::string> constants = config_.registry_->constant_matches(macro.name);
  if (constants.size() > 1) {
    throw_error<ConfigError>("{}: the constant '%{}' is ambiguous: it may be '%{}' or '%{}'", location.str(),
                             macro.name, constants[0], constants[1]);
  }
  if (constants.size() == 1) {
    if (constants[0] == "gin.REQUIRED") {
      throw_error<ConfigError>(
          "a required value is missing: it was marked %gin.REQUIRED at {}; set it in a gin file "
          "or with --gin.NAME=VALUE",
          location.str());
    }
    return config_.registry_->constant_value(constants[0]).at(location);
  }
  const Value* value = find_macro(config_.macros_, macro.name);
  if (value == nullptr) {
    std::vector<std::string> names;
    for (const auto& [name, bound] : config_.macros_) names.push_back(name);
    throw_error<ConfigError>(
        "{}: the macro '%{}' is used here but never set{}; set it in a gin file or with "
        "--gin.{}=VALUE",
        location.str(), macro.name, did_you_mean(macro.name, names), macro.name);
  }
  {
    std::lock_guard lock(config_.runtime_->mutex);
    config_.runtime_->operative_macros[macro.name] = *value;
  }
  if (value->is(Kind::kMacro) && config_.registry_->constant_matches(value->as_macro().name) ==
                                     std::vector<std::string>{"gin.REQUIRED"}) {
    throw_error<ConfigError>(
        "the required value '{0}' is missing: it was marked %gin.REQUIRED at {1} and is used at "
        "{2}; set it in a gin file ({0} = ...) or with --gin.{0}=VALUE",
        macro.name, value->location().str(), location.str());
  }
  const UnderEvaluation guard("%" + macro.name);
  const Scope scope(macro.name);  // a macro is a configurable called in the scope of its own name
  return evaluate(*value);
}

Config::Params Evaluator::bound(const Configurable& target) const {
  Config::Params params;
  auto add = [&](const std::string& scope) {
    auto found = config_.bindings_.find({scope, &target});
    if (found == config_.bindings_.end()) return;
    for (const auto& [name, value] : found->second) params.insert_or_assign(name, value);
  };
  add("");
  for (size_t end = 0; !t_scope.empty() && end != std::string::npos;) {
    end = t_scope.find('/', end + 1);
    add(t_scope.substr(0, end));
  }
  return params;
}

void Evaluator::check_kwargs(const Configurable& target, const Kwargs& kwargs) const {
  for (const auto& [name, value] : kwargs) {
    if (target.any_params || target.find_param(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const Param& param : target.params) names.push_back(param.name);
    throw_error<ConfigError>("configurable '{}' was called with '{}', which is none of its parameters{}",
                             target.name, name, did_you_mean(name, names));
  }
}

void Evaluator::check_type(const Args& args, const Param& param, const Value& value) const {
  if (param.accepts == nullptr || value.is(Kind::kPending)) return;
  if (value.is_none() && param.default_value && param.default_value->is_none()) return;
  if (!param.accepts(value)) args.throw_mismatch(param.name, param.expected, value);
}

// Evaluates what the call would get. `whole`: parameters without a value are an error.
Args Evaluator::collect(const Configurable& target, const Kwargs& kwargs, bool whole) {
  check_kwargs(target, kwargs);
  const Config::Params raw = bound(target);
  Args args(config_, target, t_scope);
  const UnderEvaluation guard(scoped_name(t_scope, target));
  auto given = [&](const std::string& name) {
    auto found =
        std::find_if(kwargs.begin(), kwargs.end(), [&](const auto& entry) { return entry.first == name; });
    return found == kwargs.end() ? nullptr : &found->second;
  };
  auto evaluate_bound = [&](const std::string& name, const Value& value) {
    if (value.is(Kind::kMacro) && config_.registry_->constant_matches(value.as_macro().name) ==
                                      std::vector<std::string>{"gin.REQUIRED"}) {
      throw_error<ConfigError>(
          "the required value '{}.{}' is missing: it was marked %gin.REQUIRED at {}; set it in a "
          "gin file or with {}",
          target.name, name, value.location().str(), flag_for(t_scope, target, name, *config_.registry_));
    }
    return in_context(
        fmt::format("'{}.{}', set at {}", scoped_name(t_scope, target), name, value.location().str()),
        [&] { return evaluate(value); });
  };
  std::string missing;
  for (const Param& param : target.params) {
    Value value;
    if (const Value* passed = given(param.name)) {
      value = *passed;
    } else if (auto found = raw.find(param.name); found != raw.end()) {
      value = evaluate_bound(param.name, found->second);
    } else if (param.default_value) {
      value = evaluate(*param.default_value);
    } else {
      if (whole) {
        missing += fmt::format("{}'{}' ({})", missing.empty() ? "" : ", ", param.name,
                               flag_for(t_scope, target, param.name, *config_.registry_));
      }
      continue;
    }
    check_type(args, param, value);
    args.values_.emplace_back(param.name, std::move(value));
  }
  if (!missing.empty()) {
    throw_error<ConfigError>("configurable '{}' needs values that nobody gave: {}",
                             scoped_name(t_scope, target), missing);
  }
  if (target.any_params) {
    for (const auto& [name, value] : raw) {
      if (target.find_param(name) == nullptr && given(name) == nullptr) {
        args.values_.emplace_back(name, evaluate_bound(name, value));
      }
    }
    for (const auto& [name, value] : kwargs) {
      if (target.find_param(name) == nullptr) args.values_.emplace_back(name, value);
    }
  }
  return args;
}

// Notes the parameters, as written, that a call takes from the configuration or from defaults.
void Evaluator::record(const Configurable& target, const Config::Params& raw, const Kwargs& kwargs) {
  auto passed = [&](const std::string& name) {
    return std::any_of(kwargs.begin(), kwargs.end(), [&](const auto& entry) { return entry.first == name; });
  };
  std::lock_guard lock(config_.runtime_->mutex);
  Config::Params& params = config_.runtime_->operative[{t_scope, &target}];
  for (const Param& param : target.params) {
    if (param.default_value && !passed(param.name) && is_literal(*param.default_value)) {
      params.insert_or_assign(param.name, *param.default_value);
    }
  }
  for (const auto& [name, value] : raw) {
    if (!passed(name)) params.insert_or_assign(name, value);
  }
}

Value Evaluator::singleton(const Configurable& target) {
  const std::string key = t_scope;
  {
    std::lock_guard lock(config_.runtime_->mutex);
    auto found = config_.runtime_->singletons.find(key);
    if (found != config_.runtime_->singletons.end()) return found->second;
  }
  const Args args = collect(target, {}, /*whole=*/true);
  record(target, bound(target), {});
  const Value& constructor = args.value("constructor");
  if (!Convert<Callable>::accepts(constructor)) return Value(Pending{"gin.singleton"});
  Reference reference = Convert<Callable>::from(constructor).reference();
  Value made = call(reference, {}, constructor.location());
  if (dry_) return made;
  std::lock_guard lock(config_.runtime_->mutex);
  return config_.runtime_->singletons.emplace(key, std::move(made)).first->second;
}

Value Evaluator::call(const Reference& reference, const Kwargs& kwargs, const Location& location) {
  if (reference.target == nullptr) {
    throw_error<ConfigError>("{}: cannot call '{}': {}", location.str(), reference.str(), reference.why);
  }
  const Configurable& target = *reference.target;
  const Scope scope(reference.scope.empty() ? t_scope : reference.scope);
  if (target.name == "gin.singleton") return singleton(target);
  const Args args = collect(target, kwargs, /*whole=*/true);
  record(target, bound(target), kwargs);
  const bool waits =
      dry_ && (!target.cheap || std::any_of(args.all().begin(), args.all().end(),
                                            [](const auto& entry) { return has_pending(entry.second); }));
  if (waits || !target.call) return Value(Pending{fmt::format("'{}'", target.name)});
  const FreshStack fresh;
  return in_context(fmt::format("a call of '{}'", scoped_name(t_scope, target)),
                    [&] { return target.call(args); });
}

void Evaluator::check_call(const Reference& reference, const Kwargs& kwargs) {
  if (reference.target == nullptr) {
    throw_error<ConfigError>("cannot call '{}': {}", reference.str(), reference.why);
  }
  const Scope scope(reference.scope.empty() ? t_scope : reference.scope);
  collect(*reference.target, kwargs, /*whole=*/true);
  record(*reference.target, bound(*reference.target), kwargs);
}

Value Config::evaluate(const Value& value) { return Evaluator(*this).evaluate(value); }

Value Config::value(const std::string& key) {
  if (find_macro(macros_, key) != nullptr) return evaluate(Value(Macro{key}));
  const Value* bound = query(key);
  if (bound == nullptr) throw_error<ConfigError>("nothing is bound to '{}'", key);
  const size_t slash = key.rfind('/');
  const Scope scope(slash == std::string::npos ? "" : key.substr(0, slash));
  return evaluate(*bound);
}

Value Config::call(const std::string& name, const Kwargs& kwargs) {
  return call(parse_reference(name), kwargs);
}

Value Config::call(const Reference& reference, const Kwargs& kwargs) {
  return Evaluator(*this).call(reference, kwargs, {});
}

void Config::validate(const std::string& name, const Kwargs& kwargs) {
  Evaluator(*this, /*dry=*/true).check_call(parse_reference(name), kwargs);
}

}  // namespace t5x::gin
