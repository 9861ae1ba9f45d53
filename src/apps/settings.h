// What configurables hand to one another while a gin configuration is evaluated, and small helpers to read
// their arguments.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gin/registry.h"
#include "train/train.h"

namespace t5x::apps {

// Shared by all configurables of one evaluation.
struct Context {
  bool dry_run = false;  // files that are missing give warnings, not errors
  std::map<std::string, seqio::VocabularyPtr> vocabularies = {};  // loaded once, by description
};
using ContextPtr = std::shared_ptr<Context>;

// The network as a module: t5x.examples.t5.network.Transformer.
struct NetworkModule {
  models::T5Config config;
};
// t5x.models.EncoderDecoderModel.
struct ModelSettings {
  std::shared_ptr<const models::EncoderDecoderModel> model;
  std::shared_ptr<const optim::Optimizer> optimizer;
  seqio::VocabularyPtr input_vocabulary, output_vocabulary;
  decode::PredictOptions decode;
};
// t5x.models.EncoderDecoderModel.predict_batch_with_aux and t5x.models.DecoderParams.
struct DecoderSettings {
  std::optional<int64_t> num_decodes = std::nullopt;
  bool prompt_with_targets = false;
};
// t5x.partitioning.PjitPartitioner.
struct PartitionerSettings {
  int64_t model_size = 1;  // devices of the mesh's model axis
  AxisRules rules = standard_logical_axis_rules();
};
// t5x.trainer.Trainer.
struct TrainerSettings {
  optim::LearningRateSchedule learning_rate;
  int64_t num_microbatches = 1;
};
// t5x.utils.CheckpointConfig.
struct CheckpointSettings {
  std::shared_ptr<SaveCheckpointConfig> save;        // null: none are written
  std::shared_ptr<RestoreCheckpointConfig> restore;  // null or an empty path: start from scratch
};
// seqio.Evaluator.
struct EvaluatorSettings {
  std::optional<int64_t> num_examples = std::nullopt;
};
// What t5x takes as an argument and nothing here depends on, such as a logger.
struct Accepted {
  std::string name;
};

// Parameters that Python code passes itself, so that binding one is no error: None by default.
std::vector<gin::Param> with_passed(std::vector<gin::Param> params, const std::vector<std::string>& passed);

// Throws ConfigError: "NAME is not supported here: `why`" unless the argument is None, False or empty.
void reject(const gin::Args& args, std::string_view param, std::string_view why);

// The object that an argument is or, where it is a function `@name`, makes when called with `kwargs`.
template <class T>
std::shared_ptr<T> make(const gin::Args& args, std::string_view param, gin::Value value,
                        const gin::Kwargs& kwargs = {}) {
  if (gin::Convert<gin::Callable>::accepts(value))
    value = gin::Convert<gin::Callable>::from(value)(kwargs).at(value.location());
  if (!gin::Convert<std::shared_ptr<T>>::accepts(value))
    args.fail(param,
              "expected " + gin::Convert<std::shared_ptr<T>>::expected() + ", found " + value.describe());
  return gin::Convert<std::shared_ptr<T>>::from(value);
}
// The same by the parameter's value; null where it is None.
template <class T>
std::shared_ptr<T> make(const gin::Args& args, std::string_view param, const gin::Kwargs& kwargs = {}) {
  const gin::Value* value = args.find(param);
  if (value == nullptr || value->is_none()) return nullptr;
  return make<T>(args, param, *value, kwargs);
}
// A list of such.
template <class T>
std::vector<std::shared_ptr<T>> make_all(const gin::Args& args, std::string_view param) {
  std::vector<std::shared_ptr<T>> made;
  const gin::Value* value = args.find(param);
  if (value == nullptr || value->is_none()) return made;
  if (!value->is(gin::Kind::kList) && !value->is(gin::Kind::kTuple))
    args.fail(param, "expected a list, found " + value->describe());
  for (const gin::Value& item : value->items()) made.push_back(make<T>(args, param, item));
  return made;
}

// "float32", or a type of jax.numpy.
DType dtype_argument(const gin::Args& args, std::string_view param);

}  // namespace t5x::apps
