// A configuration: gin files, strings and flags, parsed into bindings against a registry of configurables,
// and the calls made with them. Semantics: google/gin-config, config.py; docs/gin.md lists the differences.
//
//   Config config(registry);
//   config.add_search_path("configs");
//   config.parse_file("t5x/configs/runs/pretrain.gin");
//   config.bind("BATCH_SIZE=16");            // --gin.BATCH_SIZE=16
//   config.finalize();                       // all unknown names and missing values in one error
//   config.call("t5x.train.train");
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "gin/parser.h"
#include "gin/registry.h"
#include "gin/value.h"

namespace t5x::gin {

// One problem found while parsing or finalizing.
struct Problem {
  Location location;
  std::string message;
};

class Config {
 public:
  // The registry must outlive the configuration. It may grow (module_importer) until finalize().
  explicit Config(Registry& registry);
  ~Config();
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // Set-up, before anything is parsed.
  void add_search_path(const fs::path& path);
  // What `__main__` stands for in `import __main__ as train_script`, e.g. "t5x.train".
  void set_main_module(std::string module);
  // Called once for each imported module that the registry does not know; may add configurables. True: it
  // knew.
  void set_module_importer(std::function<bool(const std::string& module)> importer);
  // Bindings and references to unknown configurables are dropped in silence: all, or those with these names.
  void set_skip_unknown(bool all) { skip_unknown_ = all; }
  void set_skip_unknown(std::set<std::string> names) { skip_unknown_names_ = std::move(names); }

  // Later bindings win. Syntax errors and missing files throw ConfigError at once; unknown names wait for
  // finalize(), so that they are reported together.
  void parse_file(const std::string& path);
  void parse_string(const std::string& text, const std::string& origin = "<string>");
  // "NAME=VALUE" of a flag --gin.NAME=VALUE: a macro, or "scope/name.param=VALUE".
  void bind(const std::string& name_and_value);
  // From C++; `key` as in query().
  void bind_value(const std::string& key, Value value);

  // Throws one ConfigError that lists every unknown configurable, parameter, macro and reference and every
  // %gin.REQUIRED that nobody replaced. Afterwards the bindings cannot change.
  void finalize();
  bool finalized() const { return finalized_; }
  // The same problems as a list, without throwing.
  std::vector<Problem> problems();

  // The bound value, not evaluated, of "NAME" (a macro) or "scope/name.param"; null if nothing is bound.
  const Value* query(const std::string& key) const;
  // The same, evaluated. Throws ConfigError if nothing is bound.
  Value value(const std::string& key);
  Value evaluate(const Value& value);
  // Calls "scope/name" with its bindings; `kwargs` win over them.
  Value call(const std::string& name, const Kwargs& kwargs = {});
  Value call(const Reference& reference, const Kwargs& kwargs = {});
  // As call(), but runs only configurables marked cheap; every binding that the call would use is evaluated
  // and checked, and stands as Pending where something was not run. For --dry_run.
  void validate(const std::string& name, const Kwargs& kwargs = {});

  // All bindings, and the parameters used by calls so far with their defaults, in gin's format; both parse
  // again to the same bindings.
  std::string config_str() const;
  std::string operative_config_str() const;
  // gin's rendering of such a string for TensorBoard's text tab.
  static std::string markdown(const std::string& config_text);

  const std::vector<ImportStatement>& imports() const { return imports_; }
  // Files read so far, in order.
  const std::vector<std::string>& files() const { return files_; }
  const Registry& registry() const { return *registry_; }

 private:
  friend class Evaluator;
  friend class Writer;
  friend class Checker;
  struct Key {
    std::string scope;
    const Configurable* target;
    auto operator<=>(const Key&) const = default;
  };
  using Params = std::map<std::string, Value>;
  // The import table of one file.
  struct Context {
    bool dynamic = false;
    std::map<std::string, std::string> symbols;  // bound name -> module path
    std::vector<ImportStatement> imports;
  };
  struct Found {
    const Configurable* target = nullptr;
    std::string why;
    bool foreign = false;
  };

  void parse_text(const std::string& text, const std::string& origin);
  void apply(const Statement& statement, Context& context);
  void apply_import(const ImportStatement& statement, Context& context);
  void apply_binding(const BindingStatement& statement, Context& context);
  Found resolve(const std::string& selector, const Context& context) const;
  Found resolve_imported(const std::string& selector, const Context& context) const;
  Found resolve_by_suffix(const std::string& selector) const;
  bool should_skip(const std::string& selector, const Found& found) const;
  void require_open() const;
  Reference parse_reference(const std::string& name) const;

  Registry* registry_;
  std::vector<fs::path> search_paths_;
  std::string main_module_;
  std::function<bool(const std::string&)> importer_;
  bool skip_unknown_ = false;
  std::set<std::string> skip_unknown_names_;
  bool finalized_ = false;

  std::map<Key, Params> bindings_;
  std::map<std::string, Value> macros_;
  std::vector<Problem> problems_;
  std::vector<ImportStatement> imports_;
  bool dynamic_ = false;
  std::set<std::string> imported_modules_;
  std::map<std::string, std::string>
      all_symbols_;  // of all files so far, for flags and for files without imports
  std::set<const Configurable*> used_;
  std::vector<std::string> files_;
  std::vector<std::string> open_files_;

  struct Runtime;  // operative parameters, singletons
  std::unique_ptr<Runtime> runtime_;
};

// Runs calls below it in a scope, as gin.config_scope does: "a/b" is appended to the current scope.
class ScopeGuard {
 public:
  explicit ScopeGuard(std::string_view scope);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  std::string previous_;
};
const std::string& current_scope();

}  // namespace t5x::gin
