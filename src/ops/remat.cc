// Control of differentiation: what is computed again, and derivatives given by the caller. After
// jax.checkpoint with its policies nothing_saveable and checkpoint_dots_with_no_batch_dims, and
// jax.custom_vjp.
#include "base/error.h"
#include "graph/emitter.h"
#include "graph/primitive.h"
#include "ops/control.h"
#include "ops/dot.h"
#include "ops/threefry.h"

namespace t5x::ops {
namespace {

struct CustomVjp {
  size_t num_inputs, num_outputs;
  std::function<Tensors(const Tensors&, const Tensors&)> backward;
};

// Inputs: those of the function, its outputs, its residuals. Results: the outputs.
std::vector<TensorType> infer_custom(const InferContext& c) {
  const auto& custom = std::any_cast<const CustomVjp&>(c.extra);
  const auto outputs = c.inputs.begin() + static_cast<long>(custom.num_inputs);
  return {outputs, outputs + static_cast<long>(custom.num_outputs)};
}

std::vector<Tensor> custom_gradient(const VjpContext& c) {
  const auto& custom = std::any_cast<const CustomVjp&>(c.node.extra);
  const auto residuals = c.inputs.begin() + static_cast<long>(custom.num_inputs + custom.num_outputs);
  Tensors cotangents;
  for (size_t i = 0; i < custom.num_outputs; ++i) cotangents.push_back(c.cotangent(i));
  Tensors gradients = custom.backward(Tensors(residuals, c.inputs.end()), cotangents);
  if (gradients.size() != custom.num_inputs) {
    throw_error<ShapeError>("the backward function of a custom_vjp gives {} gradients for {} inputs",
                            gradients.size(), custom.num_inputs);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] && gradients[i].type() != c.inputs[i].type()) {
      throw_error<ShapeError>("the backward function of a custom_vjp gives {} for input {}, which is {}",
                              gradients[i].type().describe(), i, c.inputs[i].type().describe());
    }
  }
  return gradients;
}

// The results are the outputs themselves.
void emit_custom(Emitter& emitter, const Node& node) {
  const auto& custom = std::any_cast<const CustomVjp&>(node.extra);
  for (size_t i = 0; i < node.results.size(); ++i)
    emitter.bind(node.results[i], emitter.name(node.inputs[custom.num_inputs + i]));
}

const Primitive kCustomVjp{
    .name = "custom_vjp", .infer = infer_custom, .vjp = custom_gradient, .emit = emit_custom};

// Keys of random numbers are two words, and one call derives many of them.
bool save_keys(const Node& node) { return is_key_derivation(node); }

bool save_dots(const Node& node) { return is_key_derivation(node) || is_unbatched_dot(node); }

}  // namespace

Tensors remat(const std::function<Tensors()>& function, RematPolicy policy) {
  RematScope scope(policy == RematPolicy::kDots ? save_dots : save_keys);
  return function();
}

Tensors custom_vjp(
    const Tensors& inputs, const std::function<CustomForward(const Tensors&)>& forward,
    const std::function<Tensors(const Tensors& residuals, const Tensors& cotangents)>& backward) {
  CustomForward result = forward(inputs);
  const CustomVjp custom{inputs.size(), result.outputs.size(), backward};
  std::vector<Tensor> all = inputs;
  all.insert(all.end(), result.outputs.begin(), result.outputs.end());
  all.insert(all.end(), result.residuals.begin(), result.residuals.end());
  return apply_multi({.primitive = kCustomVjp, .inputs = std::move(all), .extra = custom});
}

}  // namespace t5x::ops
