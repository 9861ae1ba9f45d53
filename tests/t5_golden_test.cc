// T5 against t5x: initial parameters, logits, losses, gradients, Adafactor and decoding, from
// tests/golden/t5x.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "decode/predict.h"
#include "graph/basic.h"
#include "graph/grad.h"
#include "graph/stablehlo.h"
#include "models/encoder_decoder.h"
#include "ops/ops.h"
#include "optim/adafactor.h"
#include "runtime/run.h"

namespace t5x {
namespace {

using Arrays = std::map<std::string, Array>;

const fs::path kGolden = fs::path(T5X_SOURCE_DIR) / "tests/golden/t5x";

Arrays load(const std::string& file) { return checkpoint::read_safetensors(kGolden / file); }

Arrays below(const Arrays& all, const std::string& prefix) {
  Arrays out;
  for (const auto& [name, array] : all) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = array;
  }
  return out;
}

models::T5Config tiny() {
  return {.vocab_size = 128,
          .emb_dim = 64,
          .num_heads = 4,
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .head_dim = 16,
          .mlp_dim = 128,
          .mlp_activations = {"gelu", "linear"},
          .dropout_rate = 0.0};
}

models::T5Config fact() {
  models::T5Config config = tiny();
  config.vocab_size = 384;
  config.emb_dim = 128;
  config.head_dim = 32;
  config.mlp_dim = 256;
  config.num_encoder_layers = config.num_decoder_layers = 1;
  return config;
}

// `function` traced over arrays of the types of `inputs` and compiled: from arrays to results, by name.
using NamedFunction = std::function<Arrays(const Arrays&)>;
NamedFunction compile_named(const Arrays& inputs,
                            const std::function<nn::TensorMap(const nn::TensorMap&)>& function) {
  std::vector<TensorType> types;
  std::vector<pjrt::ArgumentSpec> arguments;
  for (const auto& [name, array] : inputs) {
    types.push_back({array.dtype(), array.shape()});
    arguments.push_back({.spec = {array.dtype(), array.shape()}, .name = name});
  }
  std::vector<std::string> names;
  auto graph = trace(types, [&](const std::vector<Tensor>& args) {
    nn::TensorMap tensors;
    size_t next = 0;
    for (const auto& [name, array] : inputs) tensors[name] = args[next++];
    std::vector<Tensor> outputs;
    for (const auto& [name, tensor] : function(tensors)) {
      names.push_back(name);
      outputs.push_back(tensor);
    }
    return outputs;
  });
  auto executable =
      std::make_shared<pjrt::Executable>(default_client().compile(to_stablehlo(*graph), arguments));
  return [executable, names](const Arrays& values) {
    std::vector<pjrt::Buffer> buffers;
    std::vector<pjrt::Buffer*> pointers;
    for (const auto& [name, array] : values) buffers.push_back(default_client().to_device(array));
    pointers.reserve(buffers.size());
    for (pjrt::Buffer& buffer : buffers) pointers.push_back(&buffer);
    const std::vector<pjrt::Buffer> results = executable->execute(std::span<pjrt::Buffer* const>(pointers));
    Arrays out;
    for (size_t i = 0; i < names.size(); ++i) out[names[i]] = results[i].to_host();
    return out;
  };
}

Arrays run_named(const Arrays& inputs, const std::function<nn::TensorMap(const nn::TensorMap&)>& function) {
  return compile_named(inputs, function)(inputs);
}

nn::TensorMap part(const nn::TensorMap& all, const std::string& prefix) {
  nn::TensorMap out;
  for (const auto& [name, tensor] : all) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = tensor;
  }
  return out;
}

Arrays join(const Arrays& params, const Arrays& batch) {
  Arrays all;
  for (const auto& [name, array] : params) all["params/" + name] = array;
  for (const auto& [name, array] : batch) all["batch/" + name] = array;
  return all;
}

// The largest difference, relative to the largest magnitude of the expected array: what float32 sums of many
// terms in another order can be held to.
double relative_error(const Array& got, const Array& want) {
  EXPECT_EQ(got.shape().size(), want.shape().size());
  const Array got_wide = got.cast(DType::kFloat64), want_wide = want.cast(DType::kFloat64);
  double worst = 0, scale = 1e-30;
  for (size_t i = 0; i < want_wide.values<double>().size(); ++i) {
    scale = std::max(scale, std::abs(want_wide.values<double>()[i]));
    worst = std::max(worst, std::abs(got_wide.values<double>()[i] - want_wide.values<double>()[i]));
  }
  return worst / scale;
}

void expect_close(const Arrays& got, const Arrays& want, double tolerance = 1e-5) {
  ASSERT_FALSE(want.empty());
  for (const auto& [name, array] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_LE(relative_error(got.at(name), array), tolerance) << name;
  }
}

int64_t ulps(float a, float b) {
  auto ordered = [](float x) {
    const auto bits = std::bit_cast<int32_t>(x);
    return bits < 0 ? static_cast<int64_t>(INT32_MIN) - bits : static_cast<int64_t>(bits);
  };
  return std::abs(ordered(a) - ordered(b));
}

void expect_initial_parameters(const models::T5Config& config, const std::string& folder) {
  const Arrays want = load(folder + "/params_init.safetensors");
  const nn::ParamSpecs specs = models::EncoderDecoderModel(config, {}).param_specs();
  ASSERT_EQ(specs.size(), want.size());
  const ops::Key key = ops::host_split(ops::host_prng_key(0), 2)[0];
  const Arrays got = run_named({{"key", Array::from<uint32_t>(key, {2})}},
                               [&](const nn::TensorMap& in) { return nn::init_params(specs, in.at("key")); });
  for (const auto& [name, array] : want) {
    int64_t worst = 0, different = 0;
    for (size_t i = 0; i < array.values<float>().size(); ++i) {
      const int64_t distance = ulps(got.at(name).values<float>()[i], array.values<float>()[i]);
      worst = std::max(worst, distance);
      different += distance != 0 ? 1 : 0;
    }
    // log1p and the fusion of erf_inv differ in the last bits from one compiler version to the next.
    EXPECT_LE(worst, 2) << name << ": " << different << " of " << array.size() << " values differ";
  }
}

TEST(T5Tiny, InitialParametersWithin2Ulp) { expect_initial_parameters(tiny(), "t5_tiny"); }
TEST(T5Fact, InitialParametersWithin2Ulp) { expect_initial_parameters(fact(), "t5_fact"); }

class T5TinyBatch : public testing::TestWithParam<const char*> {
 protected:
  Arrays params = load("t5_tiny/params_init.safetensors");
  std::string kind = GetParam();
  Arrays batch = below(load("t5_tiny/batches.safetensors"), kind + "/");
  Arrays forward = below(load("t5_tiny/forward.safetensors"), kind + "/");
};

TEST_P(T5TinyBatch, Logits) {
  const models::EncoderDecoderModel model(tiny(), {});
  const Arrays got = run_named(join(params, batch), [&](const nn::TensorMap& in) {
    return nn::TensorMap{{"logits", model.logits(part(in, "params/"), part(in, "batch/"))},
                         {"score_batch", model.score(part(in, "params/"), part(in, "batch/"))}};
  });
  expect_close(got, {{"logits", forward.at("logits")}, {"score_batch", forward.at("score_batch")}});
}

TEST_P(T5TinyBatch, LossesOfEverySetting) {
  Arrays want;
  for (const auto& [name, array] : forward) {
    if (name != "logits" && name != "encoded" && name != "score_batch") want[name] = array;
  }
  const Arrays got = run_named(join(params, batch), [&](const nn::TensorMap& in) {
    const nn::TensorMap tensors = part(in, "batch/");
    Tensor logits = models::EncoderDecoderModel(tiny(), {}).logits(part(in, "params/"), tensors);
    nn::TensorMap out;
    auto add = [&](const std::string& suffix, const models::LossConfig& config) {
      const models::Loss loss = models::weighted_cross_entropy(logits, tensors, config);
      out["loss" + suffix] = loss.total;
      out["z_loss" + suffix] = loss.z_loss;
      out["weight_sum" + suffix] = loss.weight_sum;
    };
    for (double smoothing : {0.0, 0.1}) {
      for (double z : {0.0, 0.0001, 0.01}) {
        const std::string z_text = z == 0 ? "0.0" : fmt::format("{}", z);
        add(fmt::format("/ls{:.1f}_z{}", smoothing, z_text), {.label_smoothing = smoothing, .z_loss = z});
      }
    }
    for (const char* name : {"NUM_REAL_TARGET_TOKENS", "NUM_TOTAL_TARGET_TOKENS", "AVERAGE_PER_SEQUENCE"}) {
      add(std::string("_lnf/") + name,
          {.z_loss = 1e-4, .normalization = models::parse_loss_normalization(name)});
    }
    add("_lnf/233472.0", {.z_loss = 1e-4, .normalization = {.constant = 233472.0}});
    return out;
  });
  expect_close(got, want);
}

nn::TensorMap loss_and_gradients(const models::EncoderDecoderModel& model, const nn::TensorMap& params,
                                 const nn::TensorMap& batch, Tensor dropout_key = {}) {
  const models::LossMetrics loss = model.loss(params, batch, {.dropout_key = dropout_key});
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : params) inputs.push_back(tensor);
  const std::vector<Tensor> gradients = grad(loss.loss, inputs);
  nn::TensorMap out;
  size_t next = 0;
  for (const auto& [name, tensor] : params) out["grad/" + name] = gradients[next++];
  out["loss"] = loss.loss;
  return out;
}

TEST_P(T5TinyBatch, Gradients) {
  const models::EncoderDecoderModel model(tiny(), {.z_loss = 1e-4});
  const Arrays got = run_named(join(params, batch), [&](const nn::TensorMap& in) {
    return loss_and_gradients(model, part(in, "params/"), part(in, "batch/"));
  });
  const Arrays want = below(load("t5_tiny/grads.safetensors"), kind + "/");
  expect_close(below(got, "grad/"), below(want, "grad/"));
}

TEST_P(T5TinyBatch, RematerialisedGradientsAreTheSame) {
  models::T5Config config = tiny();
  for (const char* policy : {"minimal", "full"}) {
    config.remat_policy = policy;
    const models::EncoderDecoderModel model(config, {.z_loss = 1e-4});
    const Arrays got = run_named(join(params, batch), [&](const nn::TensorMap& in) {
      return loss_and_gradients(model, part(in, "params/"), part(in, "batch/"));
    });
    expect_close(below(got, "grad/"), below(load("t5_tiny/grads.safetensors"), kind + "/grad/"));
  }
}

TEST_P(T5TinyBatch, DropoutLossLogitsAndGradients) {
  models::T5Config config = tiny();
  config.dropout_rate = 0.1;
  const models::EncoderDecoderModel model(config, {.z_loss = 1e-4});
  const ops::Key trainer = ops::host_split(ops::host_prng_key(0), 2)[1];
  Arrays inputs = join(params, batch);
  inputs["key"] = Array::from<uint32_t>(ops::host_fold_in(trainer, 0), {2});
  const Arrays got = run_named(inputs, [&](const nn::TensorMap& in) {
    nn::TensorMap out = loss_and_gradients(model, part(in, "params/"), part(in, "batch/"), in.at("key"));
    out["logits"] = model.logits(part(in, "params/"), part(in, "batch/"), {.dropout_key = in.at("key")});
    return out;
  });
  const Arrays want = below(load("t5_tiny/dropout.safetensors"), kind + "/");
  expect_close(got, {{"loss", want.at("loss_step0")}, {"logits", want.at("logits_step0")}});
  expect_close(below(got, "grad/"), below(want, "grad_step0/"));
}

INSTANTIATE_TEST_SUITE_P(Batches, T5TinyBatch, testing::Values("unpacked", "packed"),
                         [](const auto& test) { return std::string(test.param); });

TEST(T5Tiny, DropoutMasksBitForBit) {
  const auto info = nlohmann::json::parse(read_file(kGolden / "t5_tiny/dropout_masks.json"));
  const Arrays masks = load("t5_tiny/dropout.safetensors");
  const ops::Key step = ops::host_fold_in(ops::host_split(ops::host_prng_key(0), 2)[1], 0);
  const Arrays got = run_named({{"key", Array::from<uint32_t>(step, {2})}}, [&](const nn::TensorMap& in) {
    nn::TensorMap out;
    for (const auto& mask : info["masks"]) {
      Tensor key = ops::fold_in(in.at("key"), nn::module_key_fold(mask["module"].get<std::string>(), 1));
      const Shape shape(mask["shape"].get<std::vector<int64_t>>());
      out[fmt::format("mask/{:02}/{}", mask["i"].get<int>(), mask["module"].get<std::string>())] =
          ops::bernoulli(key, mask["keep_prob"].get<double>(), shape);
    }
    return out;
  });
  ASSERT_EQ(got.size(), 24u);
  for (const auto& [name, mask] : got)
    EXPECT_TRUE(mask.cast(DType::kUInt8).identical(masks.at(name).cast(DType::kUInt8))) << name;
}

optim::ParamInfos infos(const nn::ParamSpecs& specs) {
  optim::ParamInfos out;
  for (const auto& [name, spec] : specs) out[name] = {spec.type, spec.axes};
  return out;
}

// Adafactor for `steps` steps on the packed batch at 0.001.
void expect_adafactor(const models::T5Config& config, const std::string& folder, const std::string& file,
                      int64_t steps) {
  const models::EncoderDecoderModel model(config, {.z_loss = 1e-4});
  const optim::ParamInfos params = infos(model.param_specs());
  const optim::Adafactor adafactor({.logical_factor_rules = optim::standard_logical_factor_rules()});
  Arrays state = join(load(folder + "/params_init.safetensors"), {});
  for (const auto& [name, type] : adafactor.state_types(params))
    state["state/" + name] = Array(type.dtype, type.shape);
  const Arrays batch = below(load(folder + "/batches.safetensors"), "packed/");
  auto inputs = [&](int64_t step) {
    Arrays all = state;
    for (const auto& [name, array] : batch) all["batch/" + name] = array;
    all["step"] = Array::scalar<int32_t>(static_cast<int32_t>(step));
    return all;
  };
  const NamedFunction update_step = compile_named(inputs(0), [&](const nn::TensorMap& in) {
    const nn::TensorMap values = part(in, "params/");
    const nn::TensorMap gradients = part(loss_and_gradients(model, values, part(in, "batch/")), "grad/");
    const optim::Update update = adafactor.apply(params, in.at("step"), full({DType::kFloat32, {}}, 0.001),
                                                 gradients, values, part(in, "state/"));
    nn::TensorMap out;
    for (const auto& [name, tensor] : update.params) out["params/" + name] = tensor;
    for (const auto& [name, tensor] : update.state) out["state/" + name] = tensor;
    return out;
  });
  for (int64_t step = 0; step < steps; ++step) state = update_step(inputs(step));
  const Arrays want = below(load(folder + "/" + file), fmt::format("step{}/", steps));
  expect_close(below(state, "params/"), below(want, "params/"));
  expect_close(below(state, "state/"), below(want, "state/"));
}

TEST(T5Tiny, AdafactorAfter1Step) {
  expect_adafactor(tiny(), "t5_tiny", "adafactor_constant.safetensors", 1);
}
TEST(T5Tiny, AdafactorAfter10Steps) {
  expect_adafactor(tiny(), "t5_tiny", "adafactor_constant.safetensors", 10);
}
TEST(T5Fact, FactoredAdafactorAfter1Step) {
  expect_adafactor(fact(), "t5_fact", "adafactor_constant_step1.safetensors", 1);
}

decode::PredictOptions decode_options(const nlohmann::json& settings) {
  decode::PredictOptions options;
  if (settings.value("decode_fn", "beam_search") == "beam_search") {
    options.beam.num_decodes = settings.value("num_decodes", 4);
    options.beam.alpha = settings.value("alpha", 0.6);
    options.prompt_with_targets = settings.value("prompt_with_targets", false);
    return options;
  }
  options.method = decode::PredictOptions::Method::kTemperatureSample;
  options.sample.num_decodes = settings.value("num_decodes", 1);
  options.sample.temperature = settings.value("temperature", 1.0);
  options.sample.topk = settings.value("topk", 1);
  options.sample.topp = settings.value("topp", 0.0);
  options.sample.rescale_log_probs = settings.value("rescale_log_probs", true);
  if (settings.contains("max_decode_steps"))
    options.sample.max_decode_steps = settings["max_decode_steps"].get<int64_t>();
  return options;
}

TEST(Decode, EveryCaseGivesTheSameTokensAndScores) {
  const auto info = nlohmann::json::parse(read_file(kGolden / "decode/decode.json"));
  const Arrays params = load("decode/params.safetensors");
  const Arrays values = load("decode/decode.safetensors");
  Arrays batch = below(values, "batch/");
  for (const auto& [name, settings] : info["cases"].items()) {
    SCOPED_TRACE(name);
    const decode::PredictOptions options = decode_options(settings);
    const models::EncoderDecoderModel model(tiny(), {});
    Arrays inputs = join(params, batch);
    if (options.prompt_with_targets) {
      // The prompt of this case was the start token and the first two targets.
      Array prompt(DType::kInt32, batch.at("decoder_input_tokens").shape());
      for (int64_t row = 0; row < prompt.shape()[0]; ++row) {
        for (int64_t i = 1; i <= 2; ++i) {
          const auto at = static_cast<size_t>(row * prompt.shape()[1] + i);
          prompt.values<int32_t>()[at] = batch.at("decoder_input_tokens").values<int32_t>()[at];
        }
      }
      inputs["batch/decoder_input_tokens"] = prompt;
    }
    inputs["rng"] = Array::from<uint32_t>(ops::host_prng_key(42), {2});
    const Arrays got = run_named(inputs, [&](const nn::TensorMap& in) {
      const decode::Decoded decoded =
          decode::predict_batch(model, part(in, "params/"), part(in, "batch/"), options, in.at("rng"));
      return nn::TensorMap{{"decodes", decoded.sequences}, {"scores", decoded.scores}};
    });
    const Array& want = values.at(name + "/decodes");
    EXPECT_TRUE(got.at("decodes").reshape(want.shape()).identical(want));
    EXPECT_LE(relative_error(got.at("scores"), values.at(name + "/scores")), 1e-5);
  }
}

}  // namespace
}  // namespace t5x
