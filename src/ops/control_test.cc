// while_loop and cond: values, derivatives, and the errors of carries and branches that do not fit.
#include "ops/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/control_test_util.h"

namespace t5x::ops::control_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kScalar{DType::kFloat64, {}};

template <class F>
std::string shape_error(F&& function) {
  try {
    function();
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "no ShapeError";
}

TEST(WhileLoop, RunsUntilTheConditionFails) {
  const auto results = evaluate(
      [](const Tensors& args) {
        return while_loop(
            {full({DType::kInt32, {}}, 0), args[0]}, [](const Tensors& carry) { return carry[1] < 100.0; },
            [](const Tensors& carry) {
              return Tensors{carry[0] + 1.0, carry[1] * 3.0};
            });
      },
      {array({2.0}, {})});
  EXPECT_THAT(numbers(results[0]), ElementsAre(4));
  EXPECT_THAT(numbers(results[1]), ElementsAre(162));
}

TEST(WhileLoop, ConditionAndBodyMentionDifferentOuterTensors) {
  const auto results = evaluate(
      [](const Tensors& args) {
        return while_loop(
            {args[0]}, [&](const Tensors& carry) { return carry[0] < args[1]; },
            [&](const Tensors& carry) { return Tensors{carry[0] + args[2]}; });
      },
      {array({1.0}, {}), array({5.0}, {}), array({1.5}, {})});
  EXPECT_THAT(numbers(results[0]), ElementsAre(5.5));
}

TEST(WhileLoop, CarryThatChangesTypeThrows) {
  const std::string what = shape_error([] {
    trace({kScalar, kScalar}, [](const Tensors& args) {
      return while_loop(
          args, [](const Tensors& carry) { return carry[0] < 1.0; },
          [](const Tensors& carry) {
            return Tensors{carry[0], convert(carry[1], DType::kFloat32)};
          });
    });
  });
  EXPECT_THAT(what,
              HasSubstr("carry 1 of a while loop starts as float64() and leaves the body as float32()"));
}

TEST(WhileLoop, ConditionThatIsNoBoolThrows) {
  const std::string what = shape_error([] {
    trace({kScalar}, [](const Tensors& args) {
      return while_loop(
          args, [](const Tensors& carry) { return carry[0]; }, [](const Tensors& carry) { return carry; });
    });
  });
  EXPECT_THAT(what, HasSubstr("must be one bool scalar, not float64()"));
}

TEST(WhileLoop, GradientThroughItThrows) {
  const std::string what = shape_error([] {
    trace({kScalar}, [](const Tensors& args) {
      const Tensors out = while_loop(
          args, [](const Tensors& carry) { return carry[0] < 1.0; },
          [](const Tensors& carry) { return Tensors{carry[0] + 1.0}; });
      return grad(out[0], {args[0]});
    });
  });
  EXPECT_THAT(what, HasSubstr("no derivative"));
}

Tensors branch_on_sign(const Tensors& args) {
  return cond(
      any(args[0] > 0.5),
      [&] {
        return Tensors{args[0] * args[1], exp(args[1])};
      },
      [&] {
        return Tensors{sin(args[0]), args[2] * args[2]};
      });
}

TEST(Cond, TakesTheBranchOfThePredicate) {
  const Array b = array({2.0}, {}), c = array({3.0}, {});
  EXPECT_THAT(numbers(evaluate(branch_on_sign, {array({4.0}, {}), b, c})[0]), ElementsAre(8));
  EXPECT_THAT(numbers(evaluate(branch_on_sign, {array({0.0}, {}), b, c})[1]), ElementsAre(9));
}

TEST(Cond, GradientOfTheTrueBranch) {
  check_gradients(branch_on_sign, {array({0.9, -0.2}, {2}), wave({2}), wave({2}, 2)});
}

TEST(Cond, GradientOfTheFalseBranch) {
  check_gradients(branch_on_sign, {array({0.1, -0.2}, {2}), wave({2}), wave({2}, 2)});
}

TEST(Cond, BranchesOfDifferentTypesThrow) {
  const std::string what = shape_error([] {
    trace({kScalar}, [](const Tensors& args) {
      return cond(
          args[0] > 0.0, [&] { return args; }, [&] { return Tensors{convert(args[0], DType::kFloat32)}; });
    });
  });
  EXPECT_THAT(what,
              HasSubstr("result 0 of cond is float64() in the true branch and float32() in the false one"));
}

TEST(Cond, PredicateThatIsNoBoolThrows) {
  const std::string what = shape_error([] {
    trace({kScalar}, [](const Tensors& args) {
      return cond(
          args[0], [&] { return args; }, [&] { return args; });
    });
  });
  EXPECT_THAT(what, HasSubstr("must be a bool scalar, not float64()"));
}

}  // namespace
}  // namespace t5x::ops::control_tests
