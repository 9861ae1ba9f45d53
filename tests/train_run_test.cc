// Whole training runs: stopping and continuing, damaged checkpoints, losses that are not finite, bad data,
// and what a run leaves in its directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/tfrecord.h"
#include "checkpoint/manager.h"
#include "checkpoint/t5x_checkpoint.h"
#include "train/tiny_test_util.h"

namespace t5x {
namespace {

using checkpoint::CheckpointContents;
using test::TinyOptions;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TrainRun : public testing::Test {
 protected:
  TrainRun() { write_file(table(), test::letter_rows(200)); }

  fs::path table() const { return dir_ / "letters.tsv"; }
  TrainConfig config(const std::string& name, int64_t total_steps, int64_t save_period,
                     const TinyOptions& options = {}) const {
    return test::tiny_run(table(), dir_ / name, total_steps, save_period, options);
  }
  TrainResult train(const TrainConfig& config) const {
    return t5x::train(test::client(), config, &test::cache());
  }
  // What the run says on standard error.
  std::string log_of(const TrainConfig& config) const {
    testing::internal::CaptureStderr();
    try {
      train(config);
    } catch (...) {
      testing::internal::GetCapturedStderr();
      throw;
    }
    return testing::internal::GetCapturedStderr();
  }
  template <class E>
  std::string error_of(const TrainConfig& config) const {
    try {
      train(config);
    } catch (const E& e) {
      return e.what();
    }
    ADD_FAILURE() << "the run ended without the error";
    return "";
  }
  fs::path checkpoint(const std::string& name, int64_t step) const {
    return checkpoint::step_directory(dir_ / name, step);
  }
  // A file of a large array inside a checkpoint.
  fs::path chunk(const std::string& name, int64_t step) const {
    return checkpoint(name, step) / "target.token_embedder.embedding" / "0.0";
  }

  TempDir dir_;
};

void expect_identical_arrays(const CheckpointContents& ours, const CheckpointContents& expected) {
  ASSERT_EQ(ours.arrays.size(), expected.arrays.size());
  for (const auto& [name, array] : expected.arrays)
    EXPECT_TRUE(ours.arrays.at(name).identical(array)) << name;
}

// The batches that follow a checkpoint, over more than an epoch. (States of the input are not compared byte
// by byte: they hold as many batches made ahead as there happened to be.)
std::vector<seqio::Batch> batches_after(const CheckpointContents& contents, const DatasetConfig& data) {
  seqio::BatchIterator batches = seqio::get_batches(
      data.mixture_or_task,
      std::make_shared<seqio::EncDecFeatureConverter>(seqio::ConverterOptions{.pack = data.pack}),
      {.task_feature_lengths = data.task_feature_lengths,
       .split = data.split,
       .shuffle = data.shuffle,
       .num_epochs = std::nullopt,
       .seed = data.seed,
       .batch_size = data.batch_size});
  batches.restore(seqio::from_bytes(contents.files.at("train_ds-00000-of-00001")));
  std::vector<seqio::Batch> out;
  for (int i = 0; i < 40; ++i) out.push_back(batches.next().value());
  return out;
}

void expect_identical(const CheckpointContents& ours, const CheckpointContents& expected,
                      const DatasetConfig& data) {
  expect_identical_arrays(ours, expected);
  const auto our_batches = batches_after(ours, data), expected_batches = batches_after(expected, data);
  for (size_t i = 0; i < expected_batches.size(); ++i) {
    for (const auto& [name, array] : expected_batches[i])
      ASSERT_TRUE(our_batches[i].at(name).identical(array)) << "batch " << i << ", " << name;
  }
}

TEST_F(TrainRun, ContinuesBitForBit) {
  const TinyOptions options{.dropout_rate = 0.1};
  train(config("at_once", 12, 6, options));
  train(config("stopped", 6, 6, options));
  const std::string log = log_of(config("stopped", 12, 6, options));
  EXPECT_THAT(log, AllOf(HasSubstr("continuing from"), HasSubstr("at step 6")));
  const CheckpointContents whole = checkpoint::read_checkpoint(checkpoint("at_once", 12));
  expect_identical(checkpoint::read_checkpoint(checkpoint("stopped", 12)), whole,
                   config("stopped", 12, 6).train_dataset);
}

TEST_F(TrainRun, KeepsAsManyCheckpointsAsAsked) {
  TrainConfig run = config("run", 8, 2);
  run.save->keep = 2;
  train(run);
  EXPECT_THAT(checkpoint::list_steps(run.model_dir), ElementsAre(6, 8));
}

TEST_F(TrainRun, LastStepIsSavedOutsideThePeriod) {
  train(config("run", 5, 4));
  EXPECT_THAT(checkpoint::list_steps(dir_ / "run"), ElementsAre(4, 5));
}

TEST_F(TrainRun, TruncatedNewestCheckpointFallsBackAndContinues) {
  train(config("whole", 8, 2));
  train(config("run", 4, 2));
  fs::resize_file(chunk("run", 4), fs::file_size(chunk("run", 4)) / 2);
  const std::string log = log_of(config("run", 8, 2));
  EXPECT_THAT(log, AllOf(HasSubstr("warning"), HasSubstr("checkpoint_4"), HasSubstr("continuing from"),
                         HasSubstr("at step 2")));
  // The damaged one is replaced on the way, and all is as if nothing had happened.
  for (int64_t step : {4, 8})
    expect_identical(checkpoint::read_checkpoint(checkpoint("run", step)),
                     checkpoint::read_checkpoint(checkpoint("whole", step)),
                     config("run", 8, 2).train_dataset);
}

TEST_F(TrainRun, MissingChunkFallsBack) {
  train(config("run", 4, 2));
  fs::remove(chunk("run", 4));
  EXPECT_THAT(log_of(config("run", 6, 2)), AllOf(HasSubstr("warning"), HasSubstr("at step 2")));
}

TEST_F(TrainRun, NoWholeCheckpointIsAnErrorAndDeletesNothing) {
  train(config("run", 4, 2));
  for (int64_t step : {2, 4}) fs::resize_file(chunk("run", step), 5);
  EXPECT_THAT(error_of<CheckpointError>(config("run", 6, 2)),
              AllOf(HasSubstr("checkpoint_2"), HasSubstr("checkpoint_4")));
  EXPECT_THAT(checkpoint::list_steps(dir_ / "run"), ElementsAre(2, 4));
}

TEST_F(TrainRun, LossThatIsNotFiniteNamesTheStepAndKeepsWhatWasSaved) {
  train(config("run", 2, 2));
  const CheckpointContents before = checkpoint::read_checkpoint(checkpoint("run", 2));
  // The third step's own loss is finite, but its update is far too large.
  const TrainConfig explodes = config("run", 6, 2, {.learning_rate = 1e37});
  EXPECT_THAT(error_of<TrainError>(explodes),
              AllOf(HasSubstr("not finite at step 4"), HasSubstr("checkpoint of step 2"),
                    HasSubstr("Lower the learning rate")));
  EXPECT_THAT(checkpoint::list_steps(dir_ / "run"), ElementsAre(2));
  expect_identical_arrays(checkpoint::read_checkpoint(checkpoint("run", 2)), before);
}

TEST_F(TrainRun, LossThatIsNotFiniteAtTheFirstStepSaysThatNothingWasSaved) {
  train(config("good", 2, 2));
  CheckpointContents poisoned = checkpoint::read_checkpoint(checkpoint("good", 2));
  Array& scale = poisoned.arrays.at("target/decoder/decoder_norm/scale");
  scale = scale.copy();
  scale.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  make_dirs(dir_ / "poisoned");
  checkpoint::CheckpointManager(dir_ / "poisoned").save(2, poisoned);
  TrainConfig run = config("run", 6, 2);
  run.restore = RestoreCheckpointConfig{.path = checkpoint("poisoned", 2).string()};
  EXPECT_THAT(error_of<TrainError>(run),
              AllOf(HasSubstr("not finite at step 3"), HasSubstr("no checkpoint had been saved")));
  EXPECT_TRUE(checkpoint::list_steps(dir_ / "run").empty());
}

TEST_F(TrainRun, ParametersThatAreNotFiniteAreNotSaved) {
  train(config("run", 2, 1));
  // The loss of step 3 is finite, but its update is not, and step 3 is to be saved.
  const TrainConfig explodes = config("run", 6, 1, {.learning_rate = 1e39});
  EXPECT_THAT(error_of<TrainError>(explodes),
              AllOf(HasSubstr("step 3"), HasSubstr("target/"), HasSubstr("checkpoint of step 2")));
  EXPECT_THAT(checkpoint::list_steps(dir_ / "run"), ElementsAre(1, 2));
}

TEST_F(TrainRun, WritesTensorBoardFilesModelInfoAndConfiguration) {
  TrainConfig run = config("run", 2, 2);
  const DatasetConfig eval{.mixture_or_task = run.train_dataset.mixture_or_task,
                           .task_feature_lengths = {{"inputs", 16}, {"targets", 16}},
                           .split = "train",
                           .batch_size = 8,
                           .shuffle = false};
  run.train_eval_dataset = run.infer_eval_dataset = eval;
  run.eval_steps = 1;
  run.infer_eval_examples = 8;
  run.sample_predictions = 1;
  run.config_text = "TRAIN_STEPS = 2\n";
  const std::string log = log_of(run);
  auto event_files = [&](const std::string& folder) {
    return glob((dir_ / ("run/" + folder)).string() + "/events.out.tfevents.*");
  };
  for (const char* folder : {"train", "training_eval/letters", "inference_eval/letters"}) {
    const auto files = event_files(folder);
    ASSERT_EQ(files.size(), 1u) << folder;
    TfRecordReader reader(files[0]);
    std::string record, all;
    while (reader.next(record)) all += record;
    EXPECT_THAT(all, HasSubstr(std::string(folder) == "inference_eval/letters" ? "eval/sequence_accuracy"
                                                                               : "accuracy"))
        << folder;
  }
  EXPECT_EQ(glob((dir_ / "run/inference_eval").string() + "/letters-*2.jsonl").size(), 1u);
  EXPECT_THAT(read_file(dir_ / "run/model-info.txt"), HasSubstr("token_embedder/embedding"));
  EXPECT_EQ(read_file(dir_ / "run/config.gin"), run.config_text);
  // The progress line, with the seconds of compiling once.
  EXPECT_THAT(log, AllOf(HasSubstr("step 1/2 | loss"), HasSubstr("step 2/2 | loss"), HasSubstr("tok/s"),
                         HasSubstr("ms/step"), HasSubstr("compiled in"), HasSubstr("(truth: ")));
  EXPECT_EQ(log.find("compiled in"), log.rfind("compiled in"));
}

TEST_F(TrainRun, EmptyDatasetIsAnErrorThatNamesTheTask) {
  write_file(table(), "");
  EXPECT_THAT(error_of<DataError>(config("run", 2, 2)), HasSubstr("letters"));
}

TEST_F(TrainRun, TruncatedDataNamesFileAndLineAndKeepsCheckpoints) {
  train(config("run", 2, 2));
  write_file(table(), test::letter_rows(200) + "cut of");
  EXPECT_THAT(error_of<DataError>(config("run", 200, 100)),
              AllOf(HasSubstr("letters.tsv"), HasSubstr("201")));
  EXPECT_THAT(checkpoint::list_steps(dir_ / "run"), testing::Contains(2));
}

TEST_F(TrainRun, MissingDataNamesTheFile) {
  fs::remove(table());
  EXPECT_THAT(error_of<Error>(config("run", 2, 2)), HasSubstr("letters.tsv"));
}

TEST_F(TrainRun, WrongConfigurationIsReportedBeforeAnythingIsMade) {
  TrainConfig run = config("run", 0, 2);
  EXPECT_THAT(error_of<ConfigError>(run), HasSubstr("total_steps must be positive, found 0"));
  run = config("run", 2, 2, {.num_microbatches = 3});
  EXPECT_THAT(error_of<ConfigError>(run), HasSubstr("num_microbatches 3"));
  run = config("run", 2, 2, {.mesh = {.data = 3, .model = 1}});
  EXPECT_THAT(error_of<ConfigError>(run), HasSubstr("3 data-parallel devices"));
  run = config("run", 2, 0);
  EXPECT_THAT(error_of<ConfigError>(run), HasSubstr("period must be positive"));
  EXPECT_FALSE(is_dir(dir_ / "run"));
}

}  // namespace
}  // namespace t5x
