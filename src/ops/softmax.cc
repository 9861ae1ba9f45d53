// Running sums, and softmax with its relatives, after jax.nn.
#include "graph/emitter.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

// {x, softmax(x)} -> softmax(x). The composed operations would keep the exponentials and their sum for the
// backward pass, and give a longer derivative; so they carry none, and this node brings the derivative in
// terms of the result.
const Primitive kSoftmax{
    .name = "softmax",
    .infer = infer_elementwise<kFloats>,
    .vjp =
        [](const VjpContext& c) {
          const Tensor y = c.outputs[0], weighted = c.cotangent() * y;
          const int64_t axis = std::any_cast<int64_t>(c.node.extra);
          return Tensors{weighted - y * reduce_sum(weighted, {axis}, true)};
        },
    .emit = [](Emitter& emitter,
               const Node& node) { emitter.bind(node.results[0], emitter.name(node.inputs[1])); }};

}  // namespace

// log2(n) shifted additions: linear memory, and its derivative is the same from the other end.
Tensor cumsum(Tensor x, int64_t axis) {
  const size_t at = in_operation("cumsum", [&] { return x.shape().normalize_axis(axis); });
  const DType dtype = x.dtype();
  const int64_t size = x.dim(axis);
  Tensor total = dtype == DType::kBool                     ? convert(x, DType::kInt32)
                 : is_float(dtype) && byte_size(dtype) < 4 ? convert(x, DType::kFloat32)
                                                           : x;
  for (int64_t step = 1; step < size; step *= 2) {
    std::vector<int64_t> low(x.rank(), 0), high(x.rank(), 0);
    low[at] = step;
    high[at] = -step;
    total = total + pad(total, 0.0, low, high);
  }
  return dtype == DType::kBool ? total : convert(total, dtype);
}

Tensor softmax(Tensor x, int64_t axis) {
  const Tensor fixed = stop_gradient(x);
  const Tensor exponentials = exp(fixed - reduce_max(fixed, {axis}, true));
  const Tensor result = exponentials / reduce_sum(exponentials, {axis}, true);
  return apply({.primitive = kSoftmax, .inputs = {x, result}, .extra = axis});
}

Tensor log_softmax(Tensor x, int64_t axis) {
  const Tensor shifted = x - stop_gradient(reduce_max(x, {axis}, true));
  return shifted - log(reduce_sum(exp(shifted), {axis}, true));
}

Tensor logsumexp(Tensor x, int64_t axis, bool keepdims) {
  const Tensor largest = stop_gradient(reduce_max(x, {axis}, true));
  // Where all elements are -inf (or one is inf) the shift would make NaN.
  const Tensor shift = select(is_finite(largest), largest, 0.0);
  const Tensor result = log(reduce_sum(exp(x - shift), {axis}, true)) + shift;
  return keepdims ? result : squeeze(result, axis);
}

}  // namespace t5x::ops
