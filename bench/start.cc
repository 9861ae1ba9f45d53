#include "bench/start.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "bench/figures.h"

namespace t5x::bench {
namespace {

// t5x's own configuration of the small size over a task of random words, in the shapes of the train step
// benchmark.
constexpr const char* kConfig = R"(from __gin__ import dynamic_registration
import seqio
from t5x import utils
import __main__ as train_script
include 't5x/examples/t5/t5_1_1/small.gin'
include 't5x/configs/runs/pretrain.gin'
VOCABULARY = @seqio.ByteVocabulary()
MIXTURE_OR_TASK_NAME = @seqio.Task()
TASK_FEATURE_LENGTHS = {'inputs': 128, 'targets': 32}
BATCH_SIZE = 8
RANDOM_SEED = 0
DROPOUT_RATE = 0.1
USE_CACHED_TASKS = False
DATA_DIR = %gin.REQUIRED
seqio.Task:
  name = 'words'
  source = @seqio.TsvDataSource()
  preprocessors = [@seqio.preprocessors.tokenize, @seqio.preprocessors.append_eos]
  output_features = {'inputs': @seqio.Feature(), 'targets': @seqio.Feature()}
seqio.TsvDataSource:
  directory = %DATA_DIR
  split_to_filepattern = {'train': 'train.tsv', 'validation': 'train.tsv'}
  columns = ('inputs', 'targets')
seqio.Feature.vocabulary = %VOCABULARY
utils.CheckpointConfig:
  save = None
  restore = None
train_script.train:
  train_eval_dataset_cfg = None
  stats_period = 1
)";

struct Finished {
  double first_step_seconds = 0;  // from the start of the process to its first progress line
  double resident_bytes = 0;
  double input_wait_percent = 0;  // of the last progress line
};

Finished run(const std::string& program, const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) throw_io_error("opening", "a pipe", errno);
  const double start = wall_seconds();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(ends[1]);
  FILE* output = fdopen(ends[0], "r");
  Finished result;
  std::string all;
  char line[4096];
  while (std::fgets(line, sizeof line, output) != nullptr) {
    all += line;
    if (std::strncmp(line, "step ", 5) != 0) continue;
    if (result.first_step_seconds == 0) result.first_step_seconds = wall_seconds() - start;
    if (const char* wait = std::strstr(line, "input ")) result.input_wait_percent = std::atof(wait + 6);
  }
  std::fclose(output);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || result.first_step_seconds == 0) {
    throw_error<Error>("'{}' did not train; it printed:\n{}", program, all);
  }
  result.resident_bytes = 1024.0 * static_cast<double>(usage.ru_maxrss);
  return result;
}

void write_words(const fs::path& path) {
  std::mt19937 random(1);
  std::string text;
  auto words = [&](int letters) {
    for (int i = 0; i < letters; ++i) text += i % 6 == 5 ? ' ' : static_cast<char>('a' + random() % 26);
  };
  for (int row = 0; row < 20000; ++row) {
    words(60);
    text += '\t';
    words(14);
    text += '\n';
  }
  write_file(path, text);
}

}  // namespace

void measure_start(const std::string& t5x) {
  TempDir dir;
  write_words(dir / "train.tsv");
  write_file(dir / "small.gin", kConfig);
  auto arguments = [&](const std::string& model, int steps) {
    return std::vector<std::string>{"train",
                                    "--gin_file=" + (dir / "small.gin").string(),
                                    fmt::format("--gin.DATA_DIR='{}'", dir.path().string()),
                                    fmt::format("--gin.TRAIN_STEPS={}", steps),
                                    "--model_dir=" + (dir / model).string(),
                                    "--compile_cache=" + (dir / "cache").string()};
  };
  print_figure("train_step_start_cold", run(t5x, arguments("cold", 1)).first_step_seconds, std::nullopt,
               "seconds from process start to the first step, empty compile cache");
  print_figure("train_step_start_warm", run(t5x, arguments("warm", 1)).first_step_seconds, std::nullopt,
               "seconds from process start to the first step, warm compile cache");
  const Finished longer = run(t5x, arguments("longer", 30));
  print_figure("train_step_resident", longer.resident_bytes, std::nullopt,
               "bytes resident at most, t5x train, warm compile cache");
  print_figure("train_step_input_wait", longer.input_wait_percent, std::nullopt,
               "percent of the time spent waiting for input");
}

}  // namespace t5x::bench
