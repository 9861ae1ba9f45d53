#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kB = DType::kBool;

TEST(Compare, Values) {
  const auto out = evaluate({floats({1, 2, 3}), floats({2, 2, 2})}, [](const Args& a) {
    return Args{a[0] == a[1], a[0] != a[1], a[0]<a[1], a[0] <= a[1], a[0]> a[1], a[0] >= a[1], a[0] > 2.5};
  });
  expect_values(out[0], kB, {3}, {0, 1, 0});
  expect_values(out[1], kB, {3}, {1, 0, 1});
  expect_values(out[2], kB, {3}, {1, 0, 0});
  expect_values(out[3], kB, {3}, {1, 1, 0});
  expect_values(out[4], kB, {3}, {0, 0, 1});
  expect_values(out[5], kB, {3}, {0, 1, 1});
  expect_values(out[6], kB, {3}, {0, 0, 1});
}
TEST(Compare, IntegersBySign) {
  const auto out = evaluate({ints({-1, 1})}, [](const Args& a) {
    const Tensor u = bitcast_convert(a[0], DType::kUInt32);
    return Args{a[0]<0.0, u> 5.0, a[0] == 1.0, (a[0] < 0.0) == (u > 5.0)};
  });
  expect_values(out[0], kB, {2}, {1, 0});
  expect_values(out[1], kB, {2}, {1, 0});
  expect_values(out[2], kB, {2}, {0, 1});
  expect_values(out[3], kB, {2}, {1, 1});
}
TEST(Compare, NoGradientPasses) {
  check_gradients({random_array({3}, 1)},
                  [](const Args& a) { return Args{convert(a[0] < 0.0, DType::kFloat64) * a[0]}; });
}
TEST(Compare, FractionBesideIntegerThrows) {
  expect_shape_error({{DType::kInt32, {2}}}, "does not hold it",
                     [](const Args& a) { return Args{a[0] < 0.5}; });
}

TEST(Select, BroadcastsConditionAndBranches) {
  const Array y = evaluate_one({bools({true, false}), floats({1, 2}, {2, 1})},
                               [](const Args& a) { return select(a[0], a[1], 0.0); });
  expect_values(y, DType::kFloat32, {2, 2}, {1, 0, 2, 0});
}
TEST(Select, ScalarConditionChoosesTheWhole) {
  const Array y = evaluate_one({floats({1, 2}), floats({3, 4})},
                               [](const Args& a) { return select(reduce_or(a[0] > 1.5, {}), a[0], a[1]); });
  expect_values(y, DType::kFloat32, {2}, {1, 2});
}
TEST(Select, Gradient) {
  check_gradients({random_array({2, 3}, 1), random_array({3}, 2), array_of({true, false}, {2, 1})},
                  [](const Args& a) {
                    return Args{select(a[2], a[0], a[1]), select(a[2], 2.0, a[0]),
                                select(reduce_or(a[2], {}), a[1], 1.0)};
                  });
}
TEST(Select, ConditionThatIsNotBoolThrows) {
  expect_shape_error({{DType::kInt32, {2}}, {DType::kFloat32, {2}}},
                     "expected a bool condition, got int32(2)",
                     [](const Args& a) { return Args{select(a[0], a[1], a[1])}; });
}
TEST(Select, ConditionThatDoesNotBroadcastThrows) {
  expect_shape_error({{kB, {3}}, {DType::kFloat32, {2}}}, "do not broadcast",
                     [](const Args& a) { return Args{select(a[0], a[1], a[1])}; });
}

TEST(Clamp, Values) {
  const Array y = evaluate_one({floats({-3, 0.5, 3})}, [](const Args& a) { return clamp(-1, a[0], 1); });
  expect_values(y, DType::kFloat32, {3}, {-1, 0.5, 1});
}
TEST(Clamp, Gradient) {
  check_gradients({random_array({8}, 3, -2, 2)}, [](const Args& a) { return Args{clamp(-1, a[0], 1)}; });
}
TEST(Clamp, BoundsOutOfOrderThrow) {
  expect_shape_error({{DType::kFloat32, {2}}}, "ascending order, got 1 and -1",
                     [](const Args& a) { return Args{clamp(1, a[0], -1)}; });
}
TEST(Clamp, BoolsThrow) {
  expect_shape_error({{kB, {2}}}, "expected integer or float operands",
                     [](const Args& a) { return Args{clamp(0, a[0], 1)}; });
}

TEST(Convert, Values) {
  const auto out = evaluate({floats({-1.7, 0, 2.5})}, [](const Args& a) {
    return Args{convert(a[0], DType::kInt32), convert(a[0], kB), convert(convert(a[0], kB), DType::kFloat32),
                convert(a[0], DType::kBFloat16)};
  });
  expect_values(out[0], DType::kInt32, {3}, {-1, 0, 2});
  expect_values(out[1], kB, {3}, {1, 0, 1});
  expect_values(out[2], DType::kFloat32, {3}, {1, 0, 1});
  expect_values(out[3], DType::kBFloat16, {3}, {-1.703125, 0, 2.5});
}
TEST(Convert, GradientComesBackInTheInputsDtype) {
  const Array g = evaluate_one({floats({1, 2})}, [](const Args& a) {
    const Tensor y = convert(a[0], DType::kBFloat16);
    return vjp({y * y}, {full(y.type(), 1.0)}, {a[0]})[0];
  });
  expect_values(g, DType::kFloat32, {2}, {2, 4});
}
TEST(Convert, NoGradientPassesAnInteger) {
  const Array g = evaluate_one({floats({1, 2})}, [](const Args& a) {
    const Tensor y = convert(convert(a[0], DType::kInt32), DType::kFloat32);
    return vjp({y}, {y}, {a[0]})[0];
  });
  expect_values(g, DType::kFloat32, {2}, {0, 0});
}
TEST(BitcastConvert, KeepsBits) {
  const Array y =
      evaluate_one({floats({1})}, [](const Args& a) { return bitcast_convert(a[0], DType::kUInt32); });
  expect_values(y, DType::kUInt32, {1}, {0x3f800000});
}
TEST(BitcastConvert, OtherSizeThrows) {
  expect_shape_error({{DType::kFloat32, {2}}}, "expected dtypes of one size, got float32 to int16",
                     [](const Args& a) { return Args{bitcast_convert(a[0], DType::kInt16)}; });
}
TEST(StopGradient, IsTheIdentityWithoutGradient) {
  const auto out = evaluate({floats({3})}, [](const Args& a) {
    const Tensor y = a[0] * stop_gradient(a[0]);
    return Args{y, vjp({y}, {full(y.type(), 1.0)}, {a[0]})[0]};
  });
  expect_values(out[0], DType::kFloat32, {1}, {9});
  expect_values(out[1], DType::kFloat32, {1}, {3});
}

TEST(ShardingConstraint, IsPrintedForwardAndBackward) {
  auto graph = trace({{DType::kFloat32, {8, 4}}}, [](const Args& a) {
    const Tensor y = square(sharding_constraint(square(a[0]), "#sdy.sharding<@mesh, [{\"data\"}, {}]>"));
    return Args{vjp({y}, {y}, {a[0]})};
  });
  const std::string text = to_stablehlo(*graph);
  const std::string line = "{sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>} : (tensor<8x4xf32>)";
  const size_t first = text.find(line);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find(line, first + 1), std::string::npos) << text;
}
TEST(ShardingConstraint, CompilesOnOneDevice) {
  auto graph = trace({{DType::kFloat32, {8, 4}}}, [](const Args& a) {
    return Args{sharding_constraint(a[0], "#sdy.sharding<@mesh, [{\"data\"}, {}]>")};
  });
  const std::string text = to_stablehlo(*graph, {.prelude = "sdy.mesh @mesh = <[\"data\"=1]>"});
  EXPECT_NO_THROW(default_client().compile(text, {{.spec = {DType::kFloat32, {8, 4}}}}));
}
TEST(ShardingConstraint, OtherAttributeThrows) {
  expect_shape_error({{DType::kFloat32, {8}}}, "expected an attribute such as #sdy.sharding<",
                     [](const Args& a) { return Args{sharding_constraint(a[0], "@mesh, [{}]")}; });
}

}  // namespace
}  // namespace t5x::ops
