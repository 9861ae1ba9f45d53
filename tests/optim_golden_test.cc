// One step of Adafactor against t5x's own: tests/golden/optim.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "optim/adafactor.h"
#include "optim/testing.h"

namespace t5x::optim {
namespace {

const std::map<std::string, std::vector<std::string>> kAxes = {
    {"decoder/relpos_bias/rel_embedding", {"heads", "relpos_buckets"}},
    {"decoder/decoder_norm/scale", {"embed"}},
    {"encoder/layers_1/attention/query/kernel", {"embed", "joined_kv"}},
    {"decoder/layers_0/mlp/wo/kernel", {"mlp", "embed"}},
    {"token_embedder/embedding", {"vocab", "embed"}},
};

void expect_near(const Array& got, const Array& want, double relative, const std::string& what) {
  const auto a = got.values<float>(), b = want.values<float>();
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], relative * std::abs(b[i]) + 1e-12) << what << i;
}

// The order of sums and multiplications differs from t5x's, so the last bits do: 1e-6 relative.
TEST(AdafactorGolden, FirstStepEqualsT5x) {
  auto golden = checkpoint::read_safetensors(T5X_SOURCE_DIR "/tests/golden/optim/t5_tiny_step1.safetensors");
  AdafactorHyperParams hp;
  hp.logical_factor_rules = standard_logical_factor_rules();
  const Adafactor adafactor(hp);
  ParamInfos infos;
  ArrayMap params, grads;
  for (const auto& [path, axes] : kAxes) {
    params.emplace(path, golden.at("params/" + path));
    grads.emplace(path, golden.at("grad/" + path));
    infos[path] = {{DType::kFloat32, params.at(path).shape()}, axes};
  }
  const HostUpdate got = run_update(adafactor, infos, 0, 0.001, grads, params, zero_state(adafactor, infos));
  for (const auto& [path, axes] : kAxes) {
    expect_near(got.params.at(path), golden.at("step1/params/" + path), 1e-6, path);
    expect_near(got.state.at(path + "/v"), golden.at("step1/state/" + path + "/v"), 1e-6, path + "/v");
  }
}

}  // namespace
}  // namespace t5x::optim
