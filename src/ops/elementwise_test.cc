#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

struct Unary {
  const char* name;
  Tensor (*f)(Tensor);
  double (*host)(double);
  double low, high;  // the checked part of the domain
};
void PrintTo(const Unary& op, std::ostream* out) { *out << op.name; }

double host_sign(double x) { return (x > 0) - (x < 0); }
double host_erf_inv(double x) {
  double y = 0;  // Newton's method
  for (int i = 0; i < 50; ++i) y -= (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
  return y;
}

const std::vector<Unary> kOps{
    {"abs", abs, std::fabs, 0.1, 2},
    {"abs_negative", abs, std::fabs, -2, -0.1},
    {"sign", sign, host_sign, 0.1, 2},
    {"exp", exp, std::exp, -2, 2},
    {"expm1", expm1, std::expm1, -2, 2},
    {"log", log, std::log, 0.2, 3},
    {"log1p", log1p, std::log1p, -0.5, 3},
    {"sqrt", sqrt, std::sqrt, 0.2, 3},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.2, 3},
    {"square", square, [](double x) { return x * x; }, -2, 2},
    {"tanh", tanh, std::tanh, -2, 2},
    {"logistic", logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, -3, 3},
    {"sin", sin, std::sin, -3, 3},
    {"cos", cos, std::cos, -3, 3},
    {"floor", floor, std::floor, 1.1, 1.9},
    {"ceil", ceil, std::ceil, 1.1, 1.9},
    {"round", round, std::nearbyint, 1.6, 2.4},
    {"erf", erf, std::erf, -2, 2},
    {"erf_inv", erf_inv, host_erf_inv, -0.9, 0.9},
    {"pow3", [](Tensor x) { return pow(x, 3.0); }, [](double x) { return x * x * x; }, -2, 2},
    {"pow4", [](Tensor x) { return pow(x, 4.0); }, [](double x) { return x * x * x * x; }, -2, 2},
    {"pow_1_5", [](Tensor x) { return pow(x, 1.5); }, [](double x) { return std::pow(x, 1.5); }, 0.2, 3},
};

class UnaryOp : public testing::TestWithParam<Unary> {};
TEST_P(UnaryOp, ValueAndGradient) {
  const Unary& op = GetParam();
  const Array x = random_array({2, 3}, 7, op.low, op.high);
  const Array y = evaluate_one({x}, [&](const Args& a) { return op.f(a[0]); });
  std::vector<double> expected;
  for (double value : x.values<double>()) expected.push_back(op.host(value));
  expect_values(y, DType::kFloat64, {2, 3}, expected, 1e-6);
  check_gradients({x}, [&](const Args& a) { return Args{op.f(a[0])}; });
}
INSTANTIATE_TEST_SUITE_P(Ops, UnaryOp, testing::ValuesIn(kOps),
                         [](const auto& tested) { return tested.param.name; });

TEST(UnaryOp, SecondOrder) {
  check_second_gradients({random_array({3}, 7, 0.2, 0.9)}, [](const Args& a) {
    return Args{exp(a[0]),    log(a[0]), rsqrt(a[0]),   tanh(a[0]), logistic(a[0]),
                square(a[0]), erf(a[0]), erf_inv(a[0]), sin(a[0]),  expm1(a[0])};
  });
}

TEST(Round, HalvesGoToEven) {
  const Array y = evaluate_one({floats({0.5, 1.5, 2.5, -0.5})}, [](const Args& a) { return round(a[0]); });
  expect_values(y, DType::kFloat32, {4}, {0, 2, 2, 0});
}
TEST(IsFinite, FindsInfinitiesAndNaN) {
  const Array y =
      evaluate_one({floats({1, INFINITY, -INFINITY, NAN})}, [](const Args& a) { return is_finite(a[0]); });
  expect_values(y, DType::kBool, {4}, {1, 0, 0, 0});
}
TEST(Erf, WorksInFloat32AndBFloat16) {
  const auto y = evaluate({floats({0.5})}, [](const Args& a) {
    return Args{erf(a[0]), erf(convert(a[0], DType::kBFloat16)), erf_inv(a[0])};
  });
  expect_values(y[0], DType::kFloat32, {1}, {0.5204998778}, 1e-6);
  expect_values(y[1], DType::kBFloat16, {1}, {0.5204998778}, 2e-3);
  expect_values(y[2], DType::kFloat32, {1}, {0.4769362762}, 1e-6);
}
TEST(Exp, IntegersThrow) {
  expect_shape_error({{DType::kInt32, {2}}}, "expected float operands, got int32(2)",
                     [](const Args& a) { return Args{exp(a[0])}; });
}
TEST(Abs, BoolsThrow) {
  expect_shape_error({{DType::kBool, {2}}}, "expected integer or float operands",
                     [](const Args& a) { return Args{abs(a[0])}; });
}
TEST(BitNot, FloatsThrow) {
  expect_shape_error({{DType::kFloat32, {2}}}, "expected bool or integer operands",
                     [](const Args& a) { return Args{bit_not(a[0])}; });
}

}  // namespace
}  // namespace t5x::ops
