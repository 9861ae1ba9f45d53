// What every optimizer offers: a pure function from gradients, parameters and state to new parameters and
// state, over flat maps keyed by '/'-joined parameter paths ("encoder/layers_0/mlp/wi_0/kernel"). State
// entries append the slot's name as t5x stores it ("<path>/v_row"). New values have the types of the old
// ones, so that a program can donate all of them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace t5x::optim {

using TensorMap = std::map<std::string, Tensor>;

struct ParamInfo {
  TensorType type;
  std::vector<std::string> axes;  // logical names, one per dimension: "embed", "mlp", "joined_kv", ...
};
using ParamInfos = std::map<std::string, ParamInfo>;

struct Update {
  TensorMap params, state;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Types of the state entries. All of them start as zeros.
  virtual std::map<std::string, TensorType> state_types(const ParamInfos& infos) const = 0;
  // Logical axes of the state entries, one name per dimension ("" for an axis that is never partitioned), so
  // that the state is laid out over the mesh as its parameter is.
  virtual std::map<std::string, std::vector<std::string>> state_axes(const ParamInfos& infos) const = 0;
  // `step`: int32 scalar, 0 for the first update. `learning_rate`: float32 scalar; an empty handle means the
  // optimizer's own `learning_rate`. `grads` and `params` have exactly the keys of `infos`, `state` those of
  // state_types. Throws ConfigError when there is no learning rate, InternalError when an entry is missing.
  virtual Update apply(const ParamInfos& infos, Tensor step, Tensor learning_rate, const TensorMap& grads,
                       const TensorMap& params, const TensorMap& state) const = 0;
};

// sqrt of the sum of squares over all entries, in float32: a float32 scalar.
Tensor global_norm(const TensorMap& tensors);
// Scales all entries so that their global norm is at most `threshold`; dtypes stay.
TensorMap clip_by_global_norm(const TensorMap& grads, double threshold);
// The entry, or InternalError that names the map and the key.
Tensor entry(const TensorMap& tensors, const std::string& key, const char* what);

}  // namespace t5x::optim
