#include "nn/scope.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/strings.h"
#include "graph/basic.h"
#include "ops/sharding.h"

namespace t5x::nn {

uint32_t module_key_fold(std::string_view path, uint32_t counter) {
  std::string text;
  for (char c : path) {
    if (c != '/') text += c;
  }
  // The counter as the fewest big-endian bytes that hold it.
  std::string bytes;
  for (uint32_t rest = counter; rest != 0; rest >>= 8)
    bytes.insert(bytes.begin(), static_cast<char>(rest & 0xff));
  const auto digest = sha1(text + bytes);
  return static_cast<uint32_t>(digest[0]) << 24 | static_cast<uint32_t>(digest[1]) << 16 |
         static_cast<uint32_t>(digest[2]) << 8 | static_cast<uint32_t>(digest[3]);
}

std::string Scope::child(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "/" + std::string(name);
}

Scope Scope::operator/(std::string_view name) const { return Scope(*frame_, child(name)); }

Tensor Scope::param(std::string_view name, const TensorType& type, const AxisNames& axes,
                    const Initializer& init) const {
  const std::string path = child(name);
  if (axes.size() != type.shape.rank()) {
    throw_error<InternalError>("parameter '{}' of {} has {} axis names", path, type.describe(), axes.size());
  }
  if (frame_->params == nullptr) {
    // A module that is used again, as a tied embedding is, has its parameter already.
    if (!frame_->declared->contains(path)) {
      const uint32_t counter = ++frame_->counters["params:" + path_];
      frame_->declared->emplace(path, ParamSpec{type, axes, init, module_key_fold(path_, counter)});
    }
    return zeros(type);
  }
  auto found = frame_->params->find(path);
  if (found == frame_->params->end()) {
    std::vector<std::string> names;
    for (const auto& [given, value] : *frame_->params) names.push_back(given);
    throw_error<ConfigError>("the model needs the parameter '{}' of {}, which was not given{}", path,
                             type.describe(), did_you_mean(path, names));
  }
  if (found->second.type() != type) {
    throw_error<ConfigError>("parameter '{}' is {}; the model needs {}", path,
                             found->second.type().describe(), type.describe());
  }
  return found->second;
}

Tensor Scope::make_dropout_key() const {
  const uint32_t counter = ++frame_->counters["dropout:" + path_];
  return ops::fold_in(frame_->dropout_key, module_key_fold(path_, counter));
}

Tensor Scope::constrain(Tensor x, const AxisNames& axes) const {
  if (frame_->activations == nullptr || !frame_->activations->partitioned) return x;
  if (axes.size() != x.rank()) {
    throw_error<InternalError>("{} was constrained with {} axis names in '{}'", x.type().describe(),
                               axes.size(), path_);
  }
  return ops::sharding_constraint(x, sdy_sharding(frame_->activations->rules.to_mesh(axes), x.rank()));
}

Tensor Scope::cached(std::string_view name) const {
  auto found = frame_->cache.find(child(name));
  return found == frame_->cache.end() ? Tensor() : found->second;
}

void Scope::set_cached(std::string_view name, Tensor value) const { frame_->cache[child(name)] = value; }

ParamSpecs declare_params(const std::vector<TensorType>& arg_types,
                          const std::function<void(const Scope&, const std::vector<Tensor>&)>& model) {
  ParamSpecs specs;
  Frame frame{.declared = &specs};
  trace(arg_types, [&](const std::vector<Tensor>& args) {
    model(Scope(frame), args);
    return std::vector<Tensor>{};
  });
  return specs;
}

TensorMap init_params(const ParamSpecs& specs, Tensor key) {
  TensorMap params;
  for (const auto& [path, spec] : specs) {
    AbsoluteScope scope("init/" + path);
    params[path] = spec.init.compute(ops::fold_in(key, spec.key_fold), spec.type);
  }
  return params;
}

int64_t count_parameters(const ParamSpecs& specs) {
  int64_t count = 0;
  for (const auto& [path, spec] : specs) count += spec.type.shape.size();
  return count;
}

}  // namespace t5x::nn
