// Optimizers: t5x/adafactor.py.
#include "apps/register.h"
#include "base/error.h"
#include "optim/adafactor.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

// [(pattern, value), ...], first match wins.
struct RegexRules {
  std::vector<std::pair<std::string, Value>> rules;
};

std::pair<std::string, Value> pair_of(const Args& args, std::string_view name, const Value& item) {
  const bool sequence = item.is(gin::Kind::kTuple) || item.is(gin::Kind::kList);
  if (!sequence || item.items().size() != 2 || !item.items()[0].is(gin::Kind::kString))
    args.fail(name, "expected pairs ('regular expression', value), found " + item.describe());
  return {item.items()[0].as_string(), item.items()[1]};
}

optim::FactorDim factor_dim(const Args& args, std::string_view name, const Value& value) {
  if (value.is_none()) return optim::FactorDim::kNone;
  if (!value.is(gin::Kind::kString))
    args.fail(name, "expected 'row', 'col', 'batch' or None, found " + value.describe());
  return optim::factor_dim_from_name(value.as_string());
}

optim::FactorRule factor_rule(const Args& args, const Value& value) {
  constexpr const char* kName = "factor_map";
  if (value.is(gin::Kind::kString)) return optim::HeuristicRule{};
  if (!value.is(gin::Kind::kTuple) && !value.is(gin::Kind::kList))
    args.fail(kName, "expected 'heuristic' or a tuple of dimensions, found " + value.describe());
  std::vector<optim::FactorDim> dims;
  for (const Value& item : value.items()) dims.push_back(factor_dim(args, kName, item));
  return dims;
}

std::optional<optim::LogicalFactorRules> logical_factor_rules(const Args& args) {
  const Value& value = args.value("logical_factor_rules");
  if (value.is_none()) return std::nullopt;
  optim::LogicalFactorRules rules;
  for (const auto& [axis, dim] : args.get<std::map<std::string, Value>>("logical_factor_rules"))
    rules[axis] = factor_dim(args, "logical_factor_rules", dim);
  return rules;
}

Value make_adafactor(const Args& args) {
  optim::AdafactorHyperParams hyper;
  hyper.learning_rate = args.get_optional<double>("learning_rate");
  hyper.factored = args.get<bool>("factored");
  if (args.value("multiply_by_parameter_scale").is(gin::Kind::kBool)) {
    hyper.multiply_by_parameter_scale = args.get<bool>("multiply_by_parameter_scale");
  } else {
    std::vector<std::pair<std::string, bool>> rules;
    for (const auto& [pattern, value] : make<RegexRules>(args, "multiply_by_parameter_scale")->rules) {
      if (!value.is(gin::Kind::kBool))
        args.fail("multiply_by_parameter_scale",
                  "expected True or False for each pattern, found " + value.describe());
      rules.emplace_back(pattern, value.as_bool());
    }
    hyper.multiply_by_parameter_scale = optim::HParamMap<bool>(std::move(rules));
  }
  hyper.beta1 = args.get_optional<double>("beta1");
  hyper.decay_rate = args.get<double>("decay_rate");
  hyper.step_offset = args.get<int64_t>("step_offset");
  hyper.clipping_threshold = args.get_optional<double>("clipping_threshold");
  hyper.weight_decay_rate = args.get_optional<double>("weight_decay_rate");
  hyper.min_dim_size_to_factor = args.get<int64_t>("min_dim_size_to_factor");
  hyper.epsilon1 = args.get<double>("epsilon1");
  hyper.epsilon2 = args.get<double>("epsilon2");
  hyper.dtype_momentum = dtype_argument(args, "dtype_momentum");
  if (auto map = make<RegexRules>(args, "factor_map")) {
    std::vector<std::pair<std::string, optim::FactorRule>> rules;
    for (const auto& [pattern, value] : map->rules) rules.emplace_back(pattern, factor_rule(args, value));
    hyper.factor_map = optim::HParamMap<optim::FactorRule>(std::move(rules));
  }
  hyper.logical_factor_rules = logical_factor_rules(args);
  hyper.weight_decay_rate_lr_exponent = args.get_optional<double>("weight_decay_rate_lr_exponent");
  hyper.global_norm_clip_threshold = args.get_optional<double>("global_norm_clip_threshold");
  hyper.max_parameter_scale = args.get_optional<double>("max_parameter_scale");
  hyper.skip_nan_updates = args.get_optional<bool>("skip_nan_updates").value_or(false);
  return Value::object(std::make_shared<optim::Adafactor>(std::move(hyper)));
}

const char* factor_dim_name(optim::FactorDim dim) {
  switch (dim) {
    case optim::FactorDim::kBatch:
      return "batch";
    case optim::FactorDim::kRow:
      return "row";
    case optim::FactorDim::kColumn:
      return "column";
    case optim::FactorDim::kNone:
      break;
  }
  return "none";
}

}  // namespace

void register_optimizers(gin::Registry& registry) {
  registry.add({.name = "t5x.adafactor.standard_logical_factor_rules",
                .params = {},
                .call =
                    [](const Args&) {
                      Value::Entries entries;
                      for (const auto& [axis, dim] : optim::standard_logical_factor_rules())
                        entries.emplace_back(axis, factor_dim_name(dim));
                      return Value::dict(std::move(entries));
                    },
                .help = "which axes of T5's parameters are rows and columns",
                .cheap = true});
  registry.add({.name = "t5x.adafactor.HParamMap",
                .params = {gin::required<std::vector<Value>>("rules")},
                .call =
                    [](const Args& args) {
                      RegexRules made;
                      for (const Value& item : args.get<std::vector<Value>>("rules"))
                        made.rules.push_back(pair_of(args, "rules", item));
                      return Value::object(std::make_shared<RegexRules>(std::move(made)));
                    },
                .help = "a value per parameter, by regular expressions over its path",
                .cheap = true});
  registry.add(
      {.name = "t5x.adafactor.Adafactor",
       .params = {param<double>("learning_rate", nullptr), param<bool>("factored", true),
                  param<Value>("multiply_by_parameter_scale", true), param<double>("beta1", nullptr),
                  param<double>("decay_rate", 0.8), param<int64_t>("step_offset", 0),
                  param<double>("clipping_threshold", 1.0), param<double>("weight_decay_rate", nullptr),
                  param<int64_t>("min_dim_size_to_factor", 128), param<double>("epsilon1", 1e-30),
                  param<double>("epsilon2", 1e-3), param<Value>("dtype_momentum", "float32"),
                  param<Value>("factor_map", nullptr), param<Value>("logical_factor_rules", nullptr),
                  param<double>("weight_decay_rate_lr_exponent", nullptr),
                  param<double>("global_norm_clip_threshold", nullptr),
                  param<double>("max_parameter_scale", nullptr), param<bool>("skip_nan_updates", false)},
       .call = make_adafactor,
       .help = "Adafactor with factored second moments",
       .cheap = true});
}

}  // namespace t5x::apps
