#include "train/trainer.h"

#include "base/error.h"
#include "checkpoint/t5x_checkpoint.h"
#include "train/programs.h"

namespace t5x {
namespace {

constexpr const char* kStep = "state/step";

std::string target_name(const std::string& param) { return "target/" + param; }
std::string slot_name(const std::string& slot) { return "state/param_states/" + slot; }

}  // namespace

MetricSums PendingMetrics::get() const {
  const Array values = values_.to_host();
  MetricSums sums;
  for (size_t i = 0; i < names_.size(); ++i) sums[names_[i]] = static_cast<double>(values.values<float>()[i]);
  return sums;
}

models::BatchTypes types_of(const HostBatch& batch) {
  models::BatchTypes types;
  for (const auto& [name, array] : batch) types[name] = {array.dtype(), array.shape()};
  return types;
}

Trainer::Trainer(const pjrt::Client& client, TrainerConfig config, const CompileCache* cache)
    : client_(client), config_(std::move(config)), cache_(cache), params_(config_.model->param_specs()) {
  if (config_.num_microbatches < 1)
    throw_error<ConfigError>("num_microbatches must be at least 1, found {}", config_.num_microbatches);
  activations_ = {.rules = config_.rules, .partitioned = config_.mesh.num_devices() > 1};
  for (const auto& [path, spec] : params_) {
    infos_[path] = {spec.type, spec.axes};
    entries_[target_name(path)] = {spec.type, config_.rules.to_mesh(spec.axes), spec.axes};
  }
  const auto axes = config_.optimizer->state_axes(infos_);
  for (const auto& [slot, type] : config_.optimizer->state_types(infos_)) {
    entries_[slot_name(slot)] = {type, config_.rules.to_mesh(axes.at(slot)), axes.at(slot)};
  }
  entries_[kStep] = {{DType::kInt32, {}}, {}, {}};
  for (const auto& [name, entry] : entries_)
    check_divisible(config_.mesh, entry.spec, entry.type.shape, name);
  const std::vector<ops::Key> keys = ops::host_split(ops::host_prng_key(config_.seed), 2);
  rng_ = DeviceArray::from_host(client_, config_.mesh, Array::from<uint32_t>(keys[1], {2}));
}

void Trainer::fill(const NamedArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const StateEntry& entry = entries_.at(name);
    const Array cast = array.cast(entry.type.dtype).reshape(entry.type.shape);
    state_[name] = DeviceArray::from_host(client_, config_.mesh, cast, entry.spec);
  }
}

void Trainer::set_step(int64_t step) {
  step_ = step;
  fill({{kStep, Array::scalar<int32_t>(static_cast<int32_t>(step))}});
}

void Trainer::initialize() {
  const ops::Key init_key = ops::host_split(ops::host_prng_key(config_.seed), 2)[0];
  for (const auto& [path, spec] : params_) {
    const StateEntry& entry = entries_.at(target_name(path));
    // Parameters of one type, layout and initialiser share a program.
    const std::string key =
        "init:" + spec.init.name + spec.type.describe() + sdy_sharding(entry.spec, spec.type.shape.rank());
    const Program& init = program(key, [&] { return initializer_program(config_.mesh, spec, entry.spec); });
    const ops::Key param_key = ops::host_fold_in(init_key, spec.key_fold);
    DeviceArray rng = DeviceArray::from_host(client_, config_.mesh, Array::from<uint32_t>(param_key, {2}));
    state_[target_name(path)] = std::move(init.run({&rng})[0]);
  }
  for (const auto& [name, entry] : entries_) {
    if (name.starts_with("state/param_states/")) fill({{name, Array(entry.type.dtype, entry.type.shape)}});
  }
  set_step(0);
}

void Trainer::load(const NamedArrays& arrays, const std::string& source) {
  std::map<std::string, checkpoint::ArrayInfo> expected;
  for (const auto& [name, entry] : entries_) expected[name] = {entry.type.dtype, entry.type.shape};
  checkpoint::check_arrays_match(expected, checkpoint::describe_arrays(arrays), source);
  fill(arrays);
  step_ = arrays.at(kStep).cast(DType::kInt64).item<int64_t>();
}

void Trainer::load_params(const NamedArrays& arrays, const std::string& source) {
  std::map<std::string, checkpoint::ArrayInfo> expected;
  NamedArrays params;
  for (const auto& [name, entry] : entries_) {
    if (name.starts_with("target/")) expected[name] = {entry.type.dtype, entry.type.shape};
  }
  for (const auto& [name, array] : arrays) {
    if (name.starts_with("target/")) params[name] = array;
  }
  checkpoint::check_arrays_match(expected, checkpoint::describe_arrays(params), source);
  fill(params);
}

NamedArrays Trainer::snapshot() const {
  NamedArrays arrays;
  for (const auto& [name, array] : state_) arrays[name] = array.to_host();
  return arrays;
}

const Program& Trainer::program(const std::string& key, const std::function<ProgramSpec()>& spec) {
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    found = programs_.emplace(key, Program::compile(client_, spec(), cache_)).first;
    compile_seconds_ += found->second.compile_seconds();
    ++programs_compiled_;
    programs_from_cache_ += found->second.from_cache() ? 1 : 0;
  }
  return found->second;
}

std::map<std::string, DeviceArray> Trainer::to_devices(const HostBatch& batch) const {
  std::map<std::string, DeviceArray> arrays;
  for (const auto& [name, array] : batch)
    arrays[name] = DeviceArray::from_host(client_, config_.mesh, array, {"data"});
  return arrays;
}

const Program& Trainer::compile_train(const models::BatchTypes& batch) {
  return program("train" + describe_types(batch), [&] {
    ProgramSpec spec{
        .name = "train_step", .mesh = config_.mesh, .arguments = {}, .results = {}, .function = {}};
    for (const auto& [name, entry] : entries_) {
      spec.arguments.push_back({.name = name, .type = entry.type, .spec = entry.spec, .donated = true});
      spec.results.push_back({.name = name, .spec = entry.spec});
    }
    spec.results.push_back({.name = "metrics"});
    spec.arguments.push_back({.name = "rng", .type = {DType::kUInt32, {2}}});
    for (const auto& [name, type] : batch)
      spec.arguments.push_back({.name = "batch/" + name, .type = type, .spec = {"data"}});
    spec.function = [this, spec](const std::vector<Tensor>& args) {
      nn::TensorMap values;
      for (size_t i = 0; i < args.size(); ++i) values[spec.arguments[i].name] = args[i];
      TrainStepInputs inputs{.params = strip_prefix(values, "target/"),
                             .opt_state = strip_prefix(values, "state/param_states/"),
                             .batch = strip_prefix(values, "batch/"),
                             .step = values.at(kStep),
                             .rng = values.at("rng")};
      TrainStepOutputs out = trace_train_step(config_, infos_, activations_, inputs);
      sum_names_ = out.metric_names;
      std::vector<Tensor> results;
      for (const auto& [name, entry] : entries_) {
        if (name == kStep) {
          results.push_back(out.step);
        } else if (name.starts_with("target/")) {
          results.push_back(out.params.at(name.substr(std::string("target/").size())));
        } else {
          results.push_back(out.opt_state.at(name.substr(std::string("state/param_states/").size())));
        }
      }
      results.push_back(out.metrics);
      return results;
    };
    return spec;
  });
}

PendingMetrics Trainer::train_step(const HostBatch& batch) {
  const Program& step = compile_train(types_of(batch));
  std::map<std::string, DeviceArray> features = to_devices(batch);
  std::vector<DeviceArray*> arguments;
  for (auto& [name, array] : state_) arguments.push_back(&array);
  arguments.push_back(&rng_);
  for (auto& [name, array] : features) arguments.push_back(&array);
  std::vector<DeviceArray> results = step.run(arguments);
  size_t next = 0;
  for (auto& [name, array] : state_) array = std::move(results[next++]);
  ++step_;
  return {sum_names_, std::move(results[next])};
}

std::vector<DeviceArray> Trainer::run_forward(const std::string& name, const HostBatch& batch,
                                              size_t num_results, const ForwardFunction& function) {
  const models::BatchTypes types = types_of(batch);
  const Program& forward = program(name + describe_types(types), [&] {
    ProgramSpec spec{.name = name.substr(0, name.find(':')),
                     .mesh = config_.mesh,
                     .arguments = {},
                     .results = {},
                     .function = {}};
    for (const auto& [entry_name, entry] : entries_) {
      if (entry_name.starts_with("target/")) {
        spec.arguments.push_back({.name = entry_name, .type = entry.type, .spec = entry.spec});
      }
    }
    for (const auto& [feature, type] : types) {
      spec.arguments.push_back({.name = "batch/" + feature, .type = type, .spec = {"data"}});
    }
    for (size_t i = 0; i < num_results; ++i) spec.results.push_back({.name = fmt::format("result {}", i)});
    spec.function = [spec, &function](const std::vector<Tensor>& args) {
      nn::TensorMap values;
      for (size_t i = 0; i < args.size(); ++i) values[spec.arguments[i].name] = args[i];
      return function(strip_prefix(values, "target/"), strip_prefix(values, "batch/"));
    };
    return spec;
  });
  std::map<std::string, DeviceArray> features = to_devices(batch);
  std::vector<DeviceArray*> arguments;
  for (auto& [entry_name, array] : state_) {
    if (entry_name.starts_with("target/")) arguments.push_back(&array);
  }
  for (auto& [feature, array] : features) arguments.push_back(&array);
  return forward.run(arguments);
}

MetricSums Trainer::eval_step(const HostBatch& batch) {
  auto result =
      run_forward("eval_step", batch, 1, [this](const nn::TensorMap& params, const nn::TensorMap& features) {
        return std::vector<Tensor>{
            stack_scalars(config_.model->loss(params, features, {.activations = &activations_}).sums)};
      });
  return PendingMetrics(models::metric_names(), std::move(result[0])).get();
}

Trainer::Prediction Trainer::predict(const HostBatch& batch, const decode::PredictOptions& options) {
  auto results = run_forward("predict" + describe(options), batch, 2,
                             [&](const nn::TensorMap& params, const nn::TensorMap& features) {
                               const decode::Decoded decoded =
                                   decode::predict_batch(*config_.model, params, features, options);
                               return best_decode(decoded);
                             });
  return {results[0].to_host(), results[1].to_host()};
}

Array Trainer::score(const HostBatch& batch) {
  auto results =
      run_forward("score", batch, 1, [this](const nn::TensorMap& params, const nn::TensorMap& features) {
        return std::vector<Tensor>{config_.model->score(params, features, {.activations = &activations_})};
      });
  return results[0].to_host();
}

}  // namespace t5x
