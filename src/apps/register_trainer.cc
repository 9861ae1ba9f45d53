// The trainer and what it is made of: t5x/trainer.py, t5x/partitioning.py, t5x/gin_utils.py and the learning
// rate of t5x/utils.py.
#include "apps/register.h"
#include "base/error.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

// [('batch', 'data'), ('embed', None), ...]
std::vector<AxisRules::Rule> axis_rules(const Args& args, std::string_view name) {
  std::vector<AxisRules::Rule> rules;
  for (const Value& item : args.get<std::vector<Value>>(name)) {
    const bool pair = (item.is(gin::Kind::kTuple) || item.is(gin::Kind::kList)) && item.items().size() == 2 &&
                      item.items()[0].is(gin::Kind::kString) &&
                      (item.items()[1].is_none() || item.items()[1].is(gin::Kind::kString));
    if (!pair)
      args.fail(name, "expected pairs ('logical axis', 'data', 'model' or None), found " + item.describe());
    const Value& to = item.items()[1];
    const std::string mesh_axis = to.is_none() ? "" : to.as_string();
    if (!mesh_axis.empty() && mesh_axis != "data" && mesh_axis != "model")
      args.fail(name, fmt::format("the mesh has the axes 'data' and 'model', found '{}'", mesh_axis));
    rules.emplace_back(item.items()[0].as_string(), mesh_axis);
  }
  return rules;
}

Value make_partitioner(const Args& args) {
  PartitionerSettings made;
  const auto partitions = args.get_optional<int64_t>("num_partitions");
  const auto submesh = args.get_optional<std::vector<int64_t>>("model_parallel_submesh");
  if (partitions && submesh)
    args.fail("model_parallel_submesh", "set either this or num_partitions and leave the other None");
  if (partitions) made.model_size = *partitions;
  if (submesh) {
    for (int64_t size : *submesh) made.model_size *= size;
  }
  if (made.model_size < 1)
    args.fail(partitions ? "num_partitions" : "model_parallel_submesh",
              fmt::format("expected 1 or more devices, found {}", made.model_size));
  if (!args.get<bool>("params_on_devices"))
    args.fail("params_on_devices", "False is not supported: parameters stay on the devices");
  for (const char* name : {"ici_mesh_shape", "dcn_mesh_shape"})
    reject(args, name, "the mesh is devices / num_partitions by num_partitions");
  if (!args.value("logical_axis_rules").is_none())
    made.rules = AxisRules(axis_rules(args, "logical_axis_rules"));
  return Value::object(std::make_shared<PartitionerSettings>(std::move(made)));
}

Value make_standard_rules(const Args& args) {
  const int64_t activations = args.get<int64_t>("activation_partitioning_dims");
  const int64_t parameters = args.get<int64_t>("parameter_partitioning_dims");
  std::vector<AxisRules::Rule> additional;
  if (!args.value("additional_rules").is_none()) additional = axis_rules(args, "additional_rules");
  const AxisRules rules = standard_logical_axis_rules(activations, parameters, additional);
  Value::Items items;
  for (const auto& [axis, mesh_axis] : rules.rules()) {
    items.push_back(Value::tuple({Value(axis), mesh_axis.empty() ? Value() : Value(mesh_axis)}));
  }
  return Value::list(std::move(items));
}

Value make_schedule(const Args& args) {
  optim::LearningRateOptions options;
  options.factors = args.get<std::string>("factors");
  options.base_learning_rate = args.get<double>("base_learning_rate");
  options.warmup_steps = args.get<int64_t>("warmup_steps");
  options.decay_factor = args.get<double>("decay_factor");
  options.steps_per_decay = args.get<int64_t>("steps_per_decay");
  options.steps_per_cycle = args.get<int64_t>("steps_per_cycle");
  options.step_offset = args.get<int64_t>("step_offset");
  options.min_learning_rate = args.get<double>("min_learning_rate");
  return Value::object(std::make_shared<optim::LearningRateSchedule>(options));
}

Value make_trainer(const Args& args) {
  reject(args, "weight_metrics_computer", "there are no metrics of single weights");
  auto schedule = make<optim::LearningRateSchedule>(args, "learning_rate_fn");
  if (!schedule)
    args.fail("learning_rate_fn", "expected a schedule such as @utils.create_learning_rate_scheduler()");
  const int64_t microbatches = args.get_optional<int64_t>("num_microbatches").value_or(1);
  if (microbatches < 1) args.fail("num_microbatches", "expected 1 or more, or None");
  return Value::object(std::make_shared<TrainerSettings>(TrainerSettings{*schedule, microbatches}));
}

}  // namespace

void register_trainer(gin::Registry& registry) {
  const std::vector<gin::Param> partitioner = {
      param<int64_t>("num_partitions", nullptr, "devices of the mesh's model axis"),
      param<std::vector<int64_t>>("model_parallel_submesh", nullptr),
      param<bool>("params_on_devices", true),
      param<Value>("backend", nullptr),
      param<Value>("ici_mesh_shape", nullptr),
      param<Value>("dcn_mesh_shape", nullptr),
      param<std::vector<Value>>("logical_axis_rules", nullptr)};
  for (const char* name : {"PjitPartitioner", "ModelBasedPjitPartitioner"}) {
    registry.add({.name = std::string("t5x.partitioning.") + name,
                  .params = partitioner,
                  .call = make_partitioner,
                  .help = "the device mesh and its rules",
                  .cheap = true});
  }
  registry.add({.name = "t5x.partitioning.standard_logical_axis_rules",
                .params = {param<int64_t>("activation_partitioning_dims", 1),
                           param<int64_t>("parameter_partitioning_dims", 1),
                           param<std::vector<Value>>("additional_rules", nullptr)},
                .call = make_standard_rules,
                .help = "t5x's rules for 1 and 2 dimensional partitioning",
                .cheap = true});
  registry.add({.name = "t5x.utils.create_learning_rate_scheduler",
                .params = {param<std::string>("factors", "constant * linear_warmup * rsqrt_decay"),
                           param<double>("base_learning_rate", 0.5), param<int64_t>("warmup_steps", 1000),
                           param<double>("decay_factor", 0.5), param<int64_t>("steps_per_decay", 20000),
                           param<int64_t>("steps_per_cycle", 100000), param<int64_t>("step_offset", 0),
                           param<double>("min_learning_rate", 1e-8)},
                .call = make_schedule,
                .help = "a learning rate as a product of factors",
                .cheap = true});
  registry.add(
      {.name = "t5x.trainer.Trainer",
       .params = with_passed(
           {gin::required<Value>("learning_rate_fn"), param<int64_t>("num_microbatches", nullptr),
            param<Value>("weight_metrics_computer", nullptr)},
           {"model", "train_state", "partitioner", "eval_names", "summary_dir", "train_state_axes", "rng"}),
       .call = make_trainer,
       .help = "steps of gradient descent",
       .cheap = true});
  registry.add({.name = "t5x.gin_utils.summarize_gin_config",
                .params = with_passed({}, {"model_dir", "summary_writer", "step"}),
                .call = {},
                .help = "config.gin in the model directory; always written",
                .cheap = true});
  registry.add({.name = "t5x.gin_utils.get_gin_config_str",
                .params = {param<bool>("show_provenance", false)},
                .call = {},
                .cheap = true});
}

}  // namespace t5x::apps
