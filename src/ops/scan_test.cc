// scan: values, and gradients against central differences and against the unrolled loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/stablehlo.h"
#include "ops/control.h"
#include "ops/control_test_util.h"

namespace t5x::ops::control_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 5, kWidth = 3;

// A recurrent layer: args are the state [w], inputs [n, w], the kernel [w, w] and a bias [w].
std::pair<Tensors, Tensors> step(const Tensors& carry, const Tensors& x, Tensor kernel, Tensor bias) {
  const Tensor mixed = reshape(matmul(reshape(carry[0], {1, kWidth}), kernel), {kWidth});
  const Tensor state = tanh(mixed + x[0] * exp(bias));
  return {{state, carry[1] + 1.0}, {state * carry[0], sum(state)}};
}

Tensors scanned(const Tensors& args, bool reverse, bool rematerialized) {
  const ScanResult result = scan(
      {args[0], full({DType::kInt32, {}}, 0)}, {args[1]}, kSteps,
      [&](const Tensors& carry, const Tensors& x) {
        std::pair<Tensors, Tensors> out;
        auto body = [&] {
          out = step(carry, x, args[2], args[3]);
          return Tensors{};
        };
        rematerialized ? remat(body) : body();
        return out;
      },
      reverse);
  return {result.carry[0], result.carry[1], result.ys[0], result.ys[1]};
}

Tensors unrolled(const Tensors& args, bool reverse) {
  Tensors carry{args[0], full({DType::kInt32, {}}, 0)};
  std::vector<Tensors> ys(kSteps);
  for (int64_t k = 0; k < kSteps; ++k) {
    const int64_t i = reverse ? kSteps - 1 - k : k;
    const Tensor x = squeeze(slice_in_dim(args[1], i, i + 1, 0), 0);
    std::tie(carry, ys[static_cast<size_t>(i)]) = step(carry, {x}, args[2], args[3]);
  }
  Tensors first, second;
  for (const Tensors& y : ys) {
    first.push_back(expand_dims(y[0], 0));
    second.push_back(expand_dims(y[1], 0));
  }
  return {carry[0], carry[1], concatenate(first, 0), concatenate(second, 0)};
}

std::vector<Array> inputs() {
  return {wave({kWidth}), wave({kSteps, kWidth}, 1), wave({kWidth, kWidth}, 2), wave({kWidth}, 3)};
}

TraceFunction gradients_of(const TraceFunction& function) {
  return [function](const Tensors& args) { return grad(weighted_sum(function(args)), args); };
}

void expect_close(const std::vector<Array>& a, const std::vector<Array>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = numbers(a[i]), y = numbers(b[i]);
    ASSERT_EQ(x.size(), y.size());
    for (size_t k = 0; k < x.size(); ++k)
      EXPECT_NEAR(x[k], y[k], tolerance) << "result " << i << ", element " << k;
  }
}

// Sums of float64 products in another order differ by rounding only.
constexpr double kRounding = 1e-13;

class Scan : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Direction, Scan, ::testing::Values(false, true),
                         [](const auto& direction) { return direction.param ? "Reverse" : "Forward"; });

TEST_P(Scan, ValuesEqualTheUnrolledLoop) {
  const bool reverse = GetParam();
  expect_close(evaluate([reverse](const Tensors& args) { return scanned(args, reverse, false); }, inputs()),
               evaluate([reverse](const Tensors& args) { return unrolled(args, reverse); }, inputs()),
               kRounding);
}

TEST_P(Scan, GradientsEqualTheUnrolledLoops) {
  const bool reverse = GetParam();
  expect_close(
      evaluate(gradients_of([reverse](const Tensors& args) { return scanned(args, reverse, false); }),
               inputs()),
      evaluate(gradients_of([reverse](const Tensors& args) { return unrolled(args, reverse); }), inputs()),
      kRounding);
}

TEST_P(Scan, RematerializedGradientsEqualTheUnrolledLoops) {
  const bool reverse = GetParam();
  expect_close(
      evaluate(gradients_of([reverse](const Tensors& args) { return scanned(args, reverse, true); }),
               inputs()),
      evaluate(gradients_of([reverse](const Tensors& args) { return unrolled(args, reverse); }), inputs()),
      kRounding);
}

TEST_P(Scan, SecondDerivativesEqualTheUnrolledLoops) {
  const bool reverse = GetParam();
  expect_close(
      evaluate(gradients_of(
                   gradients_of([reverse](const Tensors& args) { return scanned(args, reverse, false); })),
               inputs()),
      evaluate(gradients_of(gradients_of([reverse](const Tensors& args) { return unrolled(args, reverse); })),
               inputs()),
      1e-12);
}

TEST_P(Scan, GradientsMatchDifferences) {
  const bool reverse = GetParam();
  check_gradients([reverse](const Tensors& args) { return scanned(args, reverse, false); }, inputs());
}

TEST(ScanOfScan, GradientsMatchDifferences) {
  check_gradients(
      [](const Tensors& args) {
        const ScanResult outer = scan({args[0]}, {args[1]}, 4, [&](const Tensors& carry, const Tensors& x) {
          const ScanResult inner =
              scan({carry[0]}, {x[0]}, 3, [&](const Tensors& state, const Tensors& element) {
                const Tensor next = sin(state[0] * args[2] + element[0]);
                return std::pair<Tensors, Tensors>{{next}, {next * element[0]}};
              });
          return std::pair<Tensors, Tensors>{{inner.carry[0] * 1.1}, {inner.ys[0] * carry[0]}};
        });
        return Tensors{outer.carry[0], outer.ys[0]};
      },
      {wave({}), wave({4, 3}, 1), wave({}, 2)});
}

TEST(ScanOfScan, SecondDerivativesMatchDifferences) {
  check_gradients(gradients_of([](const Tensors& args) {
                    return scan({args[0]}, {}, 3,
                                [&](const Tensors& carry, const Tensors&) {
                                  const ScanResult inner =
                                      scan({carry[0]}, {}, 2, [&](const Tensors& state, const Tensors&) {
                                        return std::pair<Tensors, Tensors>{{sin(state[0] * args[1])}, {}};
                                      });
                                  return std::pair<Tensors, Tensors>{inner.carry, {}};
                                })
                        .carry;
                  }),
                  {wave({2}), wave({2}, 2)}, 1e-6);
}

TEST(ScanOfCond, GradientsMatchDifferences) {
  check_gradients(
      [](const Tensors& args) {
        return scan({args[0]}, {args[1]}, 4,
                    [&](const Tensors& carry, const Tensors& x) {
                      Tensors next = cond(
                          x[0] > 0.0, [&] { return Tensors{carry[0] * x[0] * args[2]}; },
                          [&] { return Tensors{sin(carry[0] + x[0])}; });
                      return std::pair<Tensors, Tensors>{next, next};
                    })
            .ys;
      },
      {wave({2}), wave({4}, 1), wave({2}, 2)});
}

TEST(ScanLength, ZeroReturnsTheCarryAndEmptyYs) {
  const auto results = evaluate(
      [](const Tensors& args) {
        const ScanResult result = scan({args[0]}, {args[1]}, 0, [](const Tensors& carry, const Tensors& x) {
          return std::pair<Tensors, Tensors>{{carry[0] * x[0]}, {x[0]}};
        });
        return Tensors{result.carry[0], result.ys[0], grad(sum(result.carry[0]), {args[0]})[0]};
      },
      {array({2.0, 3.0}, {2}), Array(DType::kFloat64, {0, 2})});
  EXPECT_THAT(numbers(results[0]), ElementsAre(2, 3));
  EXPECT_EQ(results[1].shape(), (Shape{0, 2}));
  EXPECT_THAT(numbers(results[2]), ElementsAre(1, 1));
}

std::string scan_error(
    const std::vector<TensorType>& types,
    const std::function<std::pair<Tensors, Tensors>(const Tensors&, const Tensors&)>& body) {
  try {
    trace(types, [&](const Tensors& args) { return scan({args[0]}, {args[1]}, 4, body).carry; });
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "no ShapeError";
}

TEST(ScanShape, CarryThatChangesTypeThrows) {
  EXPECT_THAT(scan_error({{DType::kFloat32, {}}, {DType::kFloat32, {4, 2}}},
                         [](const Tensors& carry, const Tensors& x) {
                           return std::pair<Tensors, Tensors>{{carry[0] + x[0]}, {}};
                         }),
              HasSubstr("carry 0 of a scan starts as float32() and leaves the body as float32(2)"));
}

TEST(ScanShape, XOfAnotherLengthThrows) {
  EXPECT_THAT(scan_error({{DType::kFloat32, {}}, {DType::kFloat32, {3, 2}}},
                         [](const Tensors& carry, const Tensors&) {
                           return std::pair<Tensors, Tensors>{carry, {}};
                         }),
              HasSubstr("x 0 is float32(3, 2); its first axis must have the length 4"));
}

TEST(ScanShape, MissingCarryThrows) {
  EXPECT_THAT(scan_error({{DType::kFloat32, {}}, {DType::kFloat32, {4, 2}}},
                         [](const Tensors&, const Tensors&) { return std::pair<Tensors, Tensors>{}; }),
              HasSubstr("takes 1 carries and returns 0"));
}

// The types of the results of the loops that a program has, forward scan first.
std::vector<std::string> while_types(const Graph& graph) {
  std::vector<std::string> types;
  const std::string text = to_stablehlo(graph);
  // The signature of a while stands behind the braces that close its regions.
  for (size_t at = text.find("\"stablehlo.while\"("); at != std::string::npos;
       at = text.find("\"stablehlo.while\"(", at + 1)) {
    const size_t close = text.find("\n    }) {}", at);
    const size_t arrow = text.find(" -> ", close);
    types.push_back(text.substr(arrow, text.find('\n', arrow) - arrow));
  }
  return types;
}

// Layers as a scan over kernels [n, w, w], the state [b, w].
std::shared_ptr<Graph> layers(const std::function<Tensors(const std::function<Tensors()>&)>& wrap) {
  return trace({{DType::kFloat32, {7, 3}}, {DType::kFloat32, {5, 3, 3}}}, [&](const Tensors& args) {
    const ScanResult result = scan({args[0]}, {args[1]}, 5, [&](const Tensors& carry, const Tensors& x) {
      return std::pair<Tensors, Tensors>{wrap([&] { return Tensors{tanh(exp(matmul(carry[0], x[0])))}; }),
                                         {}};
    });
    return grad(sum(result.carry[0]), args);
  });
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ScanResiduals, RematKeepsOnlyTheCarry) {
  const auto types = while_types(*layers([](const auto& body) { return remat(body); }));
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(count(types[0], "tensor<5x7x3xf32>"), 1u) << types[0];
}

TEST(ScanResiduals, RematOfDotsKeepsTheCarryAndTheProduct) {
  const auto types = while_types(*layers([](const auto& body) { return remat(body, RematPolicy::kDots); }));
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(count(types[0], "tensor<5x21x3xf32>") + count(types[0], "tensor<5x7x3xf32>"), 2u) << types[0];
}

TEST(ScanResiduals, WithoutRematTheActivationsAreKept) {
  const auto types = while_types(*layers([](const auto& body) { return body(); }));
  ASSERT_EQ(types.size(), 2u);
  // The carry, exp and tanh; the kernels are sliced again.
  EXPECT_EQ(count(types[0], "tensor<5x7x3xf32>"), 3u) << types[0];
  EXPECT_EQ(count(types[0], "tensor<5x3x3xf32>"), 0u) << types[0];
}

}  // namespace
}  // namespace t5x::ops::control_tests
