// What can be told about a configuration without running anything; private to this folder.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gin/config.h"

namespace t5x::gin {

class Checker {
 public:
  explicit Checker(Config& config) : config_(config) {}
  // Every problem, in the order of files and lines.
  std::vector<Problem> run();

 private:
  // Unknown references and macros in the value of `key`, and %gin.REQUIRED if nothing replaced it.
  void check_names(const Value& value, const std::string& key);
  void check_type(const Configurable& target, const std::string& param, const Value& value);
  // The value with macros replaced by what they hold; what needs a call is Pending.
  Value without_macros(const Value& value, std::set<std::string>& open);
  bool is_required_marker(const Value& value) const;
  void add(const Location& location, std::string message);

  Config& config_;
  std::vector<Problem> problems_;
};

}  // namespace t5x::gin
