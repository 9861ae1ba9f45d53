#include "ops/grad_check_test_util.h"

namespace t5x::ops {
namespace {

constexpr DType kF = DType::kFloat32;

TEST(Matmul, FlattensLeadingAxes) {
  const Array y =
      evaluate_one({counting({2, 1, 2}), counting({2, 3})}, [](const Args& a) { return matmul(a[0], a[1]); });
  // [[0 1], [2 3]] x [[0 1 2], [3 4 5]]
  expect_values(y, kF, {2, 1, 3}, {3, 4, 5, 9, 14, 19});
}
TEST(Matmul, OfAVector) {
  const Array y =
      evaluate_one({floats({1, 2}), counting({2, 3})}, [](const Args& a) { return matmul(a[0], a[1]); });
  expect_values(y, kF, {3}, {6, 9, 12});
}
TEST(Matmul, PromotesToTheWiderFloat) {
  const Array y = evaluate_one({floats({1, 2}).cast(DType::kBFloat16), counting({2, 1})},
                               [](const Args& a) { return matmul(a[0], a[1]); });
  expect_values(y, kF, {1}, {2});
}
TEST(Matmul, WeightGradientIsARowMajorProduct) {
  for (const DType dtype : {kF, DType::kBFloat16}) {
    auto graph = trace({{dtype, {4, 8, 16}}, {dtype, {16, 32}}}, [](const Args& a) {
      const Tensor y = matmul(a[0], a[1]);
      return vjp({y}, {y}, {a[1]});
    });
    const std::string text = to_stablehlo(*graph);
    EXPECT_NE(text.find("optimization_barrier"), std::string::npos);
    EXPECT_EQ(text.find("lhs_contracting_dimensions = [0]"), std::string::npos) << text;
    EXPECT_EQ(text.find("rhs_contracting_dimensions = [1]"), std::string::npos) << text;
  }
}
TEST(Matmul, BFloat16InputGradientIsARowMajorProduct) {
  auto graph = trace({{DType::kBFloat16, {4, 16}}, {DType::kBFloat16, {16, 32}}}, [](const Args& a) {
    const Tensor y = matmul(a[0], a[1]);
    return vjp({y}, {y}, {a[0]});
  });
  EXPECT_EQ(to_stablehlo(*graph).find("rhs_contracting_dimensions = [1]"), std::string::npos);
}

TEST(DotGeneral, BatchesAndContracts) {
  // result[b, m, n] = sum_k lhs[m, b, k] rhs[b, k, n]
  const Array y = evaluate_one({counting({2, 2, 2}), counting({2, 2, 1})}, [](const Args& a) {
    return dot_general(a[0], a[1],
                       {.lhs_batch = {1}, .rhs_batch = {0}, .lhs_contracting = {2}, .rhs_contracting = {1}});
  });
  expect_values(y, kF, {2, 2, 1}, {1, 5, 13, 33});
}
TEST(DotGeneral, ResultDtypeOfItsOwn) {
  const Array y = evaluate_one({floats({256, 1}).cast(DType::kBFloat16)}, [](const Args& a) {
    return dot_general(a[0], full({DType::kBFloat16, {2}}, 1.0), {{}, {}, {0}, {0}}, DType::kFloat32);
  });
  expect_values(y, kF, {}, {257});
}

TEST(Einsum, MatchesLoops) {
  const Array a = random_array({2, 3, 2, 4}, 1), b = random_array({2, 5, 2, 4}, 2);
  const Array y = evaluate_one({a, b}, [](const Args& x) { return einsum("bqhd,bkhd->bhqk", x[0], x[1]); });
  const std::vector<double> va = numbers(a), vb = numbers(b);
  std::vector<double> expected;
  for (size_t n = 0; n < 2; ++n)
    for (size_t h = 0; h < 2; ++h)
      for (size_t q = 0; q < 3; ++q)
        for (size_t k = 0; k < 5; ++k) {
          double total = 0;
          for (size_t d = 0; d < 4; ++d)
            total += va[((n * 3 + q) * 2 + h) * 4 + d] * vb[((n * 5 + k) * 2 + h) * 4 + d];
          expected.push_back(total);
        }
  expect_values(y, DType::kFloat64, {2, 2, 3, 5}, expected, 1e-12);
}
TEST(Einsum, SumsIndicesThatOneOperandHas) {
  const Array y = evaluate_one({counting({2, 2}), counting({2, 2})},
                               [](const Args& a) { return einsum("ab,bc->c", a[0], a[1]); });
  // column sums (2, 4) times [[0 1], [2 3]]
  expect_values(y, kF, {2}, {8, 14});
}
TEST(Einsum, KernelOfSeveralAxesIsOneMatrixProduct) {
  auto graph = trace({{kF, {2, 3, 4, 5}}, {kF, {4, 5, 6}}},
                     [](const Args& a) { return Args{einsum("bqhd,hdm->bqm", a[0], a[1])}; });
  EXPECT_NE(to_stablehlo(*graph).find("(tensor<6x20xf32>, tensor<20x6xf32>)"), std::string::npos);
}

struct Product {
  const char* name;
  Shape a, b;
  Tensor (*f)(Tensor, Tensor);
};
void PrintTo(const Product& op, std::ostream* out) { *out << op.name; }
const std::vector<Product> kProducts{
    {"matmul", {2, 3, 4}, {4, 5}, matmul},
    {"matmul_vector", {4}, {4, 5}, matmul},
    {"no_batch",
     {2, 4, 3},
     {5, 4},
     [](Tensor a, Tensor b) {
       return dot_general(a, b, {{}, {}, {1}, {1}});
     }},
    {"outer", {2, 3}, {4}, [](Tensor a, Tensor b) { return dot_general(a, b, {}); }},
    {"batch_in_the_middle",
     {3, 2, 4},
     {4, 5, 2},
     [](Tensor a, Tensor b) {
       return dot_general(a, b, {{1}, {2}, {2}, {0}});
     }},
    // Contracting axes that the other operand has in another order.
    {"crossed",
     {2, 3, 4, 5},
     {5, 6, 3, 2},
     [](Tensor a, Tensor b) {
       return dot_general(a, b, {{0}, {3}, {1, 3}, {2, 0}});
     }},
    {"scores",
     {2, 3, 2, 4},
     {2, 5, 2, 4},
     [](Tensor a, Tensor b) { return einsum("bqhd,bkhd->bhqk", a, b); }},
    {"values",
     {2, 2, 3, 5},
     {2, 5, 2, 4},
     [](Tensor a, Tensor b) { return einsum("bhqk,bkhd->bqhd", a, b); }},
    {"dense", {2, 3, 2, 4}, {2, 4, 5}, [](Tensor a, Tensor b) { return einsum("bqhd,hdm->bqm", a, b); }},
    {"transposed", {2, 3}, {4, 3}, [](Tensor a, Tensor b) { return einsum("ab,cb->ca", a, b); }},
};
class ProductGradient : public testing::TestWithParam<Product> {};
TEST_P(ProductGradient, MatchesDifferences) {
  const Product& op = GetParam();
  check_gradients({random_array(op.a, 1), random_array(op.b, 2)},
                  [&](const Args& a) { return Args{op.f(a[0], a[1])}; });
}
INSTANTIATE_TEST_SUITE_P(Ops, ProductGradient, testing::ValuesIn(kProducts),
                         [](const auto& tested) { return tested.param.name; });
TEST(ProductGradient, SecondOrder) {
  check_second_gradients({random_array({2, 3}, 1), random_array({3, 2}, 2)}, [](const Args& a) {
    return Args{square(matmul(a[0], a[1])), einsum("ab,bc->ca", a[0], a[1])};
  });
}
TEST(ProductGradient, BFloat16KeepsItsDtype) {
  const auto out = evaluate({counting({2, 2}).cast(DType::kBFloat16)}, [](const Args& a) {
    const Tensor y = matmul(a[0], a[0]);
    const Tensor z = dot_general(a[0], a[0], {{}, {}, {1}, {0}}, kF);
    return Args{vjp({y}, {full(y.type(), 1.0)}, {a[0]})[0], vjp({z}, {full(z.type(), 1.0)}, {a[0]})[0]};
  });
  // x = [[0 1], [2 3]]: row sums (1, 5) along each row, plus column sums (2, 4) along each column.
  expect_values(out[0], DType::kBFloat16, {2, 2}, {3, 7, 5, 9});
  expect_values(out[1], DType::kBFloat16, {2, 2}, {3, 7, 5, 9});
}

void expect_dot_error(const std::string& words, const DotDims& dims) {
  expect_shape_error({{kF, {2, 3, 4}}, {kF, {2, 4, 5}}}, words,
                     [&](const Args& a) { return Args{dot_general(a[0], a[1], dims)}; });
}
TEST(DotGeneral, ContractingSizesThatDifferThrow) {
  expect_dot_error("contracting axes 1 and 1 differ in size: 3 and 4", {{0}, {0}, {1}, {1}});
}
TEST(DotGeneral, BatchSizesThatDifferThrow) {
  expect_dot_error("batch axes 0 and 2 differ in size", {{0}, {2}, {2}, {1}});
}
TEST(DotGeneral, AxesInNumberThatDifferThrow) {
  expect_dot_error("as many contracting axes left as right", {{0}, {0}, {2}, {}});
}
TEST(DotGeneral, AxisNamedTwiceThrows) { expect_dot_error("expected distinct axes", {{0}, {0}, {0}, {0}}); }
TEST(DotGeneral, AxisOutOfRangeThrows) {
  expect_dot_error("expected distinct axes of the left operand (2, 3, 4) below 3", {{0}, {0}, {3}, {1}});
}
TEST(DotGeneral, BoolsThrow) {
  expect_shape_error({{DType::kBool, {2}}}, "expected two integer or two float operands", [](const Args& a) {
    return Args{dot_general(a[0], a[0], {{}, {}, {0}, {0}})};
  });
}
TEST(Matmul, DepthsThatDifferThrow) {
  expect_shape_error({{kF, {2, 3}}, {kF, {4, 5}}}, "expected [..., k] times [k, n], got float32(2, 3)",
                     [](const Args& a) { return Args{matmul(a[0], a[1])}; });
}
void expect_einsum_error(const std::string& words, const std::string& equation) {
  expect_shape_error({{kF, {2, 3}}, {kF, {4, 5}}}, words,
                     [&](const Args& a) { return Args{einsum(equation, a[0], a[1])}; });
}
TEST(Einsum, SizesThatDifferThrow) {
  expect_einsum_error("index 'b' of 'ab,bc->ac' has size 3", "ab,bc->ac");
}
TEST(Einsum, IndexNamedTwiceThrows) { expect_einsum_error("index 'a' comes twice", "aa,bc->ac"); }
TEST(Einsum, UnknownResultIndexThrows) { expect_einsum_error("index 'z' of the result", "ab,cd->az"); }
TEST(Einsum, WrongRankThrows) { expect_einsum_error("'abc' of 'abc,de->ad' names 3 indices", "abc,de->ad"); }
TEST(Einsum, MissingArrowThrows) { expect_einsum_error("expected an equation of two operands", "ab,bc"); }
TEST(Einsum, OtherSignsThrow) { expect_einsum_error("expected letters as indices", "a.,bc->ac"); }

}  // namespace
}  // namespace t5x::ops
