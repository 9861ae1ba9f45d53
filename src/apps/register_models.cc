// Models and decoding: t5x/models.py, t5x/decoding.py, t5x/examples/t5/network.py.
#include "apps/register.h"
#include "base/error.h"
#include "base/log.h"
#include "gin/config.h"

namespace t5x::apps {
namespace {

using gin::Args;
using gin::param;
using gin::Value;

constexpr const char* kPredict = "t5x.models.EncoderDecoderModel.predict_batch_with_aux";

Value reference(const char* name) {
  gin::Reference to;
  to.name = name;
  return Value(std::move(to));
}

void register_network(gin::Registry& registry) {
  const models::T5Config defaults;
  registry.add(
      {.name = "t5x.examples.t5.network.T5Config",
       .params = {gin::required<int64_t>("vocab_size"), param<Value>("dtype", "float32"),
                  param<int64_t>("emb_dim", defaults.emb_dim),
                  param<int64_t>("num_heads", defaults.num_heads),
                  param<int64_t>("num_encoder_layers", defaults.num_encoder_layers),
                  param<int64_t>("num_decoder_layers", defaults.num_decoder_layers),
                  param<int64_t>("head_dim", defaults.head_dim), param<int64_t>("mlp_dim", defaults.mlp_dim),
                  param<std::vector<std::string>>("mlp_activations", Value::tuple({"relu"})),
                  param<double>("dropout_rate", defaults.dropout_rate),
                  param<bool>("logits_via_embedding", defaults.logits_via_embedding),
                  param<bool>("float32_attention_logits", defaults.float32_attention_logits),
                  param<std::string>("remat_policy", defaults.remat_policy)},
       .call =
           [](const Args& args) {
             models::T5Config config;
             config.vocab_size = args.get<int64_t>("vocab_size");
             config.dtype = dtype_argument(args, "dtype");
             config.emb_dim = args.get<int64_t>("emb_dim");
             config.num_heads = args.get<int64_t>("num_heads");
             config.num_encoder_layers = args.get<int64_t>("num_encoder_layers");
             config.num_decoder_layers = args.get<int64_t>("num_decoder_layers");
             config.head_dim = args.get<int64_t>("head_dim");
             config.mlp_dim = args.get<int64_t>("mlp_dim");
             config.mlp_activations = args.get<std::vector<std::string>>("mlp_activations");
             config.dropout_rate = args.get<double>("dropout_rate");
             config.logits_via_embedding = args.get<bool>("logits_via_embedding");
             config.float32_attention_logits = args.get<bool>("float32_attention_logits");
             config.remat_policy = args.get<std::string>("remat_policy");
             models::check_config(config);
             return Value::object(std::make_shared<models::T5Config>(std::move(config)));
           },
       .help = "sizes of a T5 network",
       .cheap = true});
  registry.add({.name = "t5x.examples.t5.network.Transformer",
                .params = {gin::required<std::shared_ptr<models::T5Config>>("config"),
                           param<Value>("shared_embedding", nullptr), param<Value>("name", nullptr)},
                .call =
                    [](const Args& args) {
                      reject(args, "shared_embedding", "the network makes its own embedding");
                      auto config = args.get<std::shared_ptr<models::T5Config>>("config");
                      return Value::object(std::make_shared<NetworkModule>(NetworkModule{*config}));
                    },
                .help = "the T5 encoder-decoder network",
                .cheap = true});
}

void register_decoding(gin::Registry& registry) {
  const std::vector<std::string> passed = {"inputs",     "cache",        "tokens_to_logits",
                                           "decode_rng", "cache_offset", "initial_index"};
  registry.add({.name = "t5x.decoding.beam_search",
                .params = with_passed(
                    {param<int64_t>("eos_id", 1), param<int64_t>("num_decodes", 4),
                     param<double>("alpha", 0.6), param<int64_t>("max_decode_len", nullptr),
                     param<Value>("max_decode_step", nullptr), param<Value>("min_log_prob", nullptr)},
                    passed),
                .call =
                    [](const Args& args) {
                      reject(args, "max_decode_step", "set max_decode_len instead");
                      reject(args, "min_log_prob", "there is no such cut here");
                      auto options = std::make_shared<decode::PredictOptions>();
                      options->beam = {.eos_id = args.get<int64_t>("eos_id"),
                                       .num_decodes = args.get<int64_t>("num_decodes"),
                                       .alpha = args.get<double>("alpha"),
                                       .max_decode_len = args.get_optional<int64_t>("max_decode_len")};
                      return Value::object(options);
                    },
                .help = "beam search with a length penalty",
                .cheap = true});
  registry.add(
      {.name = "t5x.decoding.temperature_sample",
       .params = with_passed(
           {param<int64_t>("eos_id", 1), param<int64_t>("num_decodes", 1), param<double>("temperature", 1.0),
            param<int64_t>("topk", 1), param<double>("topp", 0.0),
            param<int64_t>("max_decode_steps", nullptr),
            param<int64_t>("max_decode_steps_hard_limit", nullptr), param<bool>("rescale_log_probs", true),
            param<Value>("state_callback_fn", nullptr), param<Value>("logit_callback_fn", nullptr)},
           passed),
       .call =
           [](const Args& args) {
             for (const char* name : {"state_callback_fn", "logit_callback_fn"})
               reject(args, name, "functions called while decoding are Python code");
             auto options = std::make_shared<decode::PredictOptions>();
             options->method = decode::PredictOptions::Method::kTemperatureSample;
             options->sample = {
                 .eos_id = args.get<int64_t>("eos_id"),
                 .num_decodes = args.get<int64_t>("num_decodes"),
                 .temperature = args.get<double>("temperature"),
                 .topk = args.get<int64_t>("topk"),
                 .topp = args.get<double>("topp"),
                 .max_decode_steps = args.get_optional<int64_t>("max_decode_steps"),
                 .max_decode_steps_hard_limit = args.get_optional<int64_t>("max_decode_steps_hard_limit"),
                 .rescale_log_probs = args.get<bool>("rescale_log_probs")};
             return Value::object(options);
           },
       .help = "sampling with temperature, top-k and top-p; the defaults are greedy",
       .cheap = true});
}

models::LossNormalization loss_normalization(const Args& args) {
  const Value& value = args.value("loss_normalizing_factor");
  if (value.is_none()) return {};
  if (value.is(gin::Kind::kString)) {
    try {
      return models::parse_loss_normalization(value.as_string());
    } catch (const Error& e) {
      args.fail("loss_normalizing_factor", e.message());
    }
  }
  return {.constant = args.get<double>("loss_normalizing_factor")};
}

// Like t5x, the decoding function always gets the number of decodes from predict_batch_with_aux, 1 unless it
// is set there.
decode::PredictOptions decode_options(const Args& args) {
  auto defaults = make<DecoderSettings>(args, "default_decoder_params");
  auto predict = args.config().call(kPredict).as_object().as<DecoderSettings>();
  const int64_t num_decodes = predict->num_decodes.value_or(defaults ? defaults->num_decodes.value_or(1) : 1);
  gin::Kwargs kwargs = {{"num_decodes", Value(num_decodes)}};
  auto vocabulary = args.get<std::shared_ptr<const seqio::Vocabulary>>("output_vocabulary");
  if (auto eos = vocabulary->eos_id()) kwargs.emplace_back("eos_id", Value(*eos));
  const auto function = args.get<gin::Callable>("decode_fn");
  if (const Value* bound = args.config().query(function.name() + ".num_decodes");
      bound != nullptr && bound->is(gin::Kind::kInt) && bound->as_int() != num_decodes) {
    log_warning("{}: {}.num_decodes has no effect, as in t5x; set {}.num_decodes = {}",
                bound->location().str(), function.name(), kPredict, bound->as_int());
  }
  auto options = *make<decode::PredictOptions>(args, "decode_fn", kwargs);
  options.prompt_with_targets = predict->prompt_with_targets;
  return options;
}

Value make_model(const Args& args) {
  reject(args, "feature_converter_cls", "this model reads seqio.EncDecFeatureConverter's features");
  ModelSettings made;
  const auto module = make<NetworkModule>(args, "module");
  if (!module) args.fail("module", "expected a network such as @network.Transformer(), found None");
  const std::pair<const char*, seqio::VocabularyPtr*> vocabularies[] = {
      {"input_vocabulary", &made.input_vocabulary}, {"output_vocabulary", &made.output_vocabulary}};
  for (const auto& [name, to] : vocabularies) {
    *to = args.get<std::shared_ptr<const seqio::Vocabulary>>(name);
    if ((*to)->vocab_size() > module->config.vocab_size) {
      args.fail(name, fmt::format("the vocabulary {} has {} ids, but the model's embedding only {}; set "
                                  "T5Config.vocab_size to {} or more",
                                  (*to)->describe(), (*to)->vocab_size(), module->config.vocab_size,
                                  (*to)->vocab_size()));
    }
  }
  made.optimizer = make<optim::Optimizer>(args, "optimizer_def");
  if (!made.optimizer) args.fail("optimizer_def", "expected an optimizer such as @adafactor.Adafactor()");
  made.decode = decode_options(args);
  made.model = std::make_shared<models::EncoderDecoderModel>(
      module->config, models::LossConfig{.label_smoothing = args.get<double>("label_smoothing"),
                                         .z_loss = args.get<double>("z_loss"),
                                         .normalization = loss_normalization(args)});
  return Value::object(std::make_shared<ModelSettings>(std::move(made)));
}

}  // namespace

void register_models(gin::Registry& registry) {
  register_network(registry);
  register_decoding(registry);
  registry.add({.name = "t5x.models.DecoderParams",
                .params = {param<int64_t>("num_decodes", 1), param<Value>("return_all_decodes", false)},
                .call =
                    [](const Args& args) {
                      reject(args, "return_all_decodes", "evaluation uses the best decode");
                      return Value::object(std::make_shared<DecoderSettings>(
                          DecoderSettings{.num_decodes = args.get<int64_t>("num_decodes")}));
                    },
                .cheap = true});
  registry.add({.name = kPredict,
                .params = with_passed(
                    {param<int64_t>("num_decodes", nullptr), param<bool>("prompt_with_targets", false),
                     param<Value>("return_all_decodes", nullptr), param<Value>("decoder_params", nullptr)},
                    {"params", "batch", "rng"}),
                .call =
                    [](const Args& args) {
                      reject(args, "return_all_decodes", "evaluation uses the best decode");
                      reject(args, "decoder_params", "bind the parameters of decode_fn instead");
                      return Value::object(std::make_shared<DecoderSettings>(
                          DecoderSettings{.num_decodes = args.get_optional<int64_t>("num_decodes"),
                                          .prompt_with_targets = args.get<bool>("prompt_with_targets")}));
                    },
                .help = "how predictions are made",
                .cheap = true});
  registry.add(
      {.name = "t5x.models.EncoderDecoderModel",
       .params = {gin::required<Value>("module"),
                  gin::required<std::shared_ptr<const seqio::Vocabulary>>("input_vocabulary"),
                  gin::required<std::shared_ptr<const seqio::Vocabulary>>("output_vocabulary"),
                  gin::required<Value>("optimizer_def"),
                  param<gin::Callable>("decode_fn", reference("t5x.decoding.beam_search")),
                  param<Value>("feature_converter_cls", nullptr), param<double>("label_smoothing", 0.0),
                  param<double>("z_loss", 0.0), param<Value>("loss_normalizing_factor", nullptr),
                  param<Value>("default_decoder_params", nullptr)},
       .call = make_model,
       .help = "an encoder-decoder model with its loss",
       .cheap = true});
  for (const char* name : {"bfloat16", "float16", "float32"}) {
    registry.add({.name = std::string("jax.numpy.") + name,
                  .params = {},
                  .call = [name](const Args&) { return Value(name); },
                  .cheap = true});
  }
}

}  // namespace t5x::apps
