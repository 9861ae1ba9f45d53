#include "runtime/program.h"

#include <chrono>
#include <map>

#include "base/error.h"
#include "graph/stablehlo.h"

namespace t5x {
namespace {

std::shared_ptr<Graph> trace_program(const ProgramSpec& spec) {
  std::vector<TensorType> types;
  for (const ArgumentInfo& argument : spec.arguments) {
    check_divisible(spec.mesh, argument.spec, argument.type.shape, argument.name);
    types.push_back(argument.type);
  }
  auto graph = in_context("program '" + spec.name + "'", [&] { return trace(types, spec.function); });
  if (graph->outputs().size() != spec.results.size()) {
    throw_error<InternalError>("program '{}' gives {} results; {} were named", spec.name,
                               graph->outputs().size(), spec.results.size());
  }
  return graph;
}

std::string print(const ProgramSpec& spec, const Graph& graph) {
  ModuleOptions options{.name = spec.name, .num_partitions = static_cast<int>(spec.mesh.num_devices())};
  const bool partitioned = spec.mesh.num_devices() > 1;
  if (partitioned) options.prelude = spec.mesh.declaration();
  const std::vector<TensorType> results = graph.output_types();
  std::map<std::string, size_t> result_of;
  for (size_t i = 0; i < spec.results.size(); ++i) result_of[spec.results[i].name] = i;

  for (const ArgumentInfo& argument : spec.arguments) {
    std::string text;
    if (partitioned) text = "sdy.sharding = " + sdy_sharding(argument.spec, argument.type.shape.rank());
    auto result = result_of.find(argument.name);
    if (argument.donated && result != result_of.end()) {
      if (results[result->second] != argument.type) {
        throw_error<ShapeError>(
            "program '{}' gives '{}' as {}, but took it as {}; a donated argument keeps its type", spec.name,
            argument.name, results[result->second].describe(), argument.type.describe());
      }
      text += (text.empty() ? "" : ", ") + fmt::format("tf.aliasing_output = {} : i32", result->second);
    } else if (argument.donated) {
      text += (text.empty() ? "" : ", ") + std::string("jax.buffer_donor = true");
    }
    options.arg_attributes.push_back(text);
  }
  for (size_t i = 0; i < spec.results.size(); ++i) {
    check_divisible(spec.mesh, spec.results[i].spec, results[i].shape, spec.results[i].name);
    options.result_attributes.push_back(
        partitioned ? "sdy.sharding = " + sdy_sharding(spec.results[i].spec, results[i].shape.rank()) : "");
  }
  return to_stablehlo(graph, options);
}

}  // namespace

std::string lower(const ProgramSpec& spec) { return print(spec, *trace_program(spec)); }

Program Program::compile(const pjrt::Client& client, const ProgramSpec& spec, const CompileCache* cache,
                         pjrt::CompileOptions options) {
  const auto start = std::chrono::steady_clock::now();
  const auto devices = static_cast<int64_t>(client.addressable_devices().size());
  if (spec.mesh.num_devices() > devices) {
    throw_error<ConfigError>("the mesh of {} x {} (data x model) needs {} devices; the plugin has {}",
                             spec.mesh.data, spec.mesh.model, spec.mesh.num_devices(), devices);
  }
  const std::shared_ptr<Graph> graph = trace_program(spec);
  const std::string text = print(spec, *graph);
  options.num_partitions = spec.mesh.num_devices();
  std::vector<pjrt::ArgumentSpec> arguments;
  for (const ArgumentInfo& argument : spec.arguments) {
    const ShardSlice slice = shard_slice(spec.mesh, argument.spec, argument.type.shape, 0);
    arguments.push_back(
        {.spec = {argument.type.dtype, slice.sizes}, .donated = argument.donated, .name = argument.name});
  }
  bool hit = false;
  auto build = [&] {
    if (cache == nullptr) return client.compile(text, arguments, options);
    CompileCache::Compiled compiled = cache->compile(client, text, arguments, options);
    hit = compiled.hit;
    return std::move(compiled.executable);
  };
  Program program(spec, graph->output_types(), build());
  program.spec_.function = nullptr;  // it may hold on to much
  program.from_cache_ = hit;
  program.compile_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return program;
}

std::vector<DeviceArray> Program::run(const std::vector<DeviceArray*>& arguments) const {
  if (arguments.size() != spec_.arguments.size()) {
    throw_error<ShapeError>("program '{}' takes {} arguments, got {}", spec_.name, spec_.arguments.size(),
                            arguments.size());
  }
  const auto devices = static_cast<size_t>(spec_.mesh.num_devices());
  std::vector<std::vector<pjrt::Buffer*>> per_device(devices);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::vector<pjrt::Buffer>& shards = arguments[i]->shards();
    if (shards.size() != devices || arguments[i]->type() != spec_.arguments[i].type) {
      throw_error<ShapeError>("program '{}': argument '{}' is {} on {} devices; expected {} on {}",
                              spec_.name, spec_.arguments[i].name, arguments[i]->type().describe(),
                              shards.size(), spec_.arguments[i].type.describe(), devices);
    }
    for (size_t d = 0; d < devices; ++d) per_device[d].push_back(&shards[d]);
  }
  std::vector<std::span<pjrt::Buffer* const>> spans(per_device.begin(), per_device.end());
  auto outputs = executable_.execute(std::span<const std::span<pjrt::Buffer* const>>(spans));
  std::vector<DeviceArray> results;
  for (size_t r = 0; r < spec_.results.size(); ++r) {
    std::vector<pjrt::Buffer> shards;
    for (size_t d = 0; d < devices; ++d) shards.push_back(std::move(outputs[d][r]));
    results.emplace_back(result_types_[r], spec_.results[r].spec, spec_.mesh, std::move(shards));
  }
  return results;
}

}  // namespace t5x
