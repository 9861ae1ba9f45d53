// The program `t5x`: one command after another word.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/train_command.h"
#include "base/error.h"
#include "base/strings.h"

namespace {

constexpr const char* kHelp = R"(t5x trains Transformer language models on XLA, as gin configurations say.

Usage: t5x COMMAND [flags]

Commands:
  train    train a model, evaluate it and save checkpoints
  help     this text; t5x COMMAND --help tells a command's flags

Examples:
  t5x train --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"' --model_dir=/tmp/model
  t5x train --gin_file=examples/pronounce.gin --gin.DATA_DIR='"data"' --model_dir=/tmp/model --dry_run
  tensorboard --logdir=/tmp/model

Data pipelines are looked at with `seqio inspect`. Configurations are described in docs/configs.md.
)";

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return t5x::apps::kExitUsage;
  }
  const std::string& command = arguments[0];
  if (command == "help" || command == "--help" || command == "-h") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (command == "train") return t5x::apps::train_command({arguments.begin() + 1, arguments.end()});
  t5x::throw_error<t5x::apps::UsageError>("unknown command '{}'{}; see t5x --help", command,
                                          t5x::did_you_mean(command, {"train", "help"}));
}

}  // namespace

int main(int argc, char** argv) {
  return t5x::apps::run_program("t5x", [&] { return run({argv + 1, argv + argc}); });
}
