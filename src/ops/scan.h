// The scan primitive, shared by its emission and its derivative. Inputs of a node: carry, xs, captures.
// Arguments of its region: carry, one slice of every x, captures; outputs: carry, one slice of every y.
#pragma once

#include "graph/primitive.h"

namespace t5x::ops {

struct ScanSpec {
  size_t num_carry = 0;
  size_t num_xs = 0;
  int64_t length = 0;
  bool reverse = false;
};

// `type` without and with a leading axis of steps.
TensorType slice_type(const TensorType& type);
TensorType stacked_type(const TensorType& type, int64_t length);

std::vector<Tensor> apply_scan(const ScanSpec& spec, std::vector<Tensor> inputs,
                               std::shared_ptr<const Graph> body, std::vector<Tensor> captures);
// In scan_grad.cc.
std::vector<Tensor> scan_vjp(const VjpContext& context);

}  // namespace t5x::ops
