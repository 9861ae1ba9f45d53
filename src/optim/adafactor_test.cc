#include "optim/adafactor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "optim/testing.h"

namespace t5x::optim {
namespace {

Array random_array(const Shape& shape, uint32_t seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  Array array = Array::uninitialized(DType::kFloat32, shape);
  for (float& x : array.values<float>()) x = normal(generator);
  return array;
}

// Adafactor in double on the host, element by element, for one parameter seen as [row, batch, column]: what
// every factored case reduces to once axes are grouped. Without rows only `v` is used.
struct HostAdafactor {
  int64_t rows, batches, columns;
  bool factored;
  std::vector<double> v, v_row, v_col, m, w;

  HostAdafactor(int64_t r, int64_t b, int64_t c, bool factor, const Array& param)
      : rows(r), batches(b), columns(c), factored(factor) {
    const auto size = static_cast<size_t>(r * b * c);
    v.assign(size, 0);
    m.assign(size, 0);
    v_row.assign(static_cast<size_t>(r * b), 0);
    v_col.assign(static_cast<size_t>(b * c), 0);
    for (float x : param.values<float>()) w.push_back(x);
  }

  size_t at(int64_t i, int64_t b, int64_t j) const {
    return static_cast<size_t>((i * batches + b) * columns + j);
  }

  void step(int64_t t, double lr, const Array& grad, const AdafactorHyperParams& hp) {
    const auto g = grad.values<float>();
    const double beta = 1.0 - std::pow(static_cast<double>(t - hp.step_offset) + 1.0, -hp.decay_rate);
    const double count = static_cast<double>(rows * columns);
    for (int64_t b = 0; b < batches; ++b) {
      double scale = 0, row_mean = 0, y_square = 0;
      auto each = [&](auto&& f) {
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) f(i, j, at(i, b, j));
      };
      auto row = [&](int64_t i) -> double& { return v_row[static_cast<size_t>(i * batches + b)]; };
      auto col = [&](int64_t j) -> double& { return v_col[static_cast<size_t>(b * columns + j)]; };
      each([&](int64_t, int64_t, size_t e) { scale += w[e] * w[e] / count; });
      scale = std::max(std::sqrt(scale), hp.epsilon2);
      if (hp.max_parameter_scale) scale = std::min(scale, *hp.max_parameter_scale);
      if (!std::get<bool>(hp.multiply_by_parameter_scale)) scale = 1;
      for (int64_t i = 0; i < rows; ++i) row(i) *= beta;
      for (int64_t j = 0; j < columns; ++j) col(j) *= beta;
      each([&](int64_t i, int64_t j, size_t e) {
        const double g2 = static_cast<double>(g[e]) * g[e] + hp.epsilon1;
        row(i) += (1 - beta) * g2 / static_cast<double>(columns);
        col(j) += (1 - beta) * g2 / static_cast<double>(rows);
        v[e] = beta * v[e] + (1 - beta) * g2;
      });
      for (int64_t i = 0; i < rows; ++i) row_mean += row(i) / static_cast<double>(rows);
      auto y = [&](int64_t i, int64_t j, size_t e) {
        return g[e] / std::sqrt(factored ? row(i) * col(j) / row_mean : v[e]);
      };
      each([&](int64_t i, int64_t j, size_t e) { y_square += y(i, j, e) * y(i, j, e) / count; });
      double clip = 1;
      if (hp.clipping_threshold) clip = std::max(1.0, std::sqrt(y_square) / *hp.clipping_threshold);
      each([&](int64_t i, int64_t j, size_t e) {
        double u = lr * scale * y(i, j, e) / clip;
        if (hp.beta1) u = m[e] = *hp.beta1 * m[e] + (1 - *hp.beta1) * u;
        double decay = hp.weight_decay_rate.value_or(0);
        if (hp.weight_decay_rate_lr_exponent) {
          decay = hp.weight_decay_rate.value_or(1) * std::pow(lr, *hp.weight_decay_rate_lr_exponent);
        }
        w[e] = (1 - decay) * w[e] - u;
      });
    }
  }
};

struct Case {
  std::string name;
  Shape shape;
  std::vector<std::string> axes;
  int64_t rows, batches, columns;  // the shape, grouped
  bool factored;
  AdafactorHyperParams hp = {};
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"Vector", {96}, {"embed"}, 96, 1, 1, false},
      {"SmallMatrix", {16, 40}, {"embed", "mlp"}, 16, 1, 40, false},
      {"Matrix", {128, 160}, {"embed", "mlp"}, 128, 1, 160, true},
      {"ScannedMatrix", {12, 3, 20}, {"embed", "layers", "mlp"}, 12, 3, 20, true},
      {"ScannedHeads", {12, 2, 4, 5}, {"embed", "layers", "heads", "kv"}, 12, 2, 20, true},
      {"ScannedVector", {12, 3}, {"embed", "layers"}, 12, 3, 1, false},
  };
  auto variant = [&](const std::string& name, auto&& change) {
    Case c = all[3];
    c.name = name;
    change(c.hp);
    all.push_back(c);
  };
  variant("Momentum", [](auto& hp) { hp.beta1 = 0.9; });
  variant("WeightDecay", [](auto& hp) { hp.weight_decay_rate = 0.01; });
  variant("WeightDecayByLearningRate", [](auto& hp) { hp.weight_decay_rate_lr_exponent = 2.0; });
  variant("NoClipping", [](auto& hp) { hp.clipping_threshold = std::nullopt; });
  variant("ClippingThreshold", [](auto& hp) { hp.clipping_threshold = 0.5; });
  variant("AbsoluteSteps", [](auto& hp) { hp.multiply_by_parameter_scale = false; });
  variant("MaxParameterScale", [](auto& hp) { hp.max_parameter_scale = 0.01; });
  variant("DecayRateAndOffset", [](auto& hp) {
    hp.decay_rate = 0.5;
    hp.step_offset = -7;
  });
  return all;
}

class AdafactorSteps : public testing::TestWithParam<Case> {};

// Three steps with growing gradients, so that clipping acts; float32 sums against double ones: 1e-5 relative.
TEST_P(AdafactorSteps, EqualTheFormulaInDouble) {
  const Case& c = GetParam();
  AdafactorHyperParams hp = c.hp;
  hp.logical_factor_rules = standard_logical_factor_rules();
  const Adafactor adafactor(hp);
  const ParamInfos infos = {{"w", {{DType::kFloat32, c.shape}, c.axes}}};
  HostUpdate got{.params = {{"w", random_array(c.shape, 1, 0.1f)}}, .state = zero_state(adafactor, infos)};
  HostAdafactor want(c.rows, c.batches, c.columns, c.factored, got.params.at("w"));
  const double lr = 0.03;
  for (int32_t step = 0; step < 3; ++step) {
    const Array grad =
        random_array(c.shape, 10 + static_cast<uint32_t>(step), 0.01f * static_cast<float>(1 + step * step));
    got = run_update(adafactor, infos, step, lr, {{"w", grad}}, got.params, got.state);
    want.step(step, lr, grad, hp);
  }
  const auto w = got.params.at("w").values<float>();
  for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(w[i], want.w[i], 1e-5 * std::abs(want.w[i]) + 1e-7) << i;
  auto near = [&](const std::string& slot, const std::vector<double>& values) {
    const auto v = got.state.at("w/" + slot).values<float>();
    ASSERT_EQ(v.size(), values.size()) << slot;
    for (size_t i = 0; i < v.size(); ++i)
      ASSERT_NEAR(v[i], values[i], 1e-5 * std::abs(values[i]) + 1e-9) << slot << i;
  };
  if (c.factored) {
    near("v_row", want.v_row);
    near("v_col", want.v_col);
    near("v", {0.0});
  } else {
    near("v", want.v);
    near("v_row", {0.0});
  }
  near("m", hp.beta1 ? want.m : std::vector<double>{0.0});
}

INSTANTIATE_TEST_SUITE_P(Cases, AdafactorSteps, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

const ParamInfos kVector = {{"w", {{DType::kFloat32, {4}}, {"embed"}}}};

Array vector_of(std::vector<float> values) {
  return Array::from<float>(values, {static_cast<int64_t>(values.size())});
}

TEST(Adafactor, SkipNanUpdatesKeepsTheElement) {
  AdafactorHyperParams hp;
  hp.skip_nan_updates = true;
  hp.clipping_threshold = std::nullopt;  // its RMS would spread the NaN
  const Adafactor adafactor(hp);
  const ArrayMap params = {{"w", vector_of({1, 2, 3, 4})}};
  const ArrayMap grads = {{"w", vector_of({1, std::numeric_limits<float>::quiet_NaN(), 1, 1})}};
  const HostUpdate got =
      run_update(adafactor, kVector, 0, 0.1, grads, params, zero_state(adafactor, kVector));
  EXPECT_EQ(got.params.at("w").values<float>()[1], 2.0f);
  EXPECT_EQ(got.state.at("w/v").values<float>()[1], 0.0f);
  EXPECT_LT(got.params.at("w").values<float>()[0], 1.0f);
}

TEST(Adafactor, BFloat16ParametersStayBFloat16) {
  const Adafactor adafactor(AdafactorHyperParams{});
  const ParamInfos infos = {{"w", {{DType::kBFloat16, {4}}, {"embed"}}}};
  const ArrayMap params = {{"w", vector_of({1, 2, 3, 4}).cast(DType::kBFloat16)}};
  const ArrayMap grads = {{"w", vector_of({1, 1, 1, 1}).cast(DType::kBFloat16)}};
  const HostUpdate got = run_update(adafactor, infos, 0, 0.1, grads, params, zero_state(adafactor, infos));
  EXPECT_EQ(got.params.at("w").dtype(), DType::kBFloat16);
  EXPECT_EQ(got.state.at("w/v").dtype(), DType::kFloat32);
}

TEST(Adafactor, GradientOfZeroLeavesTheParameter) {
  const Adafactor adafactor(AdafactorHyperParams{});
  const ArrayMap params = {{"w", vector_of({1, 2, 3, 4})}};
  const HostUpdate got = run_update(adafactor, kVector, 0, 0.1, {{"w", vector_of({0, 0, 0, 0})}}, params,
                                    zero_state(adafactor, kVector));
  EXPECT_TRUE(got.params.at("w").identical(params.at("w")));
}

TEST(Adafactor, OwnLearningRateWhereNoneIsGiven) {
  AdafactorHyperParams hp;
  hp.learning_rate = 0.1;
  const Adafactor adafactor(hp);
  const ArrayMap params = {{"w", vector_of({1, 2, 3, 4})}}, grads = {{"w", vector_of({1, 1, 1, 1})}};
  const ArrayMap state = zero_state(adafactor, kVector);
  const HostUpdate own = run_update(adafactor, kVector, 0, -1, grads, params, state);
  const HostUpdate given = run_update(adafactor, kVector, 0, 0.1, grads, params, state);
  EXPECT_TRUE(own.params.at("w").identical(given.params.at("w")));
}

TEST(Adafactor, NoLearningRateThrows) {
  const Adafactor adafactor(AdafactorHyperParams{});
  const ArrayMap one = {{"w", vector_of({1, 1, 1, 1})}};
  EXPECT_THROW(run_update(adafactor, kVector, 0, -1, one, one, zero_state(adafactor, kVector)), ConfigError);
}

TEST(Adafactor, MissingGradientThrows) {
  const Adafactor adafactor(AdafactorHyperParams{});
  const ArrayMap one = {{"w", vector_of({1, 1, 1, 1})}};
  EXPECT_THROW(run_update(adafactor, kVector, 0, 0.1, {}, one, zero_state(adafactor, kVector)),
               InternalError);
}

TEST(Adafactor, FactorMapWithoutFactoringThrows) {
  AdafactorHyperParams hp;
  hp.factored = false;
  hp.factor_map = HParamMap<FactorRule>({{".*", HeuristicRule{}}});
  EXPECT_THROW(Adafactor{hp}, ConfigError);
}

TEST(GlobalNorm, ClipsToTheThreshold) {
  auto graph = trace({{DType::kFloat32, {2}}, {DType::kFloat32, {}}}, [](const std::vector<Tensor>& args) {
    const TensorMap clipped = clip_by_global_norm({{"a", args[0]}, {"b", args[1]}}, 2.0);
    return std::vector<Tensor>{clipped.at("a"), clipped.at("b"), global_norm(clipped)};
  });
  const auto out = run(*graph, {vector_of({2, 4}), Array::scalar<float>(4)});  // norm 6
  EXPECT_NEAR(out[0].values<float>()[1], 4.0f / 3.0f, 1e-6);
  EXPECT_NEAR(out[2].item<float>(), 2.0f, 1e-6);
}

TEST(GlobalNorm, SmallGradientsStay) {
  auto graph = trace({{DType::kFloat32, {2}}}, [](const std::vector<Tensor>& args) {
    return std::vector<Tensor>{clip_by_global_norm({{"a", args[0]}}, 8.0).at("a")};
  });
  const Array zero = vector_of({0, 0});
  EXPECT_TRUE(run(*graph, {zero})[0].identical(zero));
  EXPECT_NEAR(run(*graph, {vector_of({2, 4})})[0].values<float>()[1], 4.0f, 1e-6);
}

}  // namespace
}  // namespace t5x::optim
