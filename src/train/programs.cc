#include "train/programs.h"

#include "base/error.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "ops/ops.h"

namespace t5x {
namespace {

struct GradientsAndSums {
  nn::TensorMap gradients, sums;
};

GradientsAndSums differentiate(const TrainerConfig& config, const nn::ActivationRules& activations,
                               const nn::TensorMap& params, const nn::TensorMap& batch, Tensor dropout_key) {
  const models::LossMetrics loss =
      config.model->loss(params, batch, {.dropout_key = dropout_key, .activations = &activations});
  std::vector<Tensor> values;
  for (const auto& [name, param] : params) values.push_back(param);
  const std::vector<Tensor> gradients = grad(loss.loss, values);
  GradientsAndSums out{.gradients = {}, .sums = loss.sums};
  size_t next = 0;
  for (const auto& [name, param] : params) out.gradients[name] = gradients[next++];
  return out;
}

// The microbatches run in a loop that carries the sums of gradients and metrics, so that the activations of
// one microbatch only are alive at a time.
GradientsAndSums accumulate(const TrainerConfig& config, const nn::ActivationRules& activations,
                            const nn::TensorMap& params, const nn::TensorMap& batch, Tensor key) {
  const int64_t count = config.num_microbatches;
  std::vector<std::string> features;
  ops::Tensors slices;
  for (const auto& [name, feature] : batch) {
    const int64_t size = feature.dim(0);
    if (size % count != 0) {
      throw_error<ConfigError>("the batch size {} is not a multiple of num_microbatches {}", size, count);
    }
    std::vector<int64_t> dims = feature.shape().dims();
    dims[0] = size / count;
    dims.insert(dims.begin(), count);
    features.push_back(name);
    Tensor split = ops::reshape(feature, dims);
    if (activations.partitioned)
      split = ops::sharding_constraint(split, sdy_sharding({"", "data"}, split.rank()));
    slices.push_back(split);
  }
  ops::Tensors init{key};
  for (const auto& [name, param] : params) init.push_back(zeros(param.type()));
  const std::vector<std::string> sums = models::metric_names();
  for (size_t i = 0; i < sums.size(); ++i) init.push_back(zeros({DType::kFloat32, {}}));
  auto body = [&](const ops::Tensors& carry, const ops::Tensors& x) {
    nn::TensorMap micro;
    for (size_t i = 0; i < features.size(); ++i) micro[features[i]] = x[i];
    Tensor keys = ops::split(carry[0], 2);
    auto row = [&](int64_t i) { return ops::reshape(ops::slice_in_dim(keys, i, i + 1, 0), {2}); };
    GradientsAndSums part = differentiate(config, activations, params, micro, row(1));
    ops::Tensors next{row(0)};
    size_t at = 1;
    for (const auto& [name, gradient] : part.gradients) next.push_back(carry[at++] + gradient);
    for (const std::string& name : sums) next.push_back(carry[at++] + part.sums.at(name));
    return std::pair(next, ops::Tensors{});
  };
  const ops::Tensors carry = ops::scan(init, slices, count, body).carry;
  GradientsAndSums out;
  size_t at = 1;
  for (const auto& [name, param] : params) out.gradients[name] = carry[at++];
  for (const std::string& name : sums) out.sums[name] = carry[at++];
  return out;
}

}  // namespace

TrainStepOutputs trace_train_step(const TrainerConfig& config, const optim::ParamInfos& infos,
                                  const nn::ActivationRules& activations, const TrainStepInputs& in) {
  Tensor key = ops::fold_in(in.rng, in.step);
  GradientsAndSums result = config.num_microbatches == 1
                                ? differentiate(config, activations, in.params, in.batch, key)
                                : accumulate(config, activations, in.params, in.batch, key);
  AbsoluteScope scope("optimizer");
  Tensor learning_rate = config.learning_rate(in.step);
  const optim::Update update =
      config.optimizer->apply(infos, in.step, learning_rate, result.gradients, in.params, in.opt_state);
  result.sums["learning_rate"] = learning_rate;
  result.sums["gradient_norm"] = optim::global_norm(result.gradients);
  TrainStepOutputs out{.params = update.params,
                       .opt_state = update.state,
                       .step = in.step + 1.0,
                       .metrics = stack_scalars(result.sums),
                       .metric_names = {}};
  for (const auto& [name, tensor] : result.sums) out.metric_names.push_back(name);
  return out;
}

ProgramSpec initializer_program(const Mesh& mesh, const nn::ParamSpec& param, const PartitionSpec& layout) {
  return {.name = "initialize",
          .mesh = mesh,
          .arguments = {{.name = "rng", .type = {DType::kUInt32, {2}}}},
          .results = {{.name = "value", .spec = layout}},
          .function = [param](const std::vector<Tensor>& args) {
            return std::vector<Tensor>{param.init.compute(args[0], param.type)};
          }};
}

nn::TensorMap strip_prefix(const nn::TensorMap& all, const std::string& prefix) {
  nn::TensorMap out;
  for (const auto& [name, tensor] : all) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = tensor;
  }
  return out;
}

Tensor stack_scalars(const nn::TensorMap& scalars) {
  std::vector<Tensor> parts;
  for (const auto& [name, scalar] : scalars) parts.push_back(ops::reshape(scalar, {1}));
  return ops::concatenate(parts, 0);
}

std::vector<Tensor> best_decode(const decode::Decoded& decoded) {
  const int64_t batch = decoded.sequences.dim(0), decodes = decoded.sequences.dim(1),
                length = decoded.sequences.dim(2);
  return {ops::reshape(ops::slice_in_dim(decoded.sequences, decodes - 1, decodes, 1), {batch, length}),
          ops::reshape(ops::slice_in_dim(decoded.scores, decodes - 1, decodes, 1), {batch})};
}

std::string describe_types(const models::BatchTypes& types) {
  std::string text;
  for (const auto& [name, type] : types) text += ":" + name + type.describe();
  return text;
}

std::string describe(const decode::PredictOptions& options) {
  const decode::BeamSearchOptions& beam = options.beam;
  const decode::SampleOptions& sample = options.sample;
  auto limit = [](const std::optional<int64_t>& steps) { return steps ? std::to_string(*steps) : "none"; };
  return fmt::format(":{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}", static_cast<int>(options.method),
                     options.prompt_with_targets, beam.eos_id, beam.num_decodes, beam.alpha,
                     limit(beam.max_decode_len), sample.eos_id, sample.num_decodes, sample.temperature,
                     sample.topk, sample.topp, limit(sample.max_decode_steps),
                     limit(sample.max_decode_steps_hard_limit), sample.rescale_log_probs);
}

}  // namespace t5x
