// remat and custom_vjp: the same numbers as without, what is computed again, what memory that saves.
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

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

using Wrap = std::function<Tensors(const std::function<Tensors()>&)>;
Tensors plain(const std::function<Tensors()>& body) { return body(); }
Tensors full_remat(const std::function<Tensors()>& body) { return remat(body); }
Tensors dots_remat(const std::function<Tensors()>& body) { return remat(body, RematPolicy::kDots); }

// A chain of gated layers x [b, w] times kernels [w, w], each in `wrap`.
TraceFunction chain(const Wrap& wrap, int layers) {
  return [=](const Tensors& args) {
    Tensor x = args[0] * 0.5;
    for (int i = 0; i < layers; ++i) {
      x = wrap([&] {
        const Tensor h = matmul(x, args[1]);
        return Tensors{x + sin(exp(tanh(h)) * logistic(h))};
      })[0];
    }
    return Tensors{x};
  };
}

TraceFunction gradients_of(const TraceFunction& function) {
  return [function](const Tensors& args) { return grad(weighted_sum(function(args)), args); };
}

TEST(Remat, GradientsMatchDifferences) {
  check_gradients(chain(full_remat, 3), {wave({2, 3}), wave({3, 3}, 1)});
}

TEST(Remat, GradientsWithKeptDotsMatchDifferences) {
  check_gradients(chain(dots_remat, 3), {wave({2, 3}), wave({3, 3}, 1)});
}

TEST(Remat, SecondDerivativesMatchDifferences) {
  check_gradients(gradients_of(chain(full_remat, 2)), {wave({2, 3}), wave({3, 3}, 1)}, 1e-6);
}

TEST(Remat, InsideAScopeOfItsOwnIsTheSame) {
  check_gradients(chain([](const auto& body) { return remat([&] { return remat(body); }); }, 2),
                  {wave({2, 3}), wave({3, 3}, 1)});
}

// The value and its gradients.
std::string program(const Wrap& wrap) {
  const TraceFunction function = chain(wrap, 2);
  return to_stablehlo(
      *trace({{DType::kFloat32, {2, 3}}, {DType::kFloat32, {3, 3}}}, [&](const Tensors& args) {
        const Tensor value = weighted_sum(function(args));
        Tensors results = grad(value, args);
        results.push_back(value);
        return results;
      }));
}

TEST(RematPolicyNothing, ComputesProductsAgain) {
  // Two layers: two products forward, and two each for their gradients.
  EXPECT_EQ(count(program(plain), "stablehlo.dot_general"), 6u);
  EXPECT_EQ(count(program(full_remat), "stablehlo.dot_general"), 8u);
}

TEST(RematPolicyDots, KeepsProductsAndComputesTheRestAgain) {
  const std::string text = program(dots_remat);
  EXPECT_EQ(count(text, "stablehlo.dot_general"), 6u);
  EXPECT_EQ(count(text, "stablehlo.exponential"), 2 * count(program(plain), "stablehlo.exponential"));
}

TEST(RematPolicyDots, ComputesBatchedProductsAgain) {
  auto build = [](RematPolicy policy) {
    return to_stablehlo(*trace({{DType::kFloat32, {2, 3, 3}}}, [policy](const Tensors& args) {
      const Tensor x = args[0] * 2.0;
      const Tensor y = remat([&] { return Tensors{sin(einsum("bij,bjk->bik", x, x))}; }, policy)[0];
      return grad(sum(y), {args[0]});
    }));
  };
  EXPECT_EQ(count(build(RematPolicy::kDots), "stablehlo.dot_general"),
            count(build(RematPolicy::kNothing), "stablehlo.dot_general"));
}

int64_t temporary_bytes(const Wrap& wrap) {
  const std::vector<TensorType> types{{DType::kFloat32, {4096, 16}}, {DType::kFloat32, {16, 16}}};
  const auto graph = trace(types, gradients_of([&](const Tensors& args) {
                             return Tensors{convert(sum(chain(wrap, 16)(args)[0]), DType::kFloat64)};
                           }));
  std::vector<pjrt::ArgumentSpec> specs;
  for (const TensorType& type : types) specs.push_back({.spec = {type.dtype, type.shape}});
  return default_client().compile(to_stablehlo(*graph), specs).memory_stats().temporaries;
}

TEST(Remat, DeepChainNeedsLessThanHalfTheMemory) {
  const int64_t kept = temporary_bytes(plain), recomputed = temporary_bytes(full_remat);
  EXPECT_LT(2 * recomputed, kept);
}

// x * |x| under a derivative that is not the true one, so that it shows which was used.
Tensors triple_gradient(const Tensors& inputs) {
  return custom_vjp(
      inputs,
      [](const Tensors& in) {
        return CustomForward{{in[0] * in[1]}, {in[0], in[1]}};
      },
      [](const Tensors& residuals, const Tensors& cotangents) {
        return Tensors{cotangents[0] * residuals[1] * 3.0, Tensor()};
      });
}

TEST(CustomVjp, UsesTheGivenDerivative) {
  const auto results = evaluate(
      [](const Tensors& args) {
        const Tensor y = triple_gradient(args)[0];
        Tensors out = grad(y, args);
        out.insert(out.begin(), y);
        return out;
      },
      {array({2.0}, {}), array({5.0}, {})});
  EXPECT_THAT(numbers(results[0]), ElementsAre(10));
  EXPECT_THAT(numbers(results[1]), ElementsAre(15));
  EXPECT_THAT(numbers(results[2]), ElementsAre(0));
}

TEST(CustomVjp, WorksInsideRematAndScan) {
  const auto results = evaluate(
      [](const Tensors& args) {
        const ScanResult result = scan({args[0]}, {}, 3, [&](const Tensors& carry, const Tensors&) {
          return std::pair<Tensors, Tensors>{remat([&] { return triple_gradient({carry[0], args[1]}); }), {}};
        });
        return grad(result.carry[0], {args[0]});
      },
      {array({2.0}, {}), array({5.0}, {})});
  EXPECT_THAT(numbers(results[0]), ElementsAre(15 * 15 * 15));
}

TEST(CustomVjp, GradientOfAnotherTypeThrows) {
  try {
    trace({{DType::kFloat32, {2}}}, [](const Tensors& args) {
      const Tensor y = custom_vjp(
          args,
          [](const Tensors& in) {
            return CustomForward{{sum(in[0])}, {}};
          },
          [](const Tensors&, const Tensors& cotangents) { return cotangents; })[0];
      return grad(y, args);
    });
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_THAT(e.what(), HasSubstr("gives float32() for input 0, which is float32(2)"));
  }
}

}  // namespace
}  // namespace t5x::ops::control_tests
