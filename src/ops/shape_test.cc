#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kF = DType::kFloat32;
const TensorType kMatrix{kF, {2, 3}};

TEST(Shape, MovesElements) {
  const auto out = evaluate({counting({2, 3})}, [](const Args& a) {
    const Tensor x = a[0];
    return Args{reshape(x, {3, -1}),
                broadcast_in_dim(x, {2, 2, 3}, {0, 2}),
                transpose(x, {1, 0}),
                slice(x, {0, 0}, {2, 3}, {1, 2}),
                slice_in_dim(x, 1, 3, -1),
                pad(x, 9, {0, 1}, {1, -1}),
                pad(slice_in_dim(x, 0, 1, 0), 9, {0, 0}, {0, 0}, {0, 1}),
                concatenate({x, slice_in_dim(x, 0, 1, 1)}, 1),
                reverse(x, {1}),
                squeeze(expand_dims(x, 1), 1)};
  });
  expect_values(out[0], kF, {3, 2}, {0, 1, 2, 3, 4, 5});
  expect_values(out[1], kF, {2, 2, 3}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  expect_values(out[2], kF, {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_values(out[3], kF, {2, 2}, {0, 2, 3, 5});
  expect_values(out[4], kF, {2, 2}, {1, 2, 4, 5});
  expect_values(out[5], kF, {3, 3}, {9, 0, 1, 9, 3, 4, 9, 9, 9});
  expect_values(out[6], kF, {1, 5}, {0, 9, 1, 9, 2});
  expect_values(out[7], kF, {2, 4}, {0, 1, 2, 0, 3, 4, 5, 3});
  expect_values(out[8], kF, {2, 3}, {2, 1, 0, 5, 4, 3});
  expect_values(out[9], kF, {2, 3}, {0, 1, 2, 3, 4, 5});
}
TEST(Iota, CountsAlongTheAxis) {
  const auto out = evaluate({}, [](const Args&) {
    return Args{iota(DType::kInt32, {2, 3}, 1), iota(kF, {2, 2}, -2), arange(DType::kUInt32, 3)};
  });
  expect_values(out[0], DType::kInt32, {2, 3}, {0, 1, 2, 0, 1, 2});
  expect_values(out[1], kF, {2, 2}, {0, 0, 1, 1});
  expect_values(out[2], DType::kUInt32, {3}, {0, 1, 2});
}
TEST(ExpandDims, CountsFromTheEnd) {
  trace({kMatrix}, [](const Args& a) {
    EXPECT_EQ(expand_dims(a[0], -1).shape(), Shape({2, 3, 1}));
    EXPECT_EQ(expand_dims(a[0], 0).shape(), Shape({1, 2, 3}));
    return a;
  });
}
TEST(DynamicSlice, ClampsTheStart) {
  const auto out = evaluate({counting({2, 3}), ints({5}, {})}, [](const Args& a) {
    return Args{dynamic_slice_in_dim(a[0], a[1], 2, 1), dynamic_slice(a[0], {a[1], a[1]}, {1, 1})};
  });
  expect_values(out[0], kF, {2, 2}, {1, 2, 4, 5});
  expect_values(out[1], kF, {1, 1}, {5});
}
TEST(DynamicSlice, TakesIndicesOfSeveralDtypes) {
  const Array y = evaluate_one({counting({2, 3}), ints({1}, {})}, [](const Args& a) {
    return dynamic_slice(a[0], {a[1], convert(a[1], DType::kInt64)}, {1, 2});
  });
  expect_values(y, kF, {1, 2}, {4, 5});
}
TEST(DynamicUpdateSlice, Overwrites) {
  const Array y = evaluate_one({counting({2, 3}), floats({7, 8}, {2, 1}), ints({1}, {})}, [](const Args& a) {
    return dynamic_update_slice_in_dim(a[0], a[1], a[2], -1);
  });
  expect_values(y, kF, {2, 3}, {0, 7, 2, 3, 8, 5});
}

struct Move {
  const char* name;
  Tensor (*f)(Tensor);
};
void PrintTo(const Move& move, std::ostream* out) { *out << move.name; }
class ShapeGradient : public testing::TestWithParam<Move> {};
TEST_P(ShapeGradient, MatchesDifferences) {
  check_gradients({random_array({3, 1, 5}, 1)}, [](const Args& a) { return Args{GetParam().f(a[0])}; });
}
Tensor one() { return full({DType::kInt32, {}}, 1.0); }
Tensor zero() { return full({DType::kInt32, {}}, 0.0); }
INSTANTIATE_TEST_SUITE_P(
    Ops, ShapeGradient,
    testing::ValuesIn(std::vector<Move>{
        {"reshape",
         [](Tensor x) {
           return reshape(x, {5, 3});
         }},
        {"broadcast",
         [](Tensor x) {
           return broadcast_in_dim(x, {3, 2, 4, 5}, {0, 2, 3});
         }},
        {"broadcast_to",
         [](Tensor x) {
           return broadcast_to(x, {2, 3, 4, 5});
         }},
        {"transpose",
         [](Tensor x) {
           return transpose(x, {2, 0, 1});
         }},
        {"slice",
         [](Tensor x) {
           return slice(x, {1, 0, 0}, {3, 1, 4}, {1, 1, 2});
         }},
        {"slice_stride",
         [](Tensor x) {
           return slice(x, {0, 0, 1}, {3, 1, 5}, {2, 1, 3});
         }},
        {"pad",
         [](Tensor x) {
           return pad(x, 2.0, {1, 0, -1}, {0, 2, -2}, {2, 1, 1});
         }},
        {"concatenate",
         [](Tensor x) {
           return concatenate({x, 2.0 * slice_in_dim(x, 1, 3, 2), x}, 2);
         }},
        {"reverse",
         [](Tensor x) {
           return reverse(x, {0, 2});
         }},
        {"dynamic_slice",
         [](Tensor x) {
           return dynamic_slice(x, {one(), zero(), one()}, {2, 1, 3});
         }},
        {"dynamic_slice_clamped",
         [](Tensor x) {
           return dynamic_slice(x, {one(), one(), one()}, {3, 1, 3});
         }},
        {"dynamic_update_slice",
         [](Tensor x) {
           return dynamic_update_slice(square(x), slice(x, {0, 0, 0}, {2, 1, 2}), {one(), zero(), one()});
         }}}),
    [](const auto& tested) { return tested.param.name; });
TEST(ShapeGradient, SecondOrder) {
  check_second_gradients({random_array({3, 4}, 1)}, [](const Args& a) {
    const Tensor y = pad(slice(square(a[0]), {0, 1}, {3, 4}, {2, 1}), 0.0, {1, 0}, {0, 1});
    return Args{square(transpose(y, {1, 0}))};
  });
}

// One per rule.
using Body = Tensor (*)(Tensor);
void expect_error(const std::string& words, Body body) {
  expect_shape_error({kMatrix}, words, [body](const Args& a) { return Args{body(a[0])}; });
}
TEST(Reshape, OtherSizeThrows) {
  expect_error("expected a shape of 6 elements, got (4) of 4", [](Tensor x) { return reshape(x, {4}); });
}
TEST(Reshape, UnknownDimensionThatDoesNotDivideThrows) {
  expect_error("cannot tell the -1 in [4, -1]", [](Tensor x) { return reshape(x, {4, -1}); });
}
TEST(Reshape, TwoUnknownDimensionsThrow) {
  expect_error("cannot tell the -1", [](Tensor x) { return reshape(x, {-1, -1}); });
}
TEST(BroadcastInDim, MissingAxisThrows) {
  expect_error("got 1 values", [](Tensor x) { return broadcast_in_dim(x, {2, 3}, {0}); });
}
TEST(BroadcastInDim, AxesOutOfOrderThrow) {
  expect_error("expected ascending axes", [](Tensor x) { return broadcast_in_dim(x, {3, 2}, {1, 0}); });
}
TEST(BroadcastInDim, AxisOutOfRangeThrows) {
  expect_error("expected ascending axes of (2, 3), got [0, 2]", [](Tensor x) {
    return broadcast_in_dim(x, {2, 3}, {0, 2});
  });
}
TEST(BroadcastInDim, SizeThatCannotStretchThrows) {
  expect_error("only size 1 can", [](Tensor x) { return broadcast_in_dim(x, {2, 6}, {0, 1}); });
}
TEST(BroadcastTo, FewerAxesThrow) {
  expect_error("has more axes than (3)", [](Tensor x) { return broadcast_to(x, {3}); });
}
TEST(Transpose, NoPermutationThrows) {
  expect_error("expected a permutation of the 2 axes, got [0, 0]", [](Tensor x) {
    return transpose(x, {0, 0});
  });
}
TEST(ExpandDims, AxisOutOfRangeThrows) {
  expect_error("between -3 and 2, got 3", [](Tensor x) { return expand_dims(x, 3); });
}
TEST(Squeeze, AxisOfOtherSizeThrows) {
  expect_error("is not of size 1", [](Tensor x) { return squeeze(x, 1); });
}
TEST(Slice, LimitBeyondTheEndThrows) {
  expect_error("limit <= 3 on axis 1, got start 0 and limit 4", [](Tensor x) {
    return slice(x, {0, 0}, {2, 4});
  });
}
TEST(Slice, StartBehindTheLimitThrows) {
  expect_error("got start 2 and limit 1", [](Tensor x) { return slice(x, {2, 0}, {1, 3}); });
}
TEST(Slice, StrideOfZeroThrows) {
  expect_error("expected a stride of 1 or more", [](Tensor x) { return slice(x, {0, 0}, {2, 3}, {0, 1}); });
}
TEST(Slice, MissingAxisThrows) {
  expect_error("expected the start of each axis", [](Tensor x) { return slice(x, {0}, {2, 3}); });
}
TEST(Pad, RemovingMoreThanThereIsThrows) {
  expect_error("removes more than axis 0", [](Tensor x) { return pad(x, 0, {-2, 0}, {-1, 0}); });
}
TEST(Pad, NegativeInteriorThrows) {
  expect_error("interior padding of 0 or more", [](Tensor x) { return pad(x, 0, {0, 0}, {0, 0}, {-1, 0}); });
}
TEST(Concatenate, OtherShapeThrows) {
  expect_error("differ along axis 0 only", [](Tensor x) {
    return concatenate({x, transpose(x, {1, 0})}, 0);
  });
}
TEST(Concatenate, NothingThrows) {
  expect_error("expected one part or more", [](Tensor) { return concatenate({}, 0); });
}
TEST(Reverse, AxisNamedTwiceThrows) {
  expect_error("named twice", [](Tensor x) { return reverse(x, {1, -1}); });
}
TEST(Iota, AxisOutOfRangeThrows) {
  expect_error("axis 1 is out of range", [](Tensor) { return iota(DType::kInt32, {3}, 1); });
}
TEST(DynamicSlice, MissingStartThrows) {
  expect_error("expected a start index for each axis of (2, 3), got 1", [](Tensor x) {
    return dynamic_slice(x, {one()}, {1, 1});
  });
}
TEST(DynamicSlice, StartThatIsNoIntegerScalarThrows) {
  expect_error("expected integer scalars as start indices, got float32(2, 3)", [](Tensor x) {
    return dynamic_slice(x, {x, x}, {1, 1});
  });
}
TEST(DynamicSlice, SliceTooLongThrows) {
  expect_error("size 0 to 3 on axis 1, got 4", [](Tensor x) { return dynamic_slice_in_dim(x, one(), 4, 1); });
}
TEST(DynamicUpdateSlice, UpdateTooLongThrows) {
  expect_error("size 4 on axis 1, more than the 3", [](Tensor x) {
    return dynamic_update_slice_in_dim(x, zeros({kF, {2, 4}}), one(), 1);
  });
}
TEST(DynamicUpdateSlice, UpdateOfOtherDtypeThrows) {
  expect_error("expected an update of dtype float32 and rank 2", [](Tensor x) {
    return dynamic_update_slice_in_dim(x, zeros({DType::kInt32, {2, 3}}), one(), 1);
  });
}

}  // namespace
}  // namespace t5x::ops
