#include "apps/program.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/register.h"
#include "base/error.h"
#include "base/strings.h"

namespace t5x::apps {

std::vector<std::string> take_gin_bindings(std::vector<std::string>& arguments) {
  constexpr std::string_view kPrefix = "--gin.";
  std::vector<std::string> rest, bindings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with(kPrefix)) {
      rest.push_back(arguments[i]);
      continue;
    }
    std::string binding = arguments[i].substr(kPrefix.size());
    if (binding.find('=') == std::string::npos) {
      if (i + 1 == arguments.size()) {
        throw_error<UsageError>("'{0}' has no value; write {0}=VALUE", arguments[i]);
      }
      binding += "=" + arguments[++i];
    }
    bindings.push_back(std::move(binding));
  }
  arguments = std::move(rest);
  return bindings;
}

void throw_unknown_arguments(const std::vector<std::string>& unknown, const std::vector<std::string>& known,
                             const std::string& command) {
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  if (!name.starts_with("-")) {
    throw_error<UsageError>("'{}' is not expected here; see {} --help", name, command);
  }
  throw_error<UsageError>("unknown flag '{}'{}; see {} --help", name, did_you_mean(name, known), command);
}

std::vector<fs::path> search_paths(const GinFlags& flags) {
  std::vector<fs::path> paths;
  for (const std::string& list : flags.search_paths) {
    for (const std::string& path : split(list, ',')) {
      if (path.empty()) continue;
      if (!is_dir(path)) throw_error<UsageError>("--gin_search_paths: '{}' is no directory", path);
      paths.emplace_back(path);
    }
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) {
    const fs::path root = program.parent_path().parent_path();
    paths.push_back(root / "configs");
    paths.push_back(root / "share/t5x/configs");
  }
  paths.emplace_back(T5X_CONFIG_DIR);
  return paths;
}

Configuration::Configuration(bool dry_run) : context(std::make_shared<Context>()), config(registry) {
  context->dry_run = dry_run;
  register_all(registry, context);
  config.set_main_module("t5x.train");
}

void Configuration::parse(const GinFlags& flags) {
  for (const fs::path& path : search_paths(flags)) config.add_search_path(path);
  for (const std::string& file : flags.files) config.parse_file(file);
  for (const std::string& binding : flags.bindings) config.bind(binding);
}

int run_program(const char* name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return kExitUsage;
  } catch (const Error& e) {
    fmt::print(stderr, "{}: error: {}\n", name, e.what());
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: unexpected error: {}\n", name, e.what());
  }
  return kExitError;
}

}  // namespace t5x::apps
