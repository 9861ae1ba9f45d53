#include "ops/broadcast.h"
#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

TEST(Arithmetic, Values) {
  const auto out = evaluate({floats({1, -2, 3}), floats({4, 5, -6})}, [](const Args& a) {
    return Args{a[0] + a[1], a[0] - a[1], a[0] * a[1], a[0] / a[1],
                -a[0],       2.0 - a[0],  12.0 / a[0], a[0] * 0.5};
  });
  const DType f = DType::kFloat32;
  expect_values(out[0], f, {3}, {5, 3, -3});
  expect_values(out[1], f, {3}, {-3, -7, 9});
  expect_values(out[2], f, {3}, {4, -10, -18});
  expect_values(out[3], f, {3}, {0.25, -0.4, -0.5}, 1e-7);
  expect_values(out[4], f, {3}, {-1, 2, -3});
  expect_values(out[5], f, {3}, {1, 4, -1});
  expect_values(out[6], f, {3}, {12, -6, 4});
  expect_values(out[7], f, {3}, {0.5, -1, 1.5});
}

TEST(Arithmetic, ExtremaPowersAndRemainders) {
  const auto out = evaluate({floats({1, -2, 7}), floats({4, 2, -3})}, [](const Args& a) {
    return Args{maximum(a[0], a[1]), minimum(a[0], a[1]), pow(abs(a[0]), a[1]), remainder(a[0], a[1]),
                pow(a[0], 3.0),      pow(a[0], -1.0),     maximum(a[0], 0.0),   minimum(a[0], 0.0)};
  });
  const DType f = DType::kFloat32;
  expect_values(out[0], f, {3}, {4, 2, 7});
  expect_values(out[1], f, {3}, {1, -2, -3});
  expect_values(out[2], f, {3}, {1, 4, 1.0 / 343}, 1e-7);
  expect_values(out[3], f, {3}, {1, 0, 1});
  expect_values(out[4], f, {3}, {1, -8, 343});
  expect_values(out[5], f, {3}, {1, -0.5, 1.0 / 7}, 1e-7);
  expect_values(out[6], f, {3}, {1, 0, 7});
  expect_values(out[7], f, {3}, {0, -2, 0});
}

TEST(Arithmetic, Bits) {
  const auto out = evaluate({ints({12, -8}), ints({10, 2}), bools({true, false})}, [](const Args& a) {
    return Args{bit_and(a[0], a[1]),    bit_or(a[0], a[1]),
                bit_xor(a[0], a[1]),    bit_not(a[0]),
                shift_left(a[0], a[1]), shift_right_logical(a[0], a[1]),
                bit_not(a[2]),          shift_right_arithmetic(a[0], a[1])};
  });
  const DType i = DType::kInt32;
  expect_values(out[0], i, {2}, {8, 0});
  expect_values(out[1], i, {2}, {14, -6});
  expect_values(out[2], i, {2}, {6, -6});
  expect_values(out[3], i, {2}, {-13, 7});
  expect_values(out[4], i, {2}, {12288, -32});
  expect_values(out[5], i, {2}, {0, 1073741822});
  expect_values(out[6], DType::kBool, {2}, {0, 1});
  expect_values(out[7], i, {2}, {0, -2});
}

TEST(Arithmetic, BroadcastsAsNumPy) {
  const Array out =
      evaluate_one({floats({1, 2}, {2, 1}), floats({10, 20, 30})}, [](const Args& a) { return a[0] + a[1]; });
  expect_values(out, DType::kFloat32, {2, 3}, {11, 21, 31, 12, 22, 32});
}

TEST(Promotion, FollowsJax) {
  EXPECT_EQ(promote(DType::kBFloat16, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(promote(DType::kBFloat16, DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(promote(DType::kInt64, DType::kBFloat16), DType::kBFloat16);
  EXPECT_EQ(promote(DType::kBool, DType::kInt8), DType::kInt8);
  EXPECT_EQ(promote(DType::kUInt8, DType::kInt8), DType::kInt16);
  EXPECT_EQ(promote(DType::kUInt8, DType::kInt32), DType::kInt32);
  EXPECT_EQ(promote(DType::kUInt32, DType::kInt32), DType::kInt64);
  EXPECT_THROW(promote(DType::kUInt64, DType::kInt64), ShapeError);
}

TEST(Arithmetic, ShapesThatDoNotBroadcastThrow) {
  expect_shape_error({{DType::kFloat32, {2, 3}}, {DType::kFloat32, {2}}},
                     "axis 1 from the end has sizes 3 and 2",
                     [](const Args& a) { return Args{a[0] + a[1]}; });
}
TEST(Arithmetic, FractionBesideIntegerThrows) {
  expect_shape_error({{DType::kInt32, {2}}}, "0.5 stands beside int32(2)",
                     [](const Args& a) { return Args{a[0] * 0.5}; });
}
TEST(Arithmetic, NegativeNumberBesideUnsignedThrows) {
  expect_shape_error({{DType::kUInt32, {2}}}, "does not hold it",
                     [](const Args& a) { return Args{a[0] + -1.0}; });
}
TEST(Arithmetic, DifferenceOfBoolsThrows) {
  expect_shape_error({{DType::kBool, {2}}}, "expected integer or float operands, got bool(2)",
                     [](const Args& a) { return Args{a[0] - a[0]}; });
}
TEST(Arithmetic, BitsOfFloatsThrow) {
  expect_shape_error({{DType::kFloat32, {2}}}, "expected bool or integer operands",
                     [](const Args& a) { return Args{bit_and(a[0], a[0])}; });
}
TEST(Arithmetic, ErrorNamesOperationAndModule) {
  expect_shape_error({{DType::kFloat32, {3}}, {DType::kFloat32, {2}}}, "in encoder", [](const Args& a) {
    NameScope scope("encoder");
    return Args{a[0] * a[1]};
  });
}

using Binary = Tensor (*)(Tensor, Tensor);
class BinaryGradient : public testing::TestWithParam<std::pair<const char*, Binary>> {};
// Shapes that broadcast both ways; positive, and apart from one another where the function has a kink.
TEST_P(BinaryGradient, MatchesDifferences) {
  const Binary f = GetParam().second;
  check_gradients({random_array({2, 1, 3}, 1, 0.5, 2.0), random_array({4, 1}, 2, 2.1, 3.0)},
                  [f](const Args& a) {
                    return Args{f(a[0], a[1]), f(a[1], a[0])};
                  });
}
INSTANTIATE_TEST_SUITE_P(Ops, BinaryGradient,
                         testing::ValuesIn(std::vector<std::pair<const char*, Binary>>{
                             {"add", [](Tensor a, Tensor b) { return a + b; }},
                             {"subtract", [](Tensor a, Tensor b) { return a - b; }},
                             {"multiply", [](Tensor a, Tensor b) { return a * b; }},
                             {"divide", [](Tensor a, Tensor b) { return a / b; }},
                             {"maximum", [](Tensor a, Tensor b) { return maximum(a, b); }},
                             {"minimum", [](Tensor a, Tensor b) { return minimum(a, b); }},
                             {"pow", [](Tensor a, Tensor b) { return pow(a, b); }},
                             {"remainder", [](Tensor a, Tensor b) { return remainder(a, b); }},
                             {"negate", [](Tensor a, Tensor b) { return -a * b; }}}),
                         [](const auto& tested) { return tested.param.first; });

TEST(BinaryGradient, SecondOrder) {
  check_second_gradients({random_array({2, 3}, 1, 0.5, 2.0), random_array({3}, 2, 2.1, 3.0)},
                         [](const Args& a) {
                           return Args{a[0] / a[1], pow(a[0], a[1]), a[0] * a[1]};
                         });
}

// The gradient of the sum of f by its one input.
Array gradient_of(const Array& input, Tensor (*f)(Tensor)) {
  return evaluate_one({input}, [f](const Args& a) { return grad(sum(f(a[0])), {a[0]})[0]; });
}
TEST(Maximum, GradientIsHalvedOnTies) {
  const Array g = gradient_of(floats({-1, 0, 1}), [](Tensor x) { return maximum(x, 0.0); });
  expect_values(g, DType::kFloat32, {3}, {0, 0.5, 1});
}
TEST(Pow, ZeroToTheZeroHasGradientZero) {
  const Array g = gradient_of(floats({0, 2}), [](Tensor x) { return pow(x, zeros(x.type())); });
  expect_values(g, DType::kFloat32, {2}, {0, 0});
}
TEST(Arithmetic, GradientOfBroadcastBFloat16SumsInFloat32) {
  // 300 ones: a bfloat16 sum would stop at 256.
  const Array g = evaluate_one({floats({0}).cast(DType::kBFloat16)}, [](const Args& a) {
    const Tensor y = a[0] + zeros({DType::kBFloat16, {300}});
    return vjp({y}, {full(y.type(), 1.0)}, {a[0]})[0];
  });
  expect_values(g, DType::kBFloat16, {1}, {300});
}

}  // namespace
}  // namespace t5x::ops
