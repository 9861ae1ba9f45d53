// Which second moments Adafactor keeps factored, and along which dimensions it averages: t5x's factor rules
// (t5x/adafactor.py; Shazeer and Stern, arXiv 1804.04235, section 3).
//   ROW, COLUMN  the two sets of dimensions whose outer product stands for the full second moment;
//   BATCH        stacked parameters, such as scanned layers: never averaged over;
//   NONE         not factored, but averaged over.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "core/shape.h"

namespace t5x::optim {

enum class FactorDim { kNone, kBatch, kRow, kColumn };

// "row", "col" or "column", "batch", "none" or "unfactorized", in any case. Throws ConfigError.
FactorDim factor_dim_from_name(const std::string& name);

// The two largest dimensions are factored if both are large enough.
struct HeuristicRule {
  bool operator==(const HeuristicRule&) const = default;
};
using FactorRule = std::variant<HeuristicRule, std::vector<FactorDim>>;
using LogicalFactorRules = std::map<std::string, FactorDim>;

// The table that t5x's T5 models use.
LogicalFactorRules standard_logical_factor_rules();

// A value per parameter: that of the first regular expression found in the parameter's path.
template <class T>
class HParamMap {
 public:
  explicit HParamMap(std::vector<std::pair<std::string, T>> rules) {
    for (auto& [pattern, value] : rules) rules_.emplace_back(std::regex(pattern), std::move(value));
  }
  // Throws ConfigError when no rule matches.
  const T& operator[](const std::string& path) const {
    for (const auto& [pattern, value] : rules_) {
      if (std::regex_search(path, pattern)) return value;
    }
    throw_error<ConfigError>(
        "no rule matches the parameter '{}'; add a rule such as ('.*', value) at the end", path);
  }

 private:
  std::vector<std::pair<std::regex, T>> rules_;
};

using Dims = std::vector<int64_t>;

struct Factoring {
  bool heuristic = false;  // the heuristic decided, not an explicit rule
  Dims averaging_dims;     // of RMS values and clipping
  // d1 and d0: v_row keeps all but d0, v_col all but d1. Empty when the second moment is kept in full.
  std::optional<std::pair<Dims, Dims>> factored_dims;
};

// The rule that logical axis names give. Parameters with only rows or only columns are not factored. Throws
// ConfigError for an axis without a rule and for a parameter with rows, columns and unfactored dimensions.
std::vector<FactorDim> rule_from_axes(const LogicalFactorRules& rules, const std::vector<std::string>& axes,
                                      const std::string& path);

// `rule` empty: nothing is factored. Explicit rules of parameters of rank 2 or less without BATCH dimensions
// give way to the heuristic, as in t5x. Throws ConfigError for a rank that does not fit.
Factoring decide_factoring(const std::optional<FactorRule>& rule, const Shape& shape,
                           int64_t min_dim_size_to_factor, const std::string& path);

}  // namespace t5x::optim
