// Adafactor (Shazeer and Stern, arXiv 1804.04235) as t5x has it: second moments factored by logical axis
// rules, updates clipped by their RMS, step sizes relative to the RMS of the parameter. Names and defaults
// are those of t5x.adafactor.Adafactor.
#pragma once

#include <optional>
#include <variant>

#include "optim/factoring.h"
#include "optim/optimizer.h"

namespace t5x::optim {

struct AdafactorHyperParams {
  std::optional<double> learning_rate = {};  // where apply() is given none
  bool factored = true;
  std::variant<bool, HParamMap<bool>> multiply_by_parameter_scale = true;
  std::optional<double> beta1 = {};  // momentum; keeps a slot `m` of the parameter's size
  double decay_rate = 0.8;
  int64_t step_offset = 0;  // the step at which fine-tuning began
  std::optional<double> clipping_threshold = 1.0;
  std::optional<double> weight_decay_rate = {};
  int64_t min_dim_size_to_factor = 128;
  double epsilon1 = 1e-30;  // added to the squared gradient
  double epsilon2 = 1e-3;   // least parameter scale
  DType dtype_momentum = DType::kFloat32;
  std::optional<HParamMap<FactorRule>> factor_map = {};
  std::optional<LogicalFactorRules> logical_factor_rules = {};  // takes the place of factor_map
  // Weight decay is learning_rate to this power, times weight_decay_rate if that is given.
  std::optional<double> weight_decay_rate_lr_exponent = {};
  std::optional<double> global_norm_clip_threshold = {};
  std::optional<double> max_parameter_scale = {};
  bool skip_nan_updates = false;  // elements that would become NaN keep their value
};

class Adafactor : public Optimizer {
 public:
  // Throws ConfigError for hyperparameters that exclude one another or are out of range.
  explicit Adafactor(AdafactorHyperParams hyper_params);

  // Slots v_row, v_col, v and m of every parameter; those not in use have size 1.
  std::map<std::string, TensorType> state_types(const ParamInfos& infos) const override;
  // v and m take the axes of the parameter, v_row and v_col the axes that are left.
  std::map<std::string, std::vector<std::string>> state_axes(const ParamInfos& infos) const override;
  Update apply(const ParamInfos& infos, Tensor step, Tensor learning_rate, const TensorMap& grads,
               const TensorMap& params, const TensorMap& state) const override;

  const AdafactorHyperParams& hyper_params() const { return hyper_params_; }
  Factoring factoring(const std::string& path, const ParamInfo& info) const;

 private:
  AdafactorHyperParams hyper_params_;
};

}  // namespace t5x::optim
