// Modules without objects: a Scope is where a layer finds its parameters, its random keys, its decoding cache
// and the layout of its activations. It is a path ("encoder/layers_0/attention") into the state of one trace.
// A model is traced once to list its parameters (ParamSpecs) and then applied to their values.
//
// Random keys follow flax: a module's key is the base key folded once with the first four bytes of SHA-1 over
// the names of its path and its own call counter, so that the same seed gives t5x's values.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/trace.h"
#include "ops/random.h"
#include "partition/axis_rules.h"

namespace t5x::nn {

// Values by '/'-joined path, such as "encoder/layers_0/mlp/wi_0/kernel".
using TensorMap = std::map<std::string, Tensor>;
// key -> values of the given type. Initialisers of the same name are the same function, so that parameters of
// one type and name can share a compiled program.
struct Initializer {
  std::string name;
  std::function<Tensor(Tensor key, const TensorType& type)> compute;
};

struct ParamSpec {
  TensorType type;
  AxisNames axes;  // logical names, one per dimension
  Initializer init;
  uint32_t key_fold = 0;  // folded into the initialisation key
};
using ParamSpecs = std::map<std::string, ParamSpec>;

// The number flax folds into a base key for the `counter`-th key of the module at `path` (names joined by
// '/').
uint32_t module_key_fold(std::string_view path, uint32_t counter);

// How activations are laid out. The default leaves everything to one device.
struct ActivationRules {
  AxisRules rules;
  bool partitioned = false;
};

// State of one trace of a model.
struct Frame {
  const TensorMap* params = nullptr;  // null: the trace only declares parameters
  ParamSpecs* declared = nullptr;
  Tensor dropout_key = {};  // empty: no dropout
  TensorMap cache = {};     // decoding state, read and replaced by layers
  const ActivationRules* activations = nullptr;
  std::map<std::string, uint32_t> counters = {};
};

class Scope {
 public:
  explicit Scope(Frame& frame, std::string path = "") : frame_(&frame), path_(std::move(path)) {}
  Scope operator/(std::string_view name) const;
  const std::string& path() const { return path_; }

  // Operations traced while the guard lives carry this scope's path as their location.
  std::unique_ptr<AbsoluteScope> enter() const { return std::make_unique<AbsoluteScope>(path_); }

  // The value of this module's parameter. Throws ConfigError if it is missing or of another type.
  Tensor param(std::string_view name, const TensorType& type, const AxisNames& axes,
               const Initializer& init) const;
  bool has_dropout() const { return static_cast<bool>(frame_->dropout_key); }
  // The next dropout key of this module.
  Tensor make_dropout_key() const;
  // Lays x out over the mesh by the logical names of its axes.
  Tensor constrain(Tensor x, const AxisNames& axes) const;
  // The decoding cache entry of this module; empty if there is none.
  Tensor cached(std::string_view name) const;
  void set_cached(std::string_view name, Tensor value) const;

 private:
  std::string child(std::string_view name) const;
  Frame* frame_;
  std::string path_;
};

// Lists the parameters that `model` asks for, by tracing it into a graph that is thrown away.
ParamSpecs declare_params(const std::vector<TensorType>& arg_types,
                          const std::function<void(const Scope&, const std::vector<Tensor>&)>& model);
// Initial values from a key of shape (2).
TensorMap init_params(const ParamSpecs& specs, Tensor key);
int64_t count_parameters(const ParamSpecs& specs);

}  // namespace t5x::nn
