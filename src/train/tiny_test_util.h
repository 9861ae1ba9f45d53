// What the tests of training share: the devices, a compile cache, a model small enough to compile in moments,
// and runs of it over a table of letters.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "optim/adafactor.h"
#include "seqio/preprocessor.h"
#include "seqio/source.h"
#include "seqio/task.h"
#include "train/train.h"

namespace t5x::test {

// Four virtual CPU devices, one client for the whole process.
inline const pjrt::Client& client() {
  static const pjrt::Client the_client = pjrt::Client::create({.cpu_device_count = 4});
  return the_client;
}

// Compiling even this model takes seconds, and every test may be a process of its own: compiled programs are
// kept between them. Entries are keyed by all that they are made of, so that an old one cannot be taken for
// another.
inline const CompileCache& cache() {
  static const CompileCache the_cache(
      {.directory = (fs::temp_directory_path() / fmt::format("t5x-test-cache-{}", getuid())).string(),
       .max_bytes = uint64_t{256} << 20});
  return the_cache;
}

struct TinyOptions {
  Mesh mesh = {};
  int64_t parameter_partitioning_dims = 1;
  int64_t num_microbatches = 1;
  double dropout_rate = 0;
  double learning_rate = 0.05;
};

// One layer on each side, width 32, over bytes; Adafactor at a constant rate, so that how long a run is going
// to be has no influence on its steps.
inline TrainerConfig tiny_trainer(const TinyOptions& options = {}) {
  models::T5Config net;
  net.vocab_size = 384;
  net.emb_dim = 32;
  net.num_heads = 2;
  net.head_dim = 16;
  net.mlp_dim = 64;
  net.num_encoder_layers = net.num_decoder_layers = 1;
  net.mlp_activations = {"gelu", "linear"};
  net.dropout_rate = options.dropout_rate;
  optim::AdafactorHyperParams adafactor;
  adafactor.logical_factor_rules = optim::standard_logical_factor_rules();
  adafactor.min_dim_size_to_factor = 32;  // 128 would leave a model of this size without factors
  return {.model = std::make_shared<models::EncoderDecoderModel>(net, models::LossConfig{.z_loss = 1e-4}),
          .optimizer = std::make_shared<optim::Adafactor>(adafactor),
          .learning_rate = optim::create_learning_rate_scheduler(
              {.factors = "constant", .base_learning_rate = options.learning_rate}),
          .mesh = options.mesh,
          .rules = standard_logical_axis_rules(1, options.parameter_partitioning_dims),
          .num_microbatches = options.num_microbatches,
          .seed = 7};
}

// Random bytes with padding at the end of some rows: what EncDecFeatureConverter would make of them.
inline HostBatch tiny_batch(uint32_t seed, int64_t rows = 8, int64_t length = 16) {
  std::mt19937 random(seed);
  const Shape shape({rows, length});
  Array inputs(DType::kInt32, shape), before(DType::kInt32, shape), targets(DType::kInt32, shape),
      weights(DType::kInt32, shape);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t used = length - static_cast<int64_t>(random() % static_cast<uint32_t>(length / 2));
    for (int64_t i = 0; i < used; ++i) {
      const auto at = static_cast<size_t>(row * length + i);
      inputs.values<int32_t>()[at] = 3 + static_cast<int32_t>(random() % 256);
      targets.values<int32_t>()[at] = i + 1 < used ? 3 + static_cast<int32_t>(random() % 256) : 1;
      before.values<int32_t>()[at] = i > 0 ? targets.values<int32_t>()[at - 1] : 0;
      weights.values<int32_t>()[at] = 1;
    }
  }
  return {{"encoder_input_tokens", inputs},
          {"decoder_input_tokens", before},
          {"decoder_target_tokens", targets},
          {"decoder_loss_weights", weights}};
}

// A table of words and their letters in capitals, more rows than a few steps use up.
inline std::string letter_rows(int count) {
  std::string text;
  std::mt19937 random(1);
  for (int row = 0; row < count; ++row) {
    std::string word, capitals;
    for (uint32_t i = 0, size = 2 + random() % 6; i < size; ++i) {
      word += static_cast<char>('a' + random() % 26);
      capitals += static_cast<char>(word.back() - 'a' + 'A');
    }
    text += word + "\t" + capitals + "\n";
  }
  return text;
}

// A run over `table` (a file of two columns) in `model_dir`: no evaluation, batches of 8 rows of 16 and 16.
inline TrainConfig tiny_run(const fs::path& table, const fs::path& model_dir, int64_t total_steps,
                            int64_t save_period, const TinyOptions& options = {}) {
  const auto vocabulary = std::make_shared<seqio::ByteVocabulary>();
  const auto task = std::make_shared<const seqio::Task>(seqio::TaskConfig{
      .name = "letters",
      .source = seqio::tsv_source({{"train", {table.string()}}}, {.columns = {"inputs", "targets"}}),
      .preprocessors = {seqio::tokenize(), seqio::append_eos()},
      .output_features = {{"inputs", {.vocabulary = vocabulary}}, {"targets", {.vocabulary = vocabulary}}},
      .metric_fns = {seqio::sequence_accuracy_metric()}});
  TrainConfig config;
  config.trainer = tiny_trainer(options);
  config.input_vocabulary = config.output_vocabulary = vocabulary;
  config.train_dataset = {.mixture_or_task = task,
                          .task_feature_lengths = {{"inputs", 16}, {"targets", 16}},
                          .batch_size = 8,
                          .seed = 3};
  config.model_dir = model_dir.string();
  config.total_steps = total_steps;
  config.save->period = save_period;
  return config;
}

}  // namespace t5x::test
