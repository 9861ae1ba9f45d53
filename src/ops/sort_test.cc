#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kF = DType::kFloat32;

TEST(Sort, CarriesOthersAlongAndIsStable) {
  const auto out = evaluate({floats({3, 1, 3, 2}), ints({0, 1, 2, 3})}, [](const Args& a) {
    Args both = sort({a[0], a[1]}, 0);
    const Args down = sort({a[0], a[1]}, -1, true);
    both.insert(both.end(), down.begin(), down.end());
    return both;
  });
  expect_values(out[0], kF, {4}, {1, 2, 3, 3});
  expect_values(out[1], DType::kInt32, {4}, {1, 3, 0, 2});
  expect_values(out[2], kF, {4}, {3, 3, 2, 1});
  expect_values(out[3], DType::kInt32, {4}, {0, 2, 3, 1});
}
TEST(Sort, IntegersBySign) {
  const auto out = evaluate({ints({2, -1, 0})}, [](const Args& a) {
    return Args{sort({a[0]}, 0)[0], sort({bitcast_convert(a[0], DType::kUInt32)}, 0)[0]};
  });
  expect_values(out[0], DType::kInt32, {3}, {-1, 0, 2});
  expect_values(out[1], DType::kUInt32, {3}, {0, 2, 4294967295.0});
}
TEST(Sort, NaNIsLargestAndZerosAreEqual) {
  const auto out =
      evaluate({floats({NAN, 0.0, -0.0, -INFINITY, INFINITY}), ints({0, 1, 2, 3, 4})}, [](const Args& a) {
        return sort({a[0], a[1]}, 0);
      });
  expect_values(out[0], kF, {5}, {-INFINITY, 0, 0, INFINITY, NAN});
  expect_values(out[1], DType::kInt32, {5}, {3, 1, 2, 4, 0});
}
TEST(Sort, AlongAnAxis) {
  const Array y =
      evaluate_one({floats({3, 1, 2, 4}, {2, 2})}, [](const Args& a) { return sort({a[0]}, 0)[0]; });
  expect_values(y, kF, {2, 2}, {2, 1, 3, 4});
}
TEST(TopK, LargestFirstTiesByLowerIndex) {
  const auto out = evaluate({floats({1, 3, 3, 2, 5, 5, 5, 4}, {2, 4})}, [](const Args& a) {
    const auto [values, indices] = top_k(a[0], 2);
    const auto whole = top_k(convert(a[0], DType::kInt32), 4);
    return Args{values, indices, whole.first, whole.second};
  });
  expect_values(out[0], kF, {2, 2}, {3, 3, 5, 5});
  expect_values(out[1], DType::kInt32, {2, 2}, {1, 2, 0, 1});
  expect_values(out[2], DType::kInt32, {2, 4}, {3, 3, 2, 1, 5, 5, 5, 4});
  expect_values(out[3], DType::kInt32, {2, 4}, {1, 2, 3, 0, 0, 1, 2, 3});
}

TEST(SortGradient, SortedAndCarried) {
  check_gradients({random_array({3, 4}, 1), random_array({3, 4}, 2)}, [](const Args& a) {
    Args outputs = sort({a[0], a[1]}, 0);
    const Args down = sort({a[0], a[1]}, 1, true);
    outputs.insert(outputs.end(), down.begin(), down.end());
    return outputs;
  });
}
TEST(SortGradient, TopK) {
  check_gradients({random_array({2, 3, 4}, 1)}, [](const Args& a) { return Args{top_k(a[0], 2).first}; });
}
TEST(SortGradient, SecondOrder) {
  check_second_gradients({random_array({3, 4}, 1)}, [](const Args& a) {
    return Args{square(top_k(a[0], 2).first), square(sort({a[0]}, 1)[0])};
  });
}

const TensorType kMatrix{kF, {2, 3}};
TEST(Sort, OperandsOfOtherShapeThrow) {
  expect_shape_error({kMatrix, {kF, {3, 2}}}, "expected operands of one shape", [](const Args& a) {
    return sort({a[0], a[1]}, 0);
  });
}
TEST(Sort, NothingThrows) {
  expect_shape_error({kMatrix}, "expected one operand or more", [](const Args&) { return sort({}, 0); });
}
TEST(TopK, MoreThanThereAreThrows) {
  expect_shape_error({kMatrix}, "got k = 4 of float32(2, 3)",
                     [](const Args& a) { return Args{top_k(a[0], 4).first}; });
}
TEST(TopK, ZeroThrows) {
  expect_shape_error({kMatrix}, "expected k between 1",
                     [](const Args& a) { return Args{top_k(a[0], 0).first}; });
}

}  // namespace
}  // namespace t5x::ops
