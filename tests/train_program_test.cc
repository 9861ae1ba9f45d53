// The program t5x training for real: stopped by a signal and started again, on plugins that are none, on data
// that is empty or broken.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "checkpoint/manager.h"
#include "train/tiny_test_util.h"

namespace t5x {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A running program whose output goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& command, fs::path log) : log_(std::move(log)) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  ~Process() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::string text() const { return is_file(log_) ? read_file(log_) : ""; }
  // False when the program ended, or two minutes went by, without saying it.
  bool says(const std::string& words) const {
    for (int i = 0; i < 2400; ++i) {
      if (text().find(words) != std::string::npos) return true;
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == pid_) return text().find(words) != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  void send(int signal) const { kill(pid_, signal); }
  // The exit code; minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  fs::path log_;
  pid_t pid_ = -1;
};

class TrainProgram : public testing::Test {
 protected:
  TrainProgram() {
    for (const char* split : {"train", "validation", "test"})
      write_file(dir_ / (std::string(split) + ".tsv"), test::letter_rows(200));
  }
  // The pronunciation example in miniature.
  std::vector<std::string> command(int64_t steps, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {
        T5X_PROGRAM,
        "train",
        "--gin_file=examples/pronounce.gin",
        "--model_dir=" + model_dir().string(),
        "--compile_cache=" + test::cache().directory().string(),
        "--gin.DATA_DIR='" + dir_.path().string() + "'",
        "--gin.TRAIN_STEPS=" + std::to_string(steps),
        "--gin.BATCH_SIZE=8",
        "--gin.INFER_BATCH_SIZE=8",
        "--gin.EVAL_EXAMPLES=4",
        "--gin.EVAL_PERIOD=1000000",
        "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 16}",
        "--gin.infer_eval/DatasetConfig.task_feature_lengths={'inputs': 16, 'targets': 16}",
        "--gin.DatasetConfig.pack=False",
        "--gin.SaveCheckpointConfig.period=1000000",
    };
    for (const char* size : {"num_encoder_layers=1", "num_decoder_layers=1", "emb_dim=32", "num_heads=2",
                             "head_dim=16", "mlp_dim=64"})
      words.push_back(std::string("--gin.T5Config.") + size);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  fs::path model_dir() const { return dir_ / "model"; }
  Process start(const std::vector<std::string>& words) const { return {words, dir_ / "log"}; }
  // Exit code and all that was said.
  std::pair<int, std::string> run(const std::vector<std::string>& words) const {
    Process process = start(words);
    const int code = process.wait();
    return {code, process.text()};
  }
  // Starts a run that would take very long, stops it when its first line of progress is there, and continues
  // it for a few steps.
  void stop_and_continue(int signal) const {
    Process first = start(command(1000000));
    ASSERT_TRUE(first.says("| compiled in")) << first.text();
    first.send(signal);
    EXPECT_EQ(first.wait(), 130) << first.text();
    EXPECT_THAT(first.text(), AllOf(HasSubstr("stopped at step"), HasSubstr("saved")));
    const std::vector<int64_t> steps = checkpoint::list_steps(model_dir());
    ASSERT_EQ(steps.size(), 1u) << first.text();
    const auto [code, text] = run(command(steps[0] + 3));
    EXPECT_EQ(code, 0) << text;
    EXPECT_THAT(text,
                AllOf(HasSubstr("continuing from"), HasSubstr("checkpoint_"), Not(HasSubstr("warning"))));
    EXPECT_THAT(checkpoint::list_steps(model_dir()), testing::Contains(steps[0] + 3));
  }
  TempDir dir_;
};

TEST_F(TrainProgram, InterruptedRunIsSavedAndContinues) { stop_and_continue(SIGINT); }

TEST_F(TrainProgram, TerminatedRunIsSavedAndContinues) { stop_and_continue(SIGTERM); }

TEST_F(TrainProgram, KilledRunLeavesADirectoryThatTheNextOneUses) {
  Process first = start(command(1000000, {"--gin.SaveCheckpointConfig.period=3"}));
  ASSERT_TRUE(first.says("| compiled in")) << first.text();
  while (checkpoint::list_steps(model_dir()).empty() && first.text().find("error") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  const int64_t step = checkpoint::list_steps(model_dir()).back();
  const auto [code, text] = run(command(step + 2));
  EXPECT_EQ(code, 0) << text;
  EXPECT_THAT(text, HasSubstr("continuing from"));
}

TEST_F(TrainProgram, MissingPluginIsNamed) {
  const auto [code, text] = run(command(2, {"--plugin=/no/such.so"}));
  EXPECT_EQ(code, 1);
  EXPECT_THAT(text, HasSubstr("/no/such.so"));
}

TEST_F(TrainProgram, TextFileIsNoPlugin) {
  write_file(dir_ / "readme.md", "# How to install the plugin\n");
  const auto [code, text] = run(command(2, {"--plugin=" + (dir_ / "readme.md").string()}));
  EXPECT_EQ(code, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("readme.md"), HasSubstr("plugin")));
}

TEST_F(TrainProgram, EmptyDatasetIsAnError) {
  write_file(dir_ / "train.tsv", "");
  const auto [code, text] = run(command(2));
  EXPECT_EQ(code, 1) << text;
  EXPECT_THAT(text, HasSubstr("'pronounce'"));
}

TEST_F(TrainProgram, TruncatedDataNamesFileAndLine) {
  write_file(dir_ / "train.tsv", test::letter_rows(20) + "cut of");
  const auto [code, text] = run(command(1000000));
  EXPECT_EQ(code, 1) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("train.tsv"), HasSubstr("line 21")));
}

}  // namespace
}  // namespace t5x
