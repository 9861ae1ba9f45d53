// Control flow and control of differentiation.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "graph/trace.h"

namespace t5x::ops {

using Tensors = std::vector<Tensor>;

// Repeats `body` while `condition` (a bool scalar) holds. Both see the carried values; types stay. Not
// differentiable.
Tensors while_loop(const Tensors& init, const std::function<Tensor(const Tensors&)>& condition,
                   const std::function<Tensors(const Tensors&)>& body);

struct ScanResult {
  Tensors carry;  // after the last step
  Tensors ys;     // stacked along a new first axis
};
// body(carry, x) -> {carry, y} for x in the slices of `xs` along their first axis, or `length` times without
// any. Differentiable: the values that the backward pass needs are stacked; wrap the body in remat to compute
// them again.
ScanResult scan(
    const Tensors& init, const Tensors& xs, int64_t length,
    const std::function<std::pair<Tensors, Tensors>(const Tensors& carry, const Tensors& x)>& body,
    bool reverse = false);

// The branch that a bool scalar chooses; both give the same types. Differentiable.
Tensors cond(Tensor predicate, const std::function<Tensors()>& on_true,
             const std::function<Tensors()>& on_false);

enum class RematPolicy {
  kNothing,  // nothing inside is kept (t5x: 'full')
  kDots,     // products without batch axes are kept (t5x: 'minimal')
};
// Runs `function`; during differentiation what it computes is computed again instead of kept.
Tensors remat(const std::function<Tensors()>& function, RematPolicy policy = RematPolicy::kNothing);

// Runs `function` as a function of the compiled program: equal ones, such as the update of parameters of one
// shape, are compiled once. Not differentiable. In a partitioned program it runs in place.
Tensors outline(const std::string& name, const std::function<Tensors()>& function);

// A function with a derivative of its own. `forward` returns {outputs, residuals}; `backward` takes residuals
// and cotangents (zeros where none arrived) and returns the gradients of `inputs`, empty handles for zero.
// `forward` must mention no other differentiable tensors than `inputs`, `backward` no tensors but its
// arguments.
struct CustomForward {
  Tensors outputs, residuals;
};
Tensors custom_vjp(
    const Tensors& inputs, const std::function<CustomForward(const Tensors&)>& forward,
    const std::function<Tensors(const Tensors& residuals, const Tensors& cotangents)>& backward);

}  // namespace t5x::ops
