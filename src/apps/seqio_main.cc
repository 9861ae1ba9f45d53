// The program `seqio`: looks at data pipelines.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/inspect.h"
#include "apps/program.h"
#include "base/error.h"
#include "base/strings.h"

namespace {

constexpr const char* kHelp = R"(seqio looks at data pipelines: tasks and what becomes of their examples.

Usage: seqio COMMAND [flags]

Commands:
  inspect  print the first examples of a task, before and after each stage
  help     this text; seqio COMMAND --help tells a command's flags
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
  if (command == "inspect") return t5x::apps::inspect_command({arguments.begin() + 1, arguments.end()});
  t5x::throw_error<t5x::apps::UsageError>("unknown command '{}'{}; see seqio --help", command,
                                          t5x::did_you_mean(command, {"inspect", "help"}));
}

}  // namespace

int main(int argc, char** argv) {
  return t5x::apps::run_program("seqio", [&] { return run({argv + 1, argv + argc}); });
}
