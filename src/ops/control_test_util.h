// For tests: running a function of tensors, and holding its gradients to central differences in float64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/trace.h"
#include "ops/ops.h"
#include "runtime/run.h"

namespace t5x::ops::control_tests {

inline Array array(const std::vector<double>& values, Shape shape, DType dtype = DType::kFloat64) {
  return Array::from<double>(values, std::move(shape)).cast(dtype);
}

// Different numbers between -1 and 1, the same for the same phase.
inline Array wave(Shape shape, double phase = 0.0, DType dtype = DType::kFloat64) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.size(); ++i)
    values.push_back(std::sin(1.7 * static_cast<double>(i) + phase + 0.3));
  return array(values, std::move(shape), dtype);
}

inline std::vector<Array> evaluate(const TraceFunction& function, const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  for (const Array& input : inputs) types.push_back({input.dtype(), input.shape()});
  return run(*trace(types, function), inputs);
}

inline std::vector<double> numbers(const Array& array) {
  const Array wide = array.cast(DType::kFloat64);
  const auto values = wide.values<double>();
  return {values.begin(), values.end()};
}

// One scalar that all float outputs go into with different weights.
inline Tensor weighted_sum(const std::vector<Tensor>& outputs) {
  Tensor total = full({DType::kFloat64, {}}, 0.0);
  double phase = 0.0;
  for (const Tensor& output : outputs) {
    phase += 1.0;
    if (!is_float(output.dtype())) continue;
    total = total + sum(output * constant(wave(output.shape(), phase, output.dtype())));
  }
  return total;
}

// Gradients of `weighted_sum(function(inputs))` with respect to the float64 inputs, along one direction per
// input. The differences are good to about step^2 = 1e-10 relative.
inline void check_gradients(const TraceFunction& function, const std::vector<Array>& inputs,
                            double tolerance = 1e-7) {
  constexpr double kStep = 1e-5;
  const std::vector<Array> results = evaluate(
      [&](const std::vector<Tensor>& args) {
        std::vector<Tensor> wanted, outputs;
        for (const Tensor& arg : args) {
          if (arg.dtype() == DType::kFloat64) wanted.push_back(arg);
        }
        const std::vector<Tensor> gradients = grad(weighted_sum(function(args)), wanted);
        size_t next = 0;
        for (size_t i = 0; i < args.size(); ++i) {
          if (args[i].dtype() != DType::kFloat64) continue;
          const Tensor direction = constant(wave(args[i].shape(), 0.5));
          std::vector<Tensor> up = args, down = args;
          up[i] = args[i] + direction * kStep;
          down[i] = args[i] - direction * kStep;
          const Tensor difference = weighted_sum(function(up)) - weighted_sum(function(down));
          outputs.push_back(difference / (2 * kStep));
          outputs.push_back(sum(gradients[next++] * direction));
        }
        return outputs;
      },
      inputs);
  for (size_t i = 0; i + 1 < results.size(); i += 2) {
    const double numeric = results[i].item<double>(), analytic = results[i + 1].item<double>();
    EXPECT_NEAR(analytic, numeric, tolerance * std::max(1.0, std::abs(numeric))) << "float input " << i / 2;
  }
}

}  // namespace t5x::ops::control_tests
