#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kF = DType::kFloat32;

TEST(Reduce, Values) {
  const auto out = evaluate({floats({1, 5, 2, 7, 0, -3}, {2, 3})}, [](const Args& a) {
    const Tensor x = a[0];
    return Args{reduce_sum(x, {1}),
                reduce_max(x, {0}),
                reduce_min(x, {-1}, true),
                reduce_mean(x, {0}),
                sum(x),
                mean(x),
                reduce_sum(x, {}, true),
                reduce_and(x > 0.0, {1}),
                reduce_or(x > 5.0, {0}),
                all(x > -4.0),
                any(x > 7.0)};
  });
  expect_values(out[0], kF, {2}, {8, 4});
  expect_values(out[1], kF, {3}, {7, 5, 2});
  expect_values(out[2], kF, {2, 1}, {1, -3});
  expect_values(out[3], kF, {3}, {4, 2.5, -0.5});
  expect_values(out[4], kF, {}, {12});
  expect_values(out[5], kF, {}, {2});
  expect_values(out[6], kF, {1, 1}, {12});
  expect_values(out[7], DType::kBool, {2}, {1, 0});
  expect_values(out[8], DType::kBool, {3}, {1, 0, 0});
  expect_values(out[9], DType::kBool, {}, {1});
  expect_values(out[10], DType::kBool, {}, {0});
}
TEST(Reduce, IntegersAndBools) {
  const auto out = evaluate({ints({3, -5, 4})}, [](const Args& a) {
    const Tensor u = bitcast_convert(a[0], DType::kUInt32);
    return Args{sum(a[0]),
                reduce_max(a[0], {}),
                reduce_min(a[0], {}),
                mean(a[0]),
                sum(a[0] > 0.0),
                reduce_max(u, {}),
                reduce_min(u, {}),
                reduce_max(convert(a[0], DType::kInt64), {})};
  });
  expect_values(out[0], DType::kInt32, {}, {2});
  expect_values(out[1], DType::kInt32, {}, {4});
  expect_values(out[2], DType::kInt32, {}, {-5});
  expect_values(out[3], kF, {}, {2.0 / 3}, 1e-6);
  expect_values(out[4], DType::kInt32, {}, {2});
  expect_values(out[5], DType::kUInt32, {}, {4294967291.0});
  expect_values(out[6], DType::kUInt32, {}, {3});
  expect_values(out[7], DType::kInt64, {}, {4});
}
TEST(Reduce, EmptyAxisGivesTheNeutralElement) {
  const auto out = evaluate({Array(kF, {2, 0})}, [](const Args& a) {
    return Args{reduce_sum(a[0], {1}),
                reduce_max(a[0], {1}),
                reduce_min(a[0], {1}),
                reduce_and(a[0] > 0.0, {1}),
                reduce_max(convert(a[0], DType::kInt8), {1}),
                reduce_min(convert(a[0], DType::kInt32), {1}),
                mean(a[0])};
  });
  expect_values(out[0], kF, {2}, {0, 0});
  expect_values(out[1], kF, {2}, {-INFINITY, -INFINITY});
  expect_values(out[2], kF, {2}, {INFINITY, INFINITY});
  expect_values(out[3], DType::kBool, {2}, {1, 1});
  expect_values(out[4], DType::kInt8, {2}, {-128, -128});
  expect_values(out[5], DType::kInt32, {2}, {2147483647, 2147483647});
  expect_values(out[6], kF, {}, {NAN});
}
TEST(ReduceSum, BFloat16AccumulatesInFloat32) {
  // 300 ones: a bfloat16 sum would stop at 256.
  const auto out = evaluate({}, [](const Args&) {
    const Tensor ones = full({DType::kBFloat16, {300}}, 1.0);
    return Args{sum(ones), mean(ones)};
  });
  expect_values(out[0], DType::kBFloat16, {}, {300});
  expect_values(out[1], DType::kBFloat16, {}, {1});
}
TEST(Argmax, FirstOnTiesAndNaNIsLargest) {
  const auto out =
      evaluate({floats({1, 3, 3, 2, NAN, 9}, {2, 3}), ints({-4, -2, -2}), bools({false, true, true})},
               [](const Args& a) {
                 return Args{argmax(a[0], 1), argmax(a[0], 0), argmax(a[1], 0), argmax(a[2], -1)};
               });
  expect_values(out[0], DType::kInt32, {2}, {1, 1});
  expect_values(out[1], DType::kInt32, {3}, {1, 1, 1});
  expect_values(out[2], DType::kInt32, {}, {1});
  expect_values(out[3], DType::kInt32, {}, {1});
}
TEST(Argmax, OfMinusInfinitiesIsTheFirst) {
  const Array y =
      evaluate_one({floats({-INFINITY, -INFINITY})}, [](const Args& a) { return argmax(a[0], 0); });
  expect_values(y, DType::kInt32, {}, {0});
}
TEST(Cumsum, RunsAlongTheAxis) {
  const auto out = evaluate({counting({2, 5}), bools({true, false, true})}, [](const Args& a) {
    return Args{cumsum(a[0], 1), cumsum(a[0], -2), cumsum(convert(a[0], DType::kInt32), 1), cumsum(a[1], 0)};
  });
  expect_values(out[0], kF, {2, 5}, {0, 1, 3, 6, 10, 5, 11, 18, 26, 35});
  expect_values(out[1], kF, {2, 5}, {0, 1, 2, 3, 4, 5, 7, 9, 11, 13});
  expect_values(out[2], DType::kInt32, {2, 5}, {0, 1, 3, 6, 10, 5, 11, 18, 26, 35});
  expect_values(out[3], DType::kInt32, {3}, {1, 1, 2});
}
TEST(Softmax, Values) {
  const auto out = evaluate({floats({1, 2, 3, 1000, 1000, -1000}, {2, 3})}, [](const Args& a) {
    return Args{softmax(a[0], -1), log_softmax(a[0], -1), logsumexp(a[0], -1), logsumexp(a[0], 0, true)};
  });
  expect_values(out[0], kF, {2, 3}, {0.09003057, 0.24472847, 0.66524096, 0.5, 0.5, 0}, 1e-6);
  expect_values(out[1], kF, {2, 3},
                {-2.40760596, -1.40760596, -0.40760596, -0.69314718, -0.69314718, -2000.6931}, 1e-4);
  expect_values(out[2], kF, {2}, {3.40760596, 1000.69314718}, 1e-4);
  expect_values(out[3], kF, {1, 3}, {1000, 1000, 3}, 1e-4);
}
TEST(Softmax, KeepsBFloat16) {
  const auto out = evaluate({floats({1, 1}).cast(DType::kBFloat16)}, [](const Args& a) {
    return Args{softmax(a[0], 0), log_softmax(a[0], 0)};
  });
  expect_values(out[0], DType::kBFloat16, {2}, {0.5, 0.5});
  expect_values(out[1], DType::kBFloat16, {2}, {-0.693, -0.693}, 4e-3);
}
TEST(Logsumexp, OfMinusInfinitiesIsMinusInfinity) {
  const Array y =
      evaluate_one({floats({-INFINITY, -INFINITY})}, [](const Args& a) { return logsumexp(a[0], 0); });
  expect_values(y, kF, {}, {-INFINITY});
}

struct Reduction {
  const char* name;
  Tensor (*f)(Tensor);
};
void PrintTo(const Reduction& op, std::ostream* out) { *out << op.name; }
const std::vector<Reduction> kReductions{
    {"sum",
     [](Tensor x) {
       return reduce_sum(x, {0, 2});
     }},
    {"sum_keepdims", [](Tensor x) { return reduce_sum(x, {1}, true); }},
    {"mean", [](Tensor x) { return reduce_mean(x, {-1}); }},
    {"max", [](Tensor x) { return reduce_max(x, {1}); }},
    {"min",
     [](Tensor x) {
       return reduce_min(x, {0, 1});
     }},
    {"cumsum", [](Tensor x) { return cumsum(x, 1); }},
    {"cumsum_last", [](Tensor x) { return cumsum(x, -1); }},
    {"softmax", [](Tensor x) { return softmax(x, 1); }},
    {"log_softmax", [](Tensor x) { return log_softmax(x, -1); }},
    {"logsumexp", [](Tensor x) { return logsumexp(x, 0); }},
};
class ReduceGradient : public testing::TestWithParam<Reduction> {};
TEST_P(ReduceGradient, MatchesDifferences) {
  check_gradients({random_array({2, 5, 3}, 5)}, [](const Args& a) { return Args{GetParam().f(a[0])}; });
}
INSTANTIATE_TEST_SUITE_P(Ops, ReduceGradient, testing::ValuesIn(kReductions),
                         [](const auto& tested) { return tested.param.name; });
TEST(ReduceGradient, SecondOrder) {
  check_second_gradients({random_array({2, 5}, 5)}, [](const Args& a) {
    return Args{softmax(a[0], 1),
                log_softmax(a[0], 1),
                logsumexp(a[0], 0),
                square(reduce_sum(a[0], {0})),
                square(reduce_max(a[0], {1})),
                square(cumsum(a[0], 1))};
  });
}
TEST(ReduceMax, GradientIsSharedAmongTies) {
  const Array g =
      evaluate_one({floats({2, 1, 2})}, [](const Args& a) { return grad(reduce_max(a[0], {}), {a[0]})[0]; });
  expect_values(g, kF, {3}, {0.5, 0, 0.5});
}
TEST(Argmax, NoGradientPasses) {
  const Array g = evaluate_one({floats({2, 1})},
                               [](const Args& a) { return grad(convert(argmax(a[0], 0), kF), {a[0]})[0]; });
  expect_values(g, kF, {2}, {0, 0});
}

const TensorType kMatrix{kF, {2, 3}};
TEST(ReduceSum, AxisOutOfRangeThrows) {
  expect_shape_error({kMatrix}, "axis 2 is out of range",
                     [](const Args& a) { return Args{reduce_sum(a[0], {2})}; });
}
TEST(ReduceSum, AxisNamedTwiceThrows) {
  expect_shape_error({kMatrix}, "axis 1 of (2, 3) is named twice", [](const Args& a) {
    return Args{reduce_sum(a[0], {1, -1})};
  });
}
TEST(ReduceAnd, FloatsThrow) {
  expect_shape_error({kMatrix}, "expected bool operands", [](const Args& a) { return Args{all(a[0])}; });
}
TEST(Argmax, EmptyAxisThrows) {
  expect_shape_error({{kF, {2, 0}}}, "has no elements", [](const Args& a) { return Args{argmax(a[0], 1)}; });
}
TEST(Softmax, IntegersThrow) {
  expect_shape_error({{DType::kInt32, {3}}}, "expected float operands",
                     [](const Args& a) { return Args{softmax(a[0], 0)}; });
}
TEST(Cumsum, AxisOutOfRangeThrows) {
  expect_shape_error({kMatrix}, "axis 2 is out of range",
                     [](const Args& a) { return Args{cumsum(a[0], 2)}; });
}

}  // namespace
}  // namespace t5x::ops
