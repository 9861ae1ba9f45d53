// Configurables: C++ functions with named parameters, registered under the fully qualified Python names that
// t5x and seqio users write ("t5x.utils.DatasetConfig"). The registry is filled by explicit calls at
// start-up; the bindings of a gin file live in Config (gin/config.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gin/convert.h"
#include "gin/value.h"

namespace t5x::gin {

class Config;
class Args;

using Kwargs = std::vector<std::pair<std::string, Value>>;

struct Param {
  std::string name;
  std::optional<Value> default_value;  // none: must be bound or passed
  std::string help;
  std::string expected;  // "an int"; for messages
  bool (*accepts)(const Value&) = nullptr;

  bool required() const { return !default_value.has_value(); }
};

// A parameter that takes a T (see gin/convert.h) and must be given.
template <class T>
Param required(std::string name, std::string help = {}) {
  return {std::move(name), std::nullopt, std::move(help), Convert<T>::expected(), &Convert<T>::accepts};
}
// A parameter that takes a T and has a default, which may be None whatever T is.
template <class T>
Param param(std::string name, Value default_value, std::string help = {}) {
  return {std::move(name), std::move(default_value), std::move(help), Convert<T>::expected(),
          &Convert<T>::accepts};
}

struct Configurable {
  std::string name;  // "t5x.utils.DatasetConfig"
  std::vector<Param> params;
  std::function<Value(const Args&)> call;
  std::string help = {};
  std::string module = {};                // default: the name up to its last dot
  std::vector<std::string> aliases = {};  // other full names, for re-exports
  bool any_params = false;                // takes parameters that are not listed (**kwargs)
  bool cheap = false;                     // a dry run calls it too: it reads no file and allocates little

  const Param* find_param(std::string_view param) const;
};

class Registry {
 public:
  // Holds gin's own: gin.singleton, and the constant gin.REQUIRED.
  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Throws ConfigError if a different configurable has the name or one of the aliases.
  const Configurable& add(Configurable configurable);
  // `alias` becomes another full name of `name`.
  void alias(const std::string& alias, const std::string& name);
  // `%module.NAME`.
  void constant(const std::string& name, Value value);

  // By full name or alias; null if there is none.
  const Configurable* find(std::string_view full_name) const;
  // Every configurable one of whose names ends with the dotted components of `selector`; one that is named
  // exactly so is the only match.
  std::vector<const Configurable*> matches(std::string_view selector) const;
  // Constants by suffix, as full names.
  std::vector<std::string> constant_matches(std::string_view selector) const;
  const Value& constant_value(const std::string& full_name) const { return constants_.at(full_name); }
  // Whether any configurable's name lies in this module or below it.
  bool has_module(std::string_view module) const;
  // All full names, aliases included, sorted.
  std::vector<std::string> names() const;
  // The shortest suffix of the name that stands for this configurable alone.
  std::string minimal_selector(const Configurable& configurable) const;

 private:
  std::vector<std::unique_ptr<Configurable>> configurables_;
  std::map<std::string, const Configurable*, std::less<>> by_name_;
  struct Named {
    std::string name;
    const Configurable* target;
  };
  std::multimap<std::string, Named, std::less<>> by_last_;  // by last component, one per name
  std::map<std::string, Value, std::less<>> constants_;
};

// A reference that is not evaluated, `@foo`: C++ calls it when it wants, with more arguments, which win over
// bound ones. Without a scope of its own it runs in the caller's.
class Callable {
 public:
  Callable(Config& config, Reference reference) : config_(&config), reference_(std::move(reference)) {}
  Value operator()(const Kwargs& kwargs = {}) const;
  // Positional arguments take the parameters in their order.
  Value call(const std::vector<Value>& positional, const Kwargs& kwargs = {}) const;
  const std::string& name() const;  // the full name of the configurable
  const Configurable& configurable() const { return *reference_.target; }
  const Reference& reference() const { return reference_; }

 private:
  Config* config_;
  Reference reference_;
};

template <>
struct Convert<Callable> {
  static std::string expected() { return "a reference to a configurable, such as @name"; }
  static bool accepts(const Value& v);
  static Callable from(const Value& v);
};

// The evaluated arguments of one call: what the caller passed, else what is bound, else the default.
class Args {
 public:
  Args(Config& config, const Configurable& configurable, std::string scope)
      : config_(&config), configurable_(&configurable), scope_(std::move(scope)) {}

  // Throws ConfigError if the value does not fit: what was expected, what came, where it was set.
  template <class T>
  T get(std::string_view param) const {
    const Value& v = value(param);
    if (!Convert<T>::accepts(v)) throw_mismatch(param, Convert<T>::expected(), v);
    return Convert<T>::from(v);
  }
  // None, and a parameter that has no value at all, give nothing.
  template <class T>
  std::optional<T> get_optional(std::string_view param) const {
    const Value* v = find(param);
    if (v == nullptr || v->is_none()) return std::nullopt;
    return get<T>(param);
  }
  // Throws ConfigError if the parameter has no value.
  const Value& value(std::string_view param) const;
  const Value* find(std::string_view param) const;
  bool has(std::string_view param) const { return find(param) != nullptr; }
  // All of them: listed parameters in order, then others.
  const Kwargs& all() const { return values_; }

  Config& config() const { return *config_; }
  const Configurable& configurable() const { return *configurable_; }
  const std::string& scope() const { return scope_; }  // "a/b"
  // "a ConfigError that names the parameter and where its value was set": for checks of the configurable's
  // own.
  [[noreturn]] void fail(std::string_view param, std::string_view message) const;

 private:
  friend class Evaluator;
  [[noreturn]] void throw_mismatch(std::string_view param, const std::string& expected, const Value& v) const;
  Config* config_;
  const Configurable* configurable_;
  std::string scope_;
  Kwargs values_;
};

}  // namespace t5x::gin
