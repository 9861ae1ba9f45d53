// The programs t5x and seqio as a person meets them: help, dry runs of every configuration that comes with
// them, and what they say and return when something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace t5x {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int code = -1;
  std::string text;  // both streams
};

// Runs a shell command line.
Outcome run(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), pclose);
  Outcome outcome;
  std::array<char, 4096> bytes;
  while (size_t count = fread(bytes.data(), 1, bytes.size(), pipe.get()))
    outcome.text.append(bytes.data(), count);
  const int status = pclose(pipe.release());
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}
Outcome t5x(const std::string& arguments) { return run(std::string(T5X_PROGRAM) + " " + arguments); }

class Cli : public testing::Test {
 protected:
  // A run of the pronunciation example with data of its own.
  Cli() {
    for (const char* split : {"train", "validation", "test"})
      write_file(dir_ / (std::string(split) + ".tsv"), "abc\tA B C\ndog\tD O G\ncat\tK A T\n");
  }
  std::string pronounce(const std::string& more = "") const {
    return "train --dry_run --gin_file=examples/pronounce.gin --model_dir=" + (dir_ / "model").string() +
           " --gin.DATA_DIR=\"'" + dir_.path().string() + "'\" " + more;
  }
  // The path of a gin file with this text.
  std::string file(const std::string& name, const std::string& text) const {
    write_file(dir_ / name, text);
    return (dir_ / name).string();
  }
  TempDir dir_;
};

TEST_F(Cli, HelpNamesTheCommands) {
  const Outcome outcome = t5x("--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("train"));
}

TEST_F(Cli, TrainHelpNamesTheFlags) {
  const Outcome outcome = t5x("train --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("--gin_file"), HasSubstr("--gin.NAME=VALUE"), HasSubstr("--dry_run"),
                    HasSubstr("--model_dir"), HasSubstr("--cpu_devices"), HasSubstr("--compile_cache"),
                    HasSubstr("130")));
}

TEST_F(Cli, WithoutCommandIsWrongUsage) { EXPECT_EQ(t5x("").code, 2); }

TEST_F(Cli, UnknownCommandOffersCloseMatch) {
  const Outcome outcome = t5x("trai");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("'trai'"), HasSubstr("'train'")));
}

TEST_F(Cli, UnknownFlagOffersCloseMatch) {
  const Outcome outcome = t5x(pronounce("--dryrun"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("'--dryrun'"), HasSubstr("'--dry_run'")));
}

TEST_F(Cli, WithoutConfigurationIsWrongUsage) {
  const Outcome outcome = t5x("train --dry_run");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("--gin_file"));
}

TEST_F(Cli, GinFlagWithoutValueIsWrongUsage) {
  const Outcome outcome = t5x(pronounce("--gin.BATCH_SIZE"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("'--gin.BATCH_SIZE' has no value"));
}

TEST_F(Cli, DryRunPrintsWhatWouldRun) {
  const Outcome outcome = t5x(pronounce());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("parameters"), HasSubstr("'pronounce' split 'train'"),
                                  HasSubstr("learning rate"), HasSubstr("1 x 1 (data x model)")));
  EXPECT_FALSE(is_dir(dir_ / "model")) << "a dry run leaves nothing behind";
}

TEST_F(Cli, FlagValueMayStandApart) {
  const Outcome outcome = t5x(pronounce("--gin.BATCH_SIZE 24"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("batches of 24"));
}

TEST_F(Cli, MeshFollowsDevicesAndPartitions) {
  const Outcome outcome = t5x(pronounce("--cpu_devices=4 --gin.PjitPartitioner.num_partitions=2"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("2 x 2 (data x model)"));
}

TEST_F(Cli, PartitionsMustDivideDevices) {
  const Outcome outcome = t5x(pronounce("--cpu_devices=4 --gin.PjitPartitioner.num_partitions=3"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("num_partitions is 3"), HasSubstr("4 devices")));
}

// Every model's file together with every kind of run, on a task of the test's own.
TEST_F(Cli, EveryConfigurationPassesADryRun) {
  const std::string task =
      file("task.gin",
           "from __gin__ import dynamic_registration\n"
           "import seqio\n"
           "VOCABULARY = @seqio.ByteVocabulary()\n"
           "MIXTURE_OR_TASK_NAME = @seqio.Task()\n"
           "seqio.Task:\n"
           "  name = 'letters'\n"
           "  source = @seqio.TextLineDataSource()\n"
           "  preprocessors = [@seqio.preprocessors.tokenize]\n"
           "  output_features = {'inputs': @seqio.Feature(), 'targets': @seqio.Feature()}\n"
           "seqio.Feature.vocabulary = %VOCABULARY\n"
           "seqio.TextLineDataSource.split_to_filepattern = {'train': 'a*', 'validation': 'b*'}\n");
  const fs::path configs = fs::path(T5X_SOURCE_DIR) / "configs";
  const std::vector<std::string> models = glob((configs / "t5x/examples/t5/t5_1_*/*.gin").string());
  ASSERT_GE(models.size(), 11u);
  for (const std::string& model : models) {
    for (const char* kind : {"pretrain", "finetune"}) {
      const Outcome outcome = t5x("train --dry_run --gin_file=" + model + " --gin_file=t5x/configs/runs/" +
                                  kind + ".gin --gin_file=" + task +
                                  " --model_dir=/nowhere --gin.TRAIN_STEPS=100 --gin.DROPOUT_RATE=0.0 "
                                  "--gin.INITIAL_CHECKPOINT_PATH=\"'/nowhere/checkpoint_10'\" "
                                  "--gin.TASK_FEATURE_LENGTHS=\"{'inputs': 32, 'targets': 16}\"");
      EXPECT_EQ(outcome.code, 0) << model << " with " << kind << ": " << outcome.text;
    }
  }
}

TEST_F(Cli, MissingVocabularyFileIsAWarningInADryRun) {
  const Outcome outcome = t5x(
      "train --dry_run --gin_file=examples/pronounce.gin --model_dir=/nowhere --gin.DATA_DIR=\"'/nowhere'\" "
      "--gin.VOCABULARY=@seqio.SentencePieceVocabulary\\(\\)");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("warning: the vocabulary 'gs://"), HasSubstr("sentencepiece_model_file")));
}

TEST_F(Cli, UnknownParameterNamesPlaceAndCloseMatch) {
  const std::string extra = file("extra.gin",
                                 "from __gin__ import dynamic_registration\nfrom t5x import utils\n"
                                 "utils.SaveCheckpointConfig.perod = 5\n");
  const Outcome outcome = t5x(pronounce("--gin_file=" + extra));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("extra.gin:3"), HasSubstr("'perod'"), HasSubstr("'period'")));
}

TEST_F(Cli, UnknownConfigurableNamesCloseMatch) {
  const Outcome outcome = t5x(pronounce("--gin.DatasetConfg.batch_size=3"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("DatasetConfg"), HasSubstr("DatasetConfig")));
}

TEST_F(Cli, MissingMacroIsNamed) {
  const Outcome outcome = t5x("train --dry_run --gin_file=examples/pronounce.gin --model_dir=/nowhere");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("DATA_DIR"), HasSubstr("pronounce.gin"), Not(HasSubstr("MODEL_DIR"))));
}

TEST_F(Cli, WrongTypeNamesExpectedAndFound) {
  const Outcome outcome = t5x(pronounce("--gin.TRAIN_STEPS=\"'many'\""));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("total_steps"), HasSubstr("an int"), HasSubstr("'many'")));
}

TEST_F(Cli, MissingIncludeIsNamed) {
  const std::string extra = file("extra.gin", "include 't5x/examples/t5/t5_1_1/smal.gin'\n");
  const Outcome outcome = t5x(pronounce("--gin_file=" + extra));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("smal.gin"), HasSubstr("extra.gin:1")));
}

TEST_F(Cli, VocabularyTooLargeNamesBothSizes) {
  const Outcome outcome = t5x(pronounce("--gin.T5Config.vocab_size=256"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("259"), HasSubstr("256"), HasSubstr("T5Config.vocab_size")));
}

TEST_F(Cli, VocabulariesOfTaskAndModelMustAgree) {
  const Outcome outcome =
      t5x(pronounce("--gin.Feature.vocabulary=@seqio.PassThroughVocabulary\\(\\) "
                    "--gin.PassThroughVocabulary.size=300"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("feature 'inputs'"), HasSubstr("the model")));
}

TEST_F(Cli, FeatureLengthZeroNamesTheFeature) {
  const Outcome outcome = t5x(pronounce("--gin.TASK_FEATURE_LENGTHS=\"{'inputs': 0, 'targets': 96}\""));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("inputs"), HasSubstr("0"), HasSubstr("task_feature_lengths")));
}

TEST_F(Cli, UnknownTaskIsNamed) {
  const Outcome outcome = t5x(pronounce("--gin.MIXTURE_OR_TASK_NAME=\"'c4_v220_span_corruption'\""));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("c4_v220_span_corruption"), HasSubstr("@seqio.Task()")));
}

TEST_F(Cli, UnsupportedValueSaysWhatToDo) {
  const Outcome outcome = t5x(pronounce("--gin.train.relative_steps=10"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("relative_steps"), HasSubstr("total_steps")));
}

TEST_F(Cli, MissingDataIsAnErrorBeforeADeviceIsAsked) {
  fs::remove(dir_ / "validation.tsv");
  std::string arguments = pronounce("--plugin=/nowhere/plugin.so");
  arguments.replace(arguments.find("--dry_run"), 9, "");
  const Outcome outcome = t5x(arguments);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("validation.tsv"), Not(HasSubstr("plugin.so"))));
}

TEST_F(Cli, MissingPluginIsNamed) {
  std::string arguments = pronounce("--plugin=/nowhere/plugin.so");
  arguments.replace(arguments.find("--dry_run"), 9, "");
  const Outcome outcome = t5x(arguments);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("/nowhere/plugin.so"));
}

TEST_F(Cli, InspectShowsEveryStage) {
  const Outcome outcome =
      run(std::string(SEQIO_PROGRAM) + " inspect --gin_file=examples/pronounce.gin --num_examples=1 " +
          "--gin.DATA_DIR=\"'" + dir_.path().string() + "'\"");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("from the source"), HasSubstr("after the preprocessors"),
                    HasSubstr("decoder_target_tokens"), HasSubstr("'A B C'"), Not(HasSubstr("dog"))));
}

TEST_F(Cli, InspectOfMalformedRowNamesFileAndLine) {
  write_file(dir_ / "train.tsv", "abc\tA B C\nno tab here\n");
  const Outcome outcome =
      run(std::string(SEQIO_PROGRAM) + " inspect --gin_file=examples/pronounce.gin --gin.DATA_DIR=\"'" +
          dir_.path().string() + "'\"");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("train.tsv"), HasSubstr("line 2")));
}

}  // namespace
}  // namespace t5x
