#include "optim/optimizer.h"

#include "base/error.h"
#include "ops/ops.h"

namespace t5x::optim {

Tensor entry(const TensorMap& tensors, const std::string& key, const char* what) {
  auto it = tensors.find(key);
  if (it == tensors.end() || !it->second) {
    throw_error<InternalError>("the optimizer was given no {} for '{}'", what, key);
  }
  return it->second;
}

Tensor global_norm(const TensorMap& tensors) {
  Tensor total;
  for (const auto& [key, value] : tensors) {
    Tensor x = ops::convert(value, DType::kFloat32);
    Tensor squares = ops::sum(x * x);
    total = total ? total + squares : squares;
  }
  if (!total) return zeros({DType::kFloat32, {}});
  return ops::sqrt(total);
}

TensorMap clip_by_global_norm(const TensorMap& grads, double threshold) {
  // threshold * min(1 / threshold, 1 / norm): a norm of zero leaves the gradients as they are.
  Tensor scale = threshold * ops::minimum(1.0 / global_norm(grads), 1.0 / threshold);
  TensorMap clipped;
  for (const auto& [key, value] : grads) {
    clipped[key] = ops::convert(ops::convert(value, DType::kFloat32) * scale, value.dtype());
  }
  return clipped;
}

}  // namespace t5x::optim
