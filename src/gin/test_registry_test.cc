#include "gin/test_registry.h"

#include <utility>

namespace t5x::gin {

void TestRegistry::add(std::string name, std::vector<Param> params, std::function<Value(const Args&)> call,
                       bool cheap) {
  Configurable configurable;
  configurable.name = std::move(name);
  configurable.params = std::move(params);
  configurable.cheap = cheap;
  configurable.call = [this, full = configurable.name, call = std::move(call)](const Args& args) {
    ++calls[full];
    return call ? call(args) : Value(full);
  };
  registry.add(std::move(configurable));
}

TestRegistry::TestRegistry() {
  using Int = int64_t;
  add("t5x.train.train",
      {required<std::shared_ptr<Model>>("model"), required<std::string>("model_dir"),
       required<std::shared_ptr<Dataset>>("train_dataset_cfg"),
       param<std::shared_ptr<Dataset>>("infer_eval_dataset_cfg", Value()), required<Value>("partitioner"),
       required<Callable>("trainer_cls"), required<Int>("total_steps"), param<Int>("eval_period", 100),
       param<Int>("eval_steps", 20), param<Int>("random_seed", Value()),
       param<Callable>("inference_evaluator_cls", Value()), param<bool>("use_hardware_rng", false)},
      [](const Args& args) {
        args.get<Callable>("trainer_cls")();
        if (auto evaluator = args.get_optional<Callable>("inference_evaluator_cls")) {
          (*evaluator)({{"num_examples", Value(7)}});
        }
        return Value(args.get<Int>("total_steps"));
      });
  add(
      "t5x.utils.DatasetConfig",
      {required<std::string>("mixture_or_task_name"),
       param<std::vector<std::pair<std::string, Int>>>("task_feature_lengths", Value()),
       required<std::string>("split"), required<Int>("batch_size"), required<bool>("shuffle"),
       required<std::optional<Int>>("seed"), param<bool>("use_cached", false), param<bool>("pack", false),
       param<std::string>("module", Value())},
      [](const Args& args) {
        Dataset dataset;
        dataset.task = args.get<std::string>("mixture_or_task_name");
        using Lengths = std::vector<std::pair<std::string, Int>>;
        dataset.lengths = args.get_optional<Lengths>("task_feature_lengths").value_or(Lengths{});
        dataset.batch_size = args.get<Int>("batch_size");
        dataset.shuffle = args.get<bool>("shuffle");
        return Value::object(std::make_shared<Dataset>(std::move(dataset)));
      },
      /*cheap=*/true);
  add("t5x.utils.create_learning_rate_scheduler",
      {param<std::string>("factors", "constant"), param<double>("base_learning_rate", 0.5),
       param<Int>("warmup_steps", 1000)});
  add("t5x.partitioning.PjitPartitioner",
      {param<Int>("num_partitions", Value()), param<Value>("model_parallel_submesh", Value()),
       param<Value>("logical_axis_rules", Value())});
  add("t5x.partitioning.standard_logical_axis_rules",
      {param<Int>("activation_partitioning_dims", 1), param<Int>("parameter_partitioning_dims", 1)});
  add("t5x.trainer.Trainer",
      {param<Int>("num_microbatches", Value()), param<Value>("learning_rate_fn", Value())});
  add("t5x.adafactor.Adafactor", {param<double>("learning_rate", Value()), param<double>("decay_rate", 0.8),
                                  param<Int>("step_offset", 0), param<double>("epsilon1", 1e-30),
                                  param<Value>("logical_factor_rules", Value())});
  add("t5x.adafactor.standard_logical_factor_rules", {});
  add("t5x.models.EncoderDecoderModel",
      {required<Value>("module"), required<std::shared_ptr<Vocabulary>>("input_vocabulary"),
       required<std::shared_ptr<Vocabulary>>("output_vocabulary"), required<Value>("optimizer_def"),
       param<double>("z_loss", 0.0), param<double>("label_smoothing", 0.0),
       param<double>("loss_normalizing_factor", Value())},
      [](const Args& args) {
        return Value::object(std::make_shared<Model>(
            Model{args.get<std::shared_ptr<Vocabulary>>("input_vocabulary"), args.get<double>("z_loss")}));
      });
  add("t5x.examples.t5.network.Transformer", {required<Value>("config")});
  add("t5x.examples.t5.network.T5Config",
      {required<Int>("vocab_size"), param<std::string>("dtype", "float32"), param<Int>("emb_dim", 512),
       param<std::vector<std::string>>("mlp_activations", Value::tuple({"relu"})),
       param<double>("dropout_rate", 0.1)});
  add("t5x.examples.scalable_t5.network.T5Config", {required<Int>("vocab_size")});
  add("seqio.SentencePieceVocabulary",
      {required<std::string>("sentencepiece_model_file"), param<Int>("extra_ids", Value())},
      [](const Args& args) {
        return Value::object(
            std::make_shared<SentencePiece>(args.get<std::string>("sentencepiece_model_file")));
      });
  registry.alias("seqio.vocabularies.SentencePieceVocabulary", "seqio.SentencePieceVocabulary");
  add("seqio.Evaluator",
      {param<std::vector<Callable>>("logger_cls", Value::tuple({})), param<Int>("num_examples", Value()),
       param<bool>("use_memory_cache", true)},
      [](const Args& args) {
        for (const Callable& logger : args.get<std::vector<Callable>>("logger_cls")) logger();
        return Value();
      });
  add("seqio.PyLoggingLogger", {param<std::string>("output_dir", Value())});
  add("seqio.TensorBoardLogger", {param<std::string>("output_dir", Value())});
  add("seqio.JSONLogger",
      {param<std::string>("output_dir", Value()), param<Int>("write_n_results", Value())});
  // Small ones for rules of the language: echo gives back its argument, add the sum.
  add(
      "lib.echo", {param<Value>("value", Value()), param<Value>("other", Value())},
      [](const Args& args) { return args.value("value"); }, /*cheap=*/true);
  add(
      "lib.add", {required<Int>("a"), required<Int>("b")},
      [](const Args& args) { return Value(args.get<Int>("a") + args.get<Int>("b")); }, /*cheap=*/true);
}

}  // namespace t5x::gin
