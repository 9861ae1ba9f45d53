// For tests: one update of an optimizer, run on the plugin with host arrays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/trace.h"
#include "optim/optimizer.h"
#include "runtime/run.h"

namespace t5x::optim {

using ArrayMap = std::map<std::string, Array>;

struct HostUpdate {
  ArrayMap params, state;
};

inline ArrayMap zero_state(const Optimizer& optimizer, const ParamInfos& infos) {
  ArrayMap state;
  for (const auto& [key, type] : optimizer.state_types(infos))
    state.emplace(key, Array(type.dtype, type.shape));
  return state;
}

// `learning_rate` negative: none is given to the optimizer.
inline HostUpdate run_update(const Optimizer& optimizer, const ParamInfos& infos, int32_t step,
                             double learning_rate, const ArrayMap& grads, const ArrayMap& params,
                             const ArrayMap& state) {
  std::vector<Array> inputs = {Array::scalar<int32_t>(step),
                               Array::scalar<float>(static_cast<float>(learning_rate))};
  for (const ArrayMap* map : {&grads, &params, &state}) {
    for (const auto& [key, value] : *map) inputs.push_back(value);
  }
  std::vector<TensorType> types;
  for (const Array& input : inputs) types.push_back({input.dtype(), input.shape()});
  auto graph = trace(types, [&](const std::vector<Tensor>& args) {
    size_t next = 2;
    auto take = [&](const ArrayMap& like) {
      TensorMap tensors;
      for (const auto& [key, value] : like) tensors[key] = args[next++];
      return tensors;
    };
    const TensorMap g = take(grads), p = take(params), s = take(state);
    Update update = optimizer.apply(infos, args[0], learning_rate < 0 ? Tensor{} : args[1], g, p, s);
    std::vector<Tensor> outputs;
    for (const auto& [key, value] : update.params) outputs.push_back(value);
    for (const auto& [key, value] : update.state) outputs.push_back(value);
    return outputs;
  });
  const std::vector<Array> outputs = run(*graph, inputs);
  HostUpdate result;
  size_t next = 0;
  for (const auto& [key, value] : params) result.params.emplace(key, outputs.at(next++));
  for (const auto& [key, value] : state) result.state.emplace(key, outputs.at(next++));
  return result;
}

}  // namespace t5x::optim
