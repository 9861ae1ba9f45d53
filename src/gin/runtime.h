// What evaluation adds to a configuration, and the evaluator itself; private to this folder.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gin/config.h"

namespace t5x::gin {

struct Config::Runtime {
  std::mutex mutex;
  std::map<Key, Params> operative;
  std::map<std::string, Value> operative_macros;
  std::map<std::string, Value> singletons;
};

// Evaluates values and makes calls. Semantics: config.py, ConfigurableReference.__deepcopy__ and gin_wrapper.
class Evaluator {
 public:
  // `dry`: only cheap configurables are run, the others give Pending.
  explicit Evaluator(Config& config, bool dry = false) : config_(config), dry_(dry) {}

  Value evaluate(const Value& value);
  Value call(const Reference& reference, const Kwargs& kwargs, const Location& location);
  // As call, but does not run the configurable itself.
  void check_call(const Reference& reference, const Kwargs& kwargs);

 private:
  Value evaluate_reference(const Value& value);
  Value evaluate_macro(const Macro& macro, const Location& location);
  Value singleton(const Configurable& target);
  Args collect(const Configurable& target, const Kwargs& kwargs, bool whole);
  Config::Params bound(const Configurable& target) const;
  void check_kwargs(const Configurable& target, const Kwargs& kwargs) const;
  void record(const Configurable& target, const Config::Params& raw, const Kwargs& kwargs);
  void check_type(const Args& args, const Param& param, const Value& value) const;

  Config& config_;
  bool dry_;
  std::set<std::pair<std::string, const Configurable*>>
      checked_;  // references that a dry run has been through
};

// The value of a macro that `name` stands for: its longest bound prefix; null if there is none.
const Value* find_macro(const std::map<std::string, Value>& macros, const std::string& name);

// "--gin.scope/name.param=VALUE", the way to set it from the command line.
std::string flag_for(const std::string& scope, const Configurable& target, const std::string& param,
                     const Registry& registry);

}  // namespace t5x::gin
