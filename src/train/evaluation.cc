#include "train/evaluation.h"

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "train/progress.h"

namespace t5x {
namespace {

// Adds rows of zeros, which weigh nothing, so that every batch has the shape that is compiled.
HostBatch pad_rows(const HostBatch& batch, int64_t rows) {
  HostBatch out;
  for (const auto& [name, array] : batch) {
    if (array.shape()[0] == rows) {
      out[name] = array;
      continue;
    }
    std::vector<int64_t> dims = array.shape().dims();
    dims[0] = rows;
    Array padded(array.dtype(), Shape(dims));
    std::memcpy(padded.bytes(), array.bytes(), array.nbytes());
    out[name] = padded;
  }
  return out;
}

// Stacks examples [begin, end), features [length], to [rows, length].
HostBatch stack(const std::vector<seqio::Batch>& examples, size_t begin, size_t end, int64_t rows) {
  HostBatch out;
  for (const auto& [name, first] : examples[begin]) {
    std::vector<int64_t> dims = first.shape().dims();
    dims.insert(dims.begin(), rows);
    Array stacked(first.dtype(), Shape(dims));
    for (size_t i = begin; i < end; ++i) {
      const Array& example = examples[i].at(name);
      if (example.shape() != first.shape()) {
        throw_error<DataError>("evaluation example {} has '{}' of {}, others of {}", i, name,
                               example.describe(), first.describe());
      }
      std::memcpy(stacked.bytes() + (i - begin) * first.nbytes(), example.bytes(), example.nbytes());
    }
    out[name] = stacked;
  }
  return out;
}

std::string file_name(std::string task) {
  for (char& c : task) {
    if (c == '/') c = '_';
  }
  return task;
}

}  // namespace

SummaryWriter& Evaluation::writer(const std::string& directory) {
  auto& found = writers_[directory];
  if (!found) found = std::make_unique<SummaryWriter>(fs::path(config_.model_dir) / directory);
  return *found;
}

std::map<std::string, double> Evaluation::train_eval(Trainer& trainer) {
  if (!config_.train_eval_dataset) return {};
  const DatasetConfig& data = *config_.train_eval_dataset;
  seqio::GetDatasetOptions options;
  options.task_feature_lengths = data.task_feature_lengths;
  options.split = data.split;
  options.use_cached = data.use_cached;
  options.shuffle = data.shuffle;
  options.seed = data.seed;
  options.batch_size = data.batch_size;
  options.drop_remainder = false;
  if (config_.eval_steps > 0) options.num_epochs = std::nullopt;
  seqio::BatchIterator batches = seqio::get_batches(
      data.mixture_or_task,
      std::make_shared<seqio::EncDecFeatureConverter>(seqio::ConverterOptions{.pack = data.pack}), options);
  MetricSums sums;
  int64_t steps = 0;
  while (config_.eval_steps == 0 || steps < config_.eval_steps) {
    std::optional<seqio::Batch> batch = batches.next();
    if (!batch) break;
    for (const auto& [name, value] : trainer.eval_step(pad_rows(*batch, data.batch_size)))
      sums[name] += value;
    ++steps;
  }
  const std::map<std::string, double> summary = summarize(sums, steps);
  const std::string& task = data.mixture_or_task->name();
  writer("training_eval/" + file_name(task)).scalars(trainer.step(), summary);
  log_info("eval {} ({}, {} batches): loss {:.4f}, token accuracy {:.2f}%", task, data.split, steps,
           summary.at("token_loss"), 100 * summary.at("accuracy"));
  return summary;
}

seqio::IndexedTokens predict_examples(Trainer& trainer, const seqio::EvalExamples& examples,
                                      int64_t batch_size, const decode::PredictOptions& options) {
  seqio::IndexedTokens predictions;
  for (size_t begin = 0; begin < examples.features.size(); begin += static_cast<size_t>(batch_size)) {
    const size_t end = std::min(examples.features.size(), begin + static_cast<size_t>(batch_size));
    const Array ids = trainer.predict(stack(examples.features, begin, end, batch_size), options).ids;
    const auto length = static_cast<size_t>(ids.shape()[1]);
    for (size_t i = begin; i < end; ++i) {
      const auto row = ids.values<int32_t>().subspan((i - begin) * length, length);
      predictions.emplace_back(static_cast<int64_t>(i), std::vector<int32_t>(row.begin(), row.end()));
    }
  }
  return predictions;
}

void Evaluation::print_samples(const std::string& task, const seqio::IndexedTokens& predictions) const {
  const auto& features = evaluator_->examples(task).features;
  for (int64_t k = 0; k < config_.sample_predictions && k < static_cast<int64_t>(predictions.size()); ++k) {
    const auto i = static_cast<size_t>(predictions[static_cast<size_t>(k)].first);
    const auto inputs = features[i].at("encoder_input_tokens").values<int32_t>();
    auto text = [](const seqio::VocabularyPtr& vocabulary, std::span<const int32_t> ids) {
      return vocabulary ? vocabulary->decode(ids) : std::string();
    };
    log_info("  {} -> {}  (truth: {})", text(config_.input_vocabulary, inputs),
             text(config_.output_vocabulary, predictions[static_cast<size_t>(k)].second),
             evaluator_->targets(task)[i].dump());
  }
}

std::map<std::string, seqio::Metrics> Evaluation::infer_eval(Trainer& trainer) {
  if (!config_.infer_eval_dataset) return {};
  const DatasetConfig& data = *config_.infer_eval_dataset;
  if (!evaluator_) {
    seqio::EvaluatorOptions options;
    options.split = data.split;
    options.use_cached = data.use_cached;
    options.num_examples = config_.infer_eval_examples;
    options.sequence_length = data.task_feature_lengths;
    options.log_dir = (fs::path(config_.model_dir) / "inference_eval").string();
    evaluator_ = std::make_unique<seqio::Evaluator>(
        data.mixture_or_task,
        std::make_shared<seqio::EncDecFeatureConverter>(seqio::ConverterOptions{.pack = false}), options);
  }
  seqio::ModelFns model;
  model.predict = [&](const seqio::EvalExamples& examples) {
    seqio::IndexedTokens predictions = predict_examples(trainer, examples, data.batch_size, config_.decode);
    print_samples(examples.task, predictions);
    return predictions;
  };
  model.score = [&](const seqio::EvalExamples& examples) {
    seqio::IndexedScores scores;
    for (size_t begin = 0; begin < examples.features.size(); begin += static_cast<size_t>(data.batch_size)) {
      const size_t end = std::min(examples.features.size(), begin + static_cast<size_t>(data.batch_size));
      const Array values = trainer.score(stack(examples.features, begin, end, data.batch_size));
      for (size_t i = begin; i < end; ++i) {
        scores.emplace_back(static_cast<int64_t>(i), static_cast<double>(values.values<float>()[i - begin]));
      }
    }
    return scores;
  };
  auto metrics = evaluator_->evaluate(trainer.step(), model);
  for (const auto& [task, values] : metrics) {
    std::string line;
    for (const auto& [name, value] : values) {
      if (const double* number = std::get_if<double>(&value)) {
        writer("inference_eval/" + file_name(task)).scalar(trainer.step(), "eval/" + name, *number);
        line += fmt::format("{}{} {:.2f}", line.empty() ? "" : ", ", name, *number);
      } else {
        writer("inference_eval/" + file_name(task))
            .text(trainer.step(), "eval/" + name, std::get<std::string>(value));
      }
    }
    log_info("predictions {} ({}, {} examples): {}", task, data.split,
             evaluator_->examples(task).features.size(), line);
  }
  return metrics;
}

}  // namespace t5x
