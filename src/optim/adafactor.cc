#include "optim/adafactor.h"

#include <algorithm>

#include "base/error.h"
#include "graph/trace.h"
#include "ops/ops.h"

namespace t5x::optim {

namespace {

bool is_in(const Dims& dims, size_t axis) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(axis)) != dims.end();
}

template <class T>
std::vector<T> without(const std::vector<T>& values, const Dims& dims) {
  std::vector<T> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_in(dims, i)) kept.push_back(values[i]);
  }
  return kept;
}

// x of shape `full` without `dims`, with these dimensions put back as size 1.
Tensor put_back(Tensor x, const Shape& full, const Dims& dims) {
  std::vector<int64_t> shape = full.dims();
  for (int64_t d : dims) shape[static_cast<size_t>(d)] = 1;
  return ops::reshape(x, shape);
}

// The positions of `dims` once `removed` are gone.
Dims renumber(const Dims& dims, const Dims& removed) {
  Dims result;
  for (int64_t d : dims) {
    result.push_back(d - std::count_if(removed.begin(), removed.end(), [&](int64_t e) { return e < d; }));
  }
  return result;
}

// RMS over `dims`, which stay with size 1. No dims (every one is a BATCH): that of each element.
Tensor rms_from_squares(Tensor squares, const Dims& dims) {
  return ops::sqrt(dims.empty() ? squares : ops::reduce_mean(squares, dims, /*keepdims=*/true));
}

Tensor keep_where_nan(Tensor value, Tensor old) { return ops::select(value != value, old, value); }

struct Scalars {
  Tensor decay_rate, mixing_rate, learning_rate, weight_decay_rate;
};

struct ParamUpdate {
  Tensor param;
  TensorMap slots;  // those in use
};

// The second moment's part: the new slots and, as factors that broadcast against the gradient g, the
// direction y = g * left * right and the square of left * right.
struct Direction {
  TensorMap slots;
  Tensor left, right;    // `right` empty when not factored
  Tensor left2, right2;  // their squares, computed without a root
};

Direction factored_direction(const Factoring& f, const AdafactorHyperParams& hp, const Scalars& s, Tensor g2,
                             Tensor v_row, Tensor v_col) {
  const auto& [d1, d0] = *f.factored_dims;
  Direction d;
  // mean(g2) + epsilon equals mean(g2 + epsilon) and leaves the reductions nothing but squares to add.
  Tensor row = s.decay_rate * v_row + s.mixing_rate * (ops::reduce_mean(g2, d0) + hp.epsilon1);
  Tensor col = s.decay_rate * v_col + s.mixing_rate * (ops::reduce_mean(g2, d1) + hp.epsilon1);
  Tensor row_mean = ops::reduce_mean(row, renumber(d1, d0), /*keepdims=*/true);
  Tensor row2 = row_mean / row;
  d.left2 = put_back(row2, g2.shape(), d0);
  d.right2 = put_back(1.0 / col, g2.shape(), d1);
  d.left = put_back(ops::sqrt(row2), g2.shape(), d0);
  d.right = put_back(ops::rsqrt(col), g2.shape(), d1);
  d.slots = {{"v_row", row}, {"v_col", col}};
  return d;
}

Direction full_direction(const AdafactorHyperParams& hp, const Scalars& s, Tensor g2, Tensor v) {
  Direction d;
  Tensor new_v = s.decay_rate * v + s.mixing_rate * (g2 + hp.epsilon1);
  d.left = ops::rsqrt(new_v);
  d.left2 = 1.0 / new_v;
  d.slots = {{"v", new_v}};
  return d;
}

ParamUpdate update_param(const Factoring& f, const AdafactorHyperParams& hp, const Scalars& s,
                         bool scale_by_param, Tensor grad, Tensor param, const TensorMap& slots) {
  Tensor g = ops::convert(grad, DType::kFloat32);
  Tensor w = ops::convert(param, DType::kFloat32);
  const Dims& average = f.averaging_dims;

  Tensor scale = s.learning_rate;
  if (scale_by_param) {
    Tensor rms = rms_from_squares(w * w, average);
    rms = ops::maximum(rms, hp.epsilon2);
    if (hp.max_parameter_scale) rms = ops::minimum(rms, *hp.max_parameter_scale);
    scale = scale * rms;
  }

  Tensor g2 = g * g;
  Direction d = f.factored_dims ? factored_direction(f, hp, s, g2, slots.at("v_row"), slots.at("v_col"))
                                : full_direction(hp, s, g2, slots.at("v"));
  ParamUpdate result{.param = {}, .slots = d.slots};

  if (hp.clipping_threshold) {
    Tensor y2 = g2 * d.left2;
    if (d.right2) y2 = y2 * d.right2;
    Tensor rms = rms_from_squares(y2, average);
    scale = scale / ops::maximum(rms / *hp.clipping_threshold, 1.0);
  }
  // Everything that is constant along a row goes into the row's factor: two multiplications an element.
  Tensor subtrahend = g * (d.left * scale);
  if (d.right) subtrahend = subtrahend * d.right;
  if (hp.beta1) {
    Tensor m = ops::convert(slots.at("m"), DType::kFloat32);
    subtrahend = *hp.beta1 * m + (1.0 - *hp.beta1) * subtrahend;
    result.slots["m"] = ops::convert(subtrahend, hp.dtype_momentum);
  }
  Tensor kept = s.weight_decay_rate ? (1.0 - s.weight_decay_rate) * w : w;
  result.param = kept - subtrahend;
  if (hp.skip_nan_updates) {
    result.param = keep_where_nan(result.param, w);
    for (auto& [name, value] : result.slots) value = keep_where_nan(value, slots.at(name));
  }
  result.param = ops::convert(result.param, param.dtype());
  return result;
}

constexpr const char* kSlots[] = {"v_row", "v_col", "v", "m"};

}  // namespace

Adafactor::Adafactor(AdafactorHyperParams hyper_params) : hyper_params_(std::move(hyper_params)) {
  const AdafactorHyperParams& hp = hyper_params_;
  if (!hp.factored && hp.factor_map) {
    throw_error<ConfigError>("Adafactor.factored is False but a factor_map is given: drop one of them");
  }
  if (hp.clipping_threshold && !(*hp.clipping_threshold > 0)) {
    throw_error<ConfigError>("Adafactor.clipping_threshold must be positive or None, not {}",
                             *hp.clipping_threshold);
  }
  if (hp.global_norm_clip_threshold && *hp.global_norm_clip_threshold < 0) {
    throw_error<ConfigError>("Adafactor.global_norm_clip_threshold must not be negative, but it is {}",
                             *hp.global_norm_clip_threshold);
  }
  if (!is_float(hp.dtype_momentum)) {
    throw_error<ConfigError>("Adafactor.dtype_momentum must be a float type, not {}",
                             name(hp.dtype_momentum));
  }
}

Factoring Adafactor::factoring(const std::string& path, const ParamInfo& info) const {
  const AdafactorHyperParams& hp = hyper_params_;
  std::optional<FactorRule> rule;
  if (hp.factored) {
    if (hp.logical_factor_rules) {
      rule = rule_from_axes(*hp.logical_factor_rules, info.axes, path);
    } else if (hp.factor_map) {
      rule = (*hp.factor_map)[path];
    } else {
      rule = HeuristicRule{};
    }
  }
  return decide_factoring(rule, info.type.shape, hp.min_dim_size_to_factor, path);
}

std::map<std::string, TensorType> Adafactor::state_types(const ParamInfos& infos) const {
  std::map<std::string, TensorType> types;
  for (const auto& [path, info] : infos) {
    for (const char* slot : kSlots) types[path + "/" + slot] = {DType::kFloat32, {1}};
    const Factoring f = factoring(path, info);
    const Shape& shape = info.type.shape;
    if (f.factored_dims) {
      const auto& [d1, d0] = *f.factored_dims;
      types[path + "/v_row"].shape = Shape(without(shape.dims(), d0));
      types[path + "/v_col"].shape = Shape(without(shape.dims(), d1));
    } else {
      types[path + "/v"].shape = shape;
    }
    if (hyper_params_.beta1) types[path + "/m"] = {hyper_params_.dtype_momentum, shape};
  }
  return types;
}

std::map<std::string, std::vector<std::string>> Adafactor::state_axes(const ParamInfos& infos) const {
  std::map<std::string, std::vector<std::string>> axes;
  for (const auto& [path, info] : infos) {
    if (info.axes.size() != info.type.shape.rank()) {
      throw_error<ConfigError>("the parameter '{}' of shape {} names {} axes: name one per dimension", path,
                               info.type.shape.to_string(), info.axes.size());
    }
    for (const char* slot : kSlots) axes[path + "/" + slot] = {""};
    const Factoring f = factoring(path, info);
    if (f.factored_dims) {
      axes[path + "/v_row"] = without(info.axes, f.factored_dims->second);
      axes[path + "/v_col"] = without(info.axes, f.factored_dims->first);
    } else {
      axes[path + "/v"] = info.axes;
    }
    if (hyper_params_.beta1) axes[path + "/m"] = info.axes;
  }
  return axes;
}

Update Adafactor::apply(const ParamInfos& infos, Tensor step, Tensor learning_rate, const TensorMap& grads,
                        const TensorMap& params, const TensorMap& state) const {
  NameScope scope("adafactor");
  const AdafactorHyperParams& hp = hyper_params_;
  const TensorType scalar{DType::kFloat32, {}};
  if (!learning_rate) {
    if (!hp.learning_rate) {
      throw_error<ConfigError>(
          "no learning rate: give the trainer a learning_rate_fn or set "
          "Adafactor.learning_rate");
    }
    learning_rate = full(scalar, *hp.learning_rate);
  }
  Scalars s;
  s.learning_rate = ops::convert(learning_rate, DType::kFloat32);
  Tensor t = ops::convert(step - static_cast<double>(hp.step_offset), DType::kFloat32) + 1.0;
  s.decay_rate = 1.0 - ops::pow(t, -hp.decay_rate);
  s.mixing_rate = 1.0 - s.decay_rate;
  if (hp.weight_decay_rate) s.weight_decay_rate = full(scalar, *hp.weight_decay_rate);
  if (hp.weight_decay_rate_lr_exponent && *hp.weight_decay_rate_lr_exponent != 0) {
    const double rate = hp.weight_decay_rate.value_or(0.0);
    s.weight_decay_rate =
        (rate != 0 ? rate : 1.0) * ops::pow(s.learning_rate, *hp.weight_decay_rate_lr_exponent);
  }

  const bool clip = hp.global_norm_clip_threshold.value_or(0.0) > 0;
  const TensorMap& used = clip ? clip_by_global_norm(grads, *hp.global_norm_clip_threshold) : grads;
  Update update{.params = {}, .state = state};
  for (const auto& [path, info] : infos) {
    NameScope param_scope(path);
    TensorMap slots;
    for (const char* slot : kSlots) slots[slot] = entry(state, path + "/" + slot, "state");
    const bool* fixed = std::get_if<bool>(&hp.multiply_by_parameter_scale);
    const bool scale_by_param =
        fixed != nullptr ? *fixed : std::get<HParamMap<bool>>(hp.multiply_by_parameter_scale)[path];
    const Factoring factors = factoring(path, info);
    const Tensor gradient = entry(used, path, "gradient"), param = entry(params, path, "parameter");
    // Parameters of one shape share one compiled update.
    std::vector<std::string> slot_names;
    const ops::Tensors results = ops::outline("adafactor", [&] {
      const ParamUpdate result = update_param(factors, hp, s, scale_by_param, gradient, param, slots);
      ops::Tensors values{result.param};
      for (const auto& [slot, value] : result.slots) {
        slot_names.push_back(slot);
        values.push_back(value);
      }
      return values;
    });
    update.params[path] = results[0];
    for (size_t i = 0; i < slot_names.size(); ++i) update.state[path + "/" + slot_names[i]] = results[i + 1];
  }
  return update;
}

}  // namespace t5x::optim
