// The two evaluations of a training run: the loss on held-out batches (train_eval) and the task's own metrics
// on decoded predictions (infer_eval). Each writes TensorBoard files under the model directory, as t5x does.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "train/summary_writer.h"
#include "train/train.h"

namespace t5x {

class Evaluation {
 public:
  explicit Evaluation(const TrainConfig& config) : config_(config) {}

  // Means over eval_steps batches (0: the split once) of the deterministic model; nothing when not
  // configured.
  std::map<std::string, double> train_eval(Trainer& trainer);
  // Metrics by task; writes inference_eval/<task>-<step>.jsonl and prints sample_predictions examples.
  std::map<std::string, seqio::Metrics> infer_eval(Trainer& trainer);

 private:
  SummaryWriter& writer(const std::string& directory);
  void print_samples(const std::string& task, const seqio::IndexedTokens& predictions) const;

  const TrainConfig& config_;
  std::unique_ptr<seqio::Evaluator> evaluator_;
  std::map<std::string, std::unique_ptr<SummaryWriter>> writers_;
};

// Decodes every example of a task's evaluation set, in batches of `batch_size` whose last one is filled up.
seqio::IndexedTokens predict_examples(Trainer& trainer, const seqio::EvalExamples& examples,
                                      int64_t batch_size, const decode::PredictOptions& options);

}  // namespace t5x
