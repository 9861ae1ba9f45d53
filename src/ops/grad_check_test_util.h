// For tests of operations: arrays from a few numbers, expectations on values and errors, and gradients held
// to central differences. Those are taken in float64, where a step of 1e-5 is good to about 1e-10, so that
// the tolerance of 1e-7 tells a wrong rule from rounding.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/stablehlo.h"
#include "graph/trace.h"
#include "ops/ops.h"
#include "runtime/run.h"

namespace t5x::ops {

using Args = std::vector<Tensor>;

template <class T>
Array array_of(std::initializer_list<T> values, Shape shape) {
  return Array::from<T>(std::span<const T>(values.begin(), values.size()), std::move(shape));
}
inline Array floats(std::initializer_list<float> values, Shape shape) { return array_of(values, shape); }
inline Array floats(std::initializer_list<float> values) {
  return floats(values, {static_cast<int64_t>(values.size())});
}
inline Array ints(std::initializer_list<int32_t> values, Shape shape) { return array_of(values, shape); }
inline Array ints(std::initializer_list<int32_t> values) {
  return ints(values, {static_cast<int64_t>(values.size())});
}
inline Array bools(std::initializer_list<bool> values) {
  return array_of(values, {static_cast<int64_t>(values.size())});
}
// 0, 1, 2, ... as float32.
inline Array counting(Shape shape) {
  Array array = Array::uninitialized(DType::kFloat32, std::move(shape));
  float next = 0;
  for (float& value : array.values<float>()) value = next++;
  return array;
}
// Float64 values in [low, high), the same in every run.
inline Array random_array(Shape shape, uint64_t seed, double low = -1.0, double high = 1.0) {
  Array array = Array::uninitialized(DType::kFloat64, std::move(shape));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (double& value : array.values<double>()) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    value = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
  }
  return array;
}

inline std::vector<TensorType> types_of(const std::vector<Array>& arrays) {
  std::vector<TensorType> types;
  for (const Array& array : arrays) types.push_back({array.dtype(), array.shape()});
  return types;
}
inline std::vector<Array> evaluate(const std::vector<Array>& inputs, const TraceFunction& function) {
  return run(*trace(types_of(inputs), function), inputs);
}
inline Array evaluate_one(const std::vector<Array>& inputs,
                          const std::function<Tensor(const Args&)>& function) {
  return evaluate(inputs, [&](const Args& args) { return Args{function(args)}; }).at(0);
}
inline std::vector<double> numbers(const Array& array) {
  const Array wide = array.cast(DType::kFloat64);
  const std::span<const double> values = wide.values<double>();
  return {values.begin(), values.end()};
}

// A graph compiled once and run on many inputs.
class Compiled {
 public:
  explicit Compiled(const Graph& graph) : executable_(compile(graph)) {}
  std::vector<Array> operator()(const std::vector<Array>& inputs) const {
    std::vector<pjrt::Buffer> buffers;
    std::vector<pjrt::Buffer*> pointers;
    for (const Array& input : inputs) buffers.push_back(default_client().to_device(input));
    for (pjrt::Buffer& buffer : buffers) pointers.push_back(&buffer);
    std::vector<Array> results;
    for (const pjrt::Buffer& buffer : executable_.execute(std::span<pjrt::Buffer* const>(pointers)))
      results.push_back(buffer.to_host());
    return results;
  }

 private:
  static pjrt::Executable compile(const Graph& graph) {
    std::vector<pjrt::ArgumentSpec> arguments;
    for (const TensorType& type : graph.arg_types()) arguments.push_back({.spec = {type.dtype, type.shape}});
    return default_client().compile(to_stablehlo(graph), arguments);
  }
  pjrt::Executable executable_;
};

// Holds the gradients of sum_i <output_i, c_i>, with fixed random c_i, by each element of each float64 input
// to central differences. Outputs that are not float64 are left out; inputs of other dtypes stay as they are.
inline void check_gradients(const std::vector<Array>& inputs, const TraceFunction& function,
                            double tolerance = 1e-7) {
  constexpr double kStep = 1e-5;
  const Compiled loss_and_gradients(*trace(types_of(inputs), [&](const Args& args) {
    Tensor loss = full({DType::kFloat64, {}}, 0.0);
    uint64_t seed = 1000;
    for (const Tensor& output : function(args)) {
      if (output.dtype() == DType::kFloat64)
        loss = loss + sum(output * constant(random_array(output.shape(), ++seed)));
    }
    Args wanted;
    for (const Tensor& arg : args) {
      if (arg.dtype() == DType::kFloat64) wanted.push_back(arg);
    }
    Args results = grad(loss, wanted);
    results.insert(results.begin(), loss);
    return results;
  }));
  const std::vector<Array> base = loss_and_gradients(inputs);
  size_t next = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DType::kFloat64) continue;
    const std::vector<double> gradient = numbers(base.at(next++));
    for (size_t k = 0; k < gradient.size(); ++k) {
      auto loss_at = [&](double offset) {
        std::vector<Array> moved = inputs;
        moved[i] = inputs[i].copy();
        moved[i].values<double>()[k] += offset;
        return loss_and_gradients(moved)[0].item<double>();
      };
      const double difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient[k], difference, tolerance * (1.0 + std::abs(difference)))
          << "input " << i << ", element " << k;
    }
  }
}
// Gradients of gradients: those of the sum of squares of the outputs.
inline void check_second_gradients(const std::vector<Array>& inputs, const TraceFunction& function) {
  check_gradients(inputs, [&](const Args& args) {
    Args wanted;
    for (const Tensor& arg : args) {
      if (arg.dtype() == DType::kFloat64) wanted.push_back(arg);
    }
    const Args outputs = function(args);
    return vjp(outputs, outputs, wanted);
  });
}

inline void expect_values(const Array& array, DType dtype, const Shape& shape,
                          const std::vector<double>& expected, double tolerance = 0.0) {
  EXPECT_EQ(name(array.dtype()), name(dtype));
  EXPECT_EQ(array.shape().to_string(), shape.to_string());
  const std::vector<double> values = numbers(array);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(values[i]) : values[i] == expected[i])
          << "element " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
    }
  }
}

// Tracing must throw a ShapeError that mentions `words`.
inline void expect_shape_error(const std::vector<TensorType>& types, const std::string& words,
                               const TraceFunction& function) {
  try {
    trace(types, function);
    ADD_FAILURE() << "no error; expected one that mentions: " << words;
  } catch (const ShapeError& e) {
    EXPECT_THAT(std::string(e.what()), testing::HasSubstr(words));
  }
}

}  // namespace t5x::ops
