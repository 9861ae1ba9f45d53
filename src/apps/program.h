// What the programs of this folder share: the command line of gin, the configuration it makes, and the one
// place where errors become messages and exit codes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/settings.h"
#include "base/file.h"
#include "gin/config.h"

namespace t5x::apps {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

// A command line that cannot be understood.
class UsageError : public Error {
  using Error::Error;
};

struct GinFlags {
  std::vector<std::string> files;         // --gin_file
  std::vector<std::string> bindings;      // --gin.NAME=VALUE, --gin_bindings, as "NAME=VALUE"
  std::vector<std::string> search_paths;  // --gin_search_paths
};
// Takes --gin.NAME=VALUE and --gin.NAME VALUE out of the arguments, in their order. Throws UsageError when
// the value is missing.
std::vector<std::string> take_gin_bindings(std::vector<std::string>& arguments);
// "Unknown flag '--dry_ru'; did you mean '--dry_run'?" for the first argument that `known` does not hold.
[[noreturn]] void throw_unknown_arguments(const std::vector<std::string>& unknown,
                                          const std::vector<std::string>& known, const std::string& command);

// Where include and --gin_file look: the current directory, the paths given, then the configurations that
// come with the program.
std::vector<fs::path> search_paths(const GinFlags& flags);

// A registry and a configuration over it, parsed but not finalized.
struct Configuration {
  explicit Configuration(bool dry_run);
  void parse(const GinFlags& flags);

  ContextPtr context;
  gin::Registry registry;
  gin::Config config;
};

// Runs `body`; an error is printed with its context and becomes an exit code.
int run_program(const char* name, const std::function<int()>& body);

}  // namespace t5x::apps
