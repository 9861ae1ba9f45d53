#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kF = DType::kFloat32;

TEST(Take, GathersRows) {
  const auto out = evaluate({counting({3, 2}), ints({2, 0, 1, 2}, {2, 2}), ints({1}, {})}, [](const Args& a) {
    return Args{take(a[0], a[1]), take(a[0], a[2]), take(reshape(a[0], {6}), convert(a[1], DType::kInt64))};
  });
  expect_values(out[0], kF, {2, 2, 2}, {4, 5, 0, 1, 2, 3, 4, 5});
  expect_values(out[1], kF, {2}, {2, 3});
  expect_values(out[2], kF, {2, 2}, {2, 0, 1, 2});
}
TEST(Take, OutOfRangeIsClamped) {
  const Array y =
      evaluate_one({counting({3, 1}), ints({-5, 7})}, [](const Args& a) { return take(a[0], a[1]); });
  expect_values(y, kF, {2, 1}, {0, 2});
}
TEST(GatherBatched, EveryBatchHasItsOwnRows) {
  const Array y = evaluate_one({counting({2, 3, 2}), ints({2, 0, 1, 1}, {2, 2})},
                               [](const Args& a) { return gather_batched(a[0], a[1]); });
  expect_values(y, kF, {2, 2, 2}, {4, 5, 0, 1, 8, 9, 8, 9});
}
TEST(TakeAlongAxis, AsNumPy) {
  const auto out =
      evaluate({counting({2, 3}), ints({2, 0}, {2, 1}), ints({1, 0, 1}, {1, 3})}, [](const Args& a) {
        return Args{take_along_axis(a[0], a[1], -1), take_along_axis(a[0], a[2], 0)};
      });
  expect_values(out[0], kF, {2, 1}, {2, 3});
  expect_values(out[1], kF, {1, 3}, {3, 1, 5});
}
TEST(ScatterAdd, AddsWhereIndicesMeet) {
  const Array y = evaluate_one({counting({3, 2}), ints({2, 2}), floats({10, 20, 30, 40}, {2, 2})},
                               [](const Args& a) { return scatter_add(a[0], a[1], a[2]); });
  expect_values(y, kF, {3, 2}, {0, 1, 2, 3, 44, 65});
}
TEST(ScatterAdd, OutOfRangeIsDropped) {
  const Array y = evaluate_one({counting({2, 1}), ints({2, 1}), floats({10, 20}, {2, 1})},
                               [](const Args& a) { return scatter_add(a[0], a[1], a[2]); });
  expect_values(y, kF, {2, 1}, {0, 21});
}
TEST(OneHot, MarksThePosition) {
  const auto out = evaluate({ints({1, 0, 3})}, [](const Args& a) {
    return Args{one_hot(a[0], 3, kF), one_hot(a[0], 2, DType::kBool)};
  });
  expect_values(out[0], kF, {3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 0});
  expect_values(out[1], DType::kBool, {3, 2}, {0, 1, 1, 0, 0, 0});
}

TEST(IndexingGradient, Take) {
  check_gradients({random_array({3, 2}, 1), ints({2, 0, 2, 2}, {2, 2})},
                  [](const Args& a) { return Args{take(a[0], a[1])}; });
}
TEST(IndexingGradient, GatherBatched) {
  check_gradients({random_array({2, 3, 2}, 1), ints({2, 0, 1, 1}, {2, 2})},
                  [](const Args& a) { return Args{gather_batched(a[0], a[1])}; });
}
TEST(IndexingGradient, TakeAlongAxis) {
  check_gradients({random_array({2, 3, 2}, 1), ints({2, 0, 1, 1}, {2, 1, 2})},
                  [](const Args& a) { return Args{take_along_axis(a[0], a[1], 1)}; });
}
TEST(IndexingGradient, ScatterAdd) {
  check_gradients({random_array({3, 2}, 1), random_array({4, 2}, 2), ints({2, 0, 2, 1})},
                  [](const Args& a) { return Args{scatter_add(a[0], a[2], a[1])}; });
}
TEST(IndexingGradient, SecondOrder) {
  check_second_gradients({random_array({3, 2}, 1), ints({2, 0, 2})}, [](const Args& a) {
    return Args{square(take(a[0], a[1])), square(scatter_add(a[0], a[1], square(a[0])))};
  });
}
TEST(Take, BFloat16GradientAddsInFloat32) {
  // 300 times one: a bfloat16 sum would stop at 256.
  const Array g = evaluate_one({Array(DType::kBFloat16, {2, 1})}, [](const Args& a) {
    const Tensor y = take(a[0], zeros({DType::kInt32, {300}}));
    return vjp({y}, {full(y.type(), 1.0)}, {a[0]})[0];
  });
  expect_values(g, DType::kBFloat16, {2, 1}, {300, 0});
}

const TensorType kTable{kF, {3, 2}};
TEST(Take, FloatIndicesThrow) {
  expect_shape_error({kTable}, "expected integer indices",
                     [](const Args& a) { return Args{take(a[0], a[0])}; });
}
TEST(Take, ScalarTableThrows) {
  expect_shape_error({{kF, {}}, {DType::kInt32, {2}}}, "expected a table of rank 1 or more",
                     [](const Args& a) { return Args{take(a[0], a[1])}; });
}
TEST(Take, EmptyTableThrows) {
  expect_shape_error({{kF, {0, 2}}, {DType::kInt32, {2}}}, "expected a table with rows",
                     [](const Args& a) { return Args{take(a[0], a[1])}; });
}
TEST(GatherBatched, OtherBatchThrows) {
  expect_shape_error({{kF, {2, 3, 4}}, {DType::kInt32, {3, 1}}}, "batch axis 0 has size 2 in the table and 3",
                     [](const Args& a) { return Args{gather_batched(a[0], a[1])}; });
}
TEST(ScatterAdd, UpdatesOfOtherShapeThrow) {
  expect_shape_error({kTable, {DType::kInt32, {4}}}, "expected updates float32(4, 2), got float32(3, 2)",
                     [](const Args& a) { return Args{scatter_add(a[0], a[1], a[0])}; });
}
TEST(ScatterAdd, BoolsThrow) {
  expect_shape_error({{DType::kBool, {3}}, {DType::kInt32, {3}}}, "expected numbers, got bool(3)",
                     [](const Args& a) { return Args{scatter_add(a[0], a[1], a[0])}; });
}
TEST(TakeAlongAxis, OtherShapeThrows) {
  expect_shape_error({kTable, {DType::kInt32, {2, 1}}}, "expected indices of the shape (3, 2) but for axis 1",
                     [](const Args& a) { return Args{take_along_axis(a[0], a[1], 1)}; });
}
TEST(OneHot, FloatIndicesThrow) {
  expect_shape_error({kTable}, "expected integer indices",
                     [](const Args& a) { return Args{one_hot(a[0], 3, kF)}; });
}

}  // namespace
}  // namespace t5x::ops
