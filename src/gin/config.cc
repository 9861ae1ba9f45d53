#include "gin/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "gin/check.h"
#include "gin/runtime.h"

namespace t5x::gin {

namespace {

constexpr size_t kMaxIncludeDepth = 50;
constexpr std::string_view kMain = "__main__";

bool is_macro_selector(std::string_view selector) { return selector == "macro" || selector == "gin.macro"; }

std::string quoted_list(const std::vector<const Configurable*>& configurables) {
  std::string text;
  for (const Configurable* c : configurables)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", c->name);
  return text;
}

}  // namespace

Config::Config(Registry& registry) : registry_(&registry), runtime_(std::make_unique<Runtime>()) {}
Config::~Config() = default;

void Config::add_search_path(const fs::path& path) { search_paths_.push_back(path); }
void Config::set_main_module(std::string module) { main_module_ = std::move(module); }
void Config::set_module_importer(std::function<bool(const std::string&)> importer) {
  importer_ = std::move(importer);
}

void Config::require_open() const {
  if (finalized_) throw_error<ConfigError>("the configuration is final: bind everything before finalize()");
}

void Config::parse_file(const std::string& path) {
  require_open();
  std::vector<fs::path> candidates{path};
  if (!fs::path(path).is_absolute()) {
    for (const fs::path& prefix : search_paths_) candidates.push_back(prefix / path);
  }
  auto found =
      std::find_if(candidates.begin(), candidates.end(), [](const fs::path& p) { return is_file(p); });
  if (found == candidates.end()) {
    std::string searched;
    for (const fs::path& candidate : candidates) searched += "\n    " + candidate.string();
    throw_error<ConfigError>(
        "gin file '{}' not found; looked for{}\n  check the path, or add the directory that it is "
        "relative to (--gin_search_paths)",
        path, searched);
  }
  const std::string real = found->lexically_normal().string();
  if (std::find(open_files_.begin(), open_files_.end(), real) != open_files_.end()) {
    throw_error<ConfigError>("gin file '{}' includes itself", real);
  }
  if (open_files_.size() >= kMaxIncludeDepth) {
    throw_error<ConfigError>("includes are nested deeper than {} files", kMaxIncludeDepth);
  }
  files_.push_back(real);
  open_files_.push_back(real);
  struct Close {
    std::vector<std::string>& files;
    ~Close() { files.pop_back(); }
  } close{open_files_};
  parse_text(read_file(real), real);
}

void Config::parse_string(const std::string& text, const std::string& origin) {
  require_open();
  parse_text(text, origin);
}

void Config::bind(const std::string& name_and_value) {
  require_open();
  const size_t equals = name_and_value.find('=');
  if (equals == std::string::npos) {
    throw_error<ConfigError>("expected NAME=VALUE in the gin binding '{}'", name_and_value);
  }
  const std::string name(strip(std::string_view(name_and_value).substr(0, equals)));
  const std::string value = name_and_value.substr(equals + 1);
  const std::string flag = "--gin." + name;
  try {
    parse_text(name_and_value, flag);
  } catch (Error& e) {
    e.add_context(fmt::format("flag {}={} (a str needs quotes that the shell leaves: {}='\"text\"')", flag,
                              strip(value), flag));
    throw;
  }
}

void Config::bind_value(const std::string& key, Value value) {
  require_open();
  // Taken apart as the binding of a placeholder, so that names follow one rule.
  Parser parser(key + " = None", "<bind_value>");
  std::optional<Statement> statement = parser.next();
  auto* binding = statement ? std::get_if<BindingStatement>(&*statement) : nullptr;
  if (binding == nullptr) throw_error<ConfigError>("expected the name of a binding, got '{}'", key);
  binding->value = std::move(value);
  Context context;
  apply_binding(*binding, context);
}

void Config::parse_text(const std::string& text, const std::string& origin) {
  Context context;
  Parser parser(text, origin, [&](Reference& reference) {
    Found found = resolve(reference.name, context);
    reference.target = found.target;
    reference.why = std::move(found.why);
    reference.foreign = found.foreign || skip_unknown_ || skip_unknown_names_.contains(reference.name);
    if (found.target != nullptr) used_.insert(found.target);
  });
  while (std::optional<Statement> statement = parser.next()) apply(*statement, context);
}

void Config::apply(const Statement& statement, Context& context) {
  if (const auto* binding = std::get_if<BindingStatement>(&statement)) {
    apply_binding(*binding, context);
  } else if (const auto* import = std::get_if<ImportStatement>(&statement)) {
    apply_import(*import, context);
  } else if (const auto* include = std::get_if<IncludeStatement>(&statement)) {
    in_context(fmt::format("included at {}", include->location.str()), [&] { parse_file(include->path); });
  } else {
    const auto& block = std::get<BlockStatement>(statement);
    if (is_macro_selector(block.selector)) return;
    const Found found = resolve(block.selector, context);
    if (found.target != nullptr) {
      used_.insert(found.target);
    } else if (!should_skip(block.selector, found)) {
      problems_.push_back({block.location, found.why});
    }
  }
}

void Config::apply_import(const ImportStatement& statement, Context& context) {
  constexpr std::string_view kGin = "__gin__.";
  if (statement.is_from && statement.module.starts_with(kGin)) {
    const std::string feature = statement.module.substr(kGin.size());
    if (!statement.alias.empty()) {
      throw_error<ConfigError>("{}: imports from __gin__ take no 'as'", statement.location.str());
    }
    if (feature != "dynamic_registration") {
      throw_error<ConfigError>("{}: unknown gin feature '{}'; known: dynamic_registration",
                               statement.location.str(), feature);
    }
    if (!context.imports.empty()) {
      throw_error<ConfigError>(
          "{}: dynamic_registration must come before all other imports, but '{}' came first",
          statement.location.str(), context.imports.front().str());
    }
    context.dynamic = true;
    dynamic_ = true;
  } else {
    const std::string name = statement.bound_name();
    if (context.dynamic && name == "gin") {
      throw_error<ConfigError>("{}: the name 'gin' is taken; write '{} as another_name'",
                               statement.location.str(), statement.str());
    }
    context.symbols[name] = statement.bound_module();
    all_symbols_[name] = statement.bound_module();
    if (imported_modules_.insert(statement.module).second && importer_ && statement.module != kMain &&
        !registry_->has_module(statement.module)) {
      in_context(fmt::format("importing '{}' at {}", statement.module, statement.location.str()),
                 [&] { return importer_(statement.module); });
    }
  }
  context.imports.push_back(statement);
  imports_.push_back(statement);
}

void Config::apply_binding(const BindingStatement& statement, Context& context) {
  const bool long_form = is_macro_selector(statement.selector) && statement.param == "value";
  if (statement.param.empty() || long_form) {
    std::string name = statement.scope;
    if (!long_form) name += (name.empty() ? "" : "/") + statement.selector;
    if (name.empty()) throw_error<ConfigError>("{}: a macro needs a name", statement.location.str());
    macros_[name] = statement.value;
    return;
  }
  const Found found = resolve(statement.selector, context);
  if (found.target == nullptr) {
    const bool reported = std::any_of(problems_.begin(), problems_.end(),
                                      [&](const Problem& problem) { return problem.message == found.why; });
    if (!reported && !should_skip(statement.selector, found))
      problems_.push_back({statement.location, found.why});
    return;
  }
  const Configurable& target = *found.target;
  used_.insert(found.target);
  if (!target.any_params && target.find_param(statement.param) == nullptr) {
    std::vector<std::string> names;
    for (const Param& param : target.params) names.push_back(param.name);
    problems_.push_back(
        {statement.location, fmt::format("configurable '{}' has no parameter '{}'{}", target.name,
                                         statement.param, did_you_mean(statement.param, names))});
    return;
  }
  bindings_[{statement.scope, found.target}][statement.param] = statement.value;
}

bool Config::should_skip(const std::string& selector, const Found& found) const {
  return found.target == nullptr && (skip_unknown_ || skip_unknown_names_.contains(selector));
}

Config::Found Config::resolve(const std::string& selector, const Context& context) const {
  if (selector == "singleton" || selector == "gin.singleton")
    return {registry_->find("gin.singleton"), {}, false};
  if (context.dynamic) return resolve_imported(selector, context);
  if (const Configurable* exact = registry_->find(selector)) return {exact, {}, false};
  // What a file imported so far is what its user means by a name; only then any configurable will do.
  Found found = resolve_imported(selector, Context{false, all_symbols_, {}});
  if (found.target != nullptr) return found;
  Found by_suffix = resolve_by_suffix(selector);
  if (by_suffix.target == nullptr && found.foreign) return found;
  return by_suffix;
}

// `symbol.rest`, the symbol being one that an import statement bound.
Config::Found Config::resolve_imported(const std::string& selector, const Context& context) const {
  const size_t dot = selector.find('.');
  const std::string symbol = selector.substr(0, dot);
  auto bound = context.symbols.find(symbol);
  if (bound == context.symbols.end()) {
    std::string hint;
    for (const Configurable* match : registry_->matches(selector)) {
      const size_t cut = match->module.rfind('.');
      const std::string statement =
          cut == std::string::npos
              ? "import " + match->module
              : fmt::format("from {} import {}", match->module.substr(0, cut), match->module.substr(cut + 1));
      hint += fmt::format("{}'{}'", hint.empty() ? "; add " : " or ", statement);
    }
    if (hint.empty()) hint = did_you_mean(selector, registry_->names());
    return {nullptr,
            fmt::format("no configurable '{}': '{}' is not imported in this file{}", selector, symbol, hint),
            false};
  }
  const std::string rest = dot == std::string::npos ? "" : selector.substr(dot);
  if (bound->second == kMain && main_module_.empty())
    return resolve_by_suffix(rest.empty() ? rest : rest.substr(1));
  const std::string module = bound->second == kMain ? main_module_ : bound->second;
  const std::string full = module + rest;
  if (const Configurable* target = registry_->find(full)) return {target, {}, false};

  const std::string inner = full.substr(0, full.rfind('.'));
  if (!registry_->has_module(inner) && !registry_->has_module(module)) {
    return {nullptr,
            fmt::format("no configurable '{}': nothing of the module '{}' is built in{}", full, module,
                        did_you_mean(full, registry_->names())),
            true};
  }
  std::vector<std::string> names;
  for (const std::string& name : registry_->names()) {
    if (name.starts_with(module + ".")) names.push_back(symbol + name.substr(module.size()));
  }
  std::string hint = did_you_mean(selector, names);
  if (hint.empty()) hint = did_you_mean(full, registry_->names());
  const bool foreign = !registry_->has_module(inner) && inner != module && !registry_->find(inner);
  return {nullptr, fmt::format("no configurable '{}': there is no '{}'{}", selector, full, hint), foreign};
}

Config::Found Config::resolve_by_suffix(const std::string& selector) const {
  std::vector<const Configurable*> matches = registry_->matches(selector);
  if (matches.size() > 1) {
    // As in gin, where only what was imported and named is registered at all.
    std::vector<const Configurable*> used;
    std::copy_if(matches.begin(), matches.end(), std::back_inserter(used),
                 [&](const Configurable* c) { return used_.contains(c); });
    if (used.size() == 1) matches = used;
  }
  if (matches.size() == 1) return {matches[0], {}, false};
  if (matches.empty()) {
    std::vector<std::string> names = registry_->names();
    // Names are compared with as many components as the selector has, else the longest prefix decides.
    const auto dots = std::count(selector.begin(), selector.end(), '.');
    for (std::string& name : names) {
      size_t cut = name.size();
      for (auto i = dots; i >= 0 && cut != std::string::npos; --i)
        cut = cut == 0 ? cut : name.rfind('.', cut - 1);
      if (cut != std::string::npos && cut + 1 < name.size()) name = name.substr(cut + 1);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return {nullptr, fmt::format("no configurable '{}'{}", selector, did_you_mean(selector, names)), false};
  }
  return {
      nullptr,
      fmt::format("'{}' is ambiguous: it may be {}; write more of the name", selector, quoted_list(matches)),
      false};
}

std::vector<Problem> Config::problems() { return Checker(*this).run(); }

void Config::finalize() {
  if (finalized_) return;
  const std::vector<Problem> found = problems();
  if (!found.empty()) {
    std::string text;
    if (found.size() > 1) text = fmt::format("{} problems in the configuration:", found.size());
    for (const Problem& problem : found) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n  ", problem.location.str(), problem.message);
    }
    throw ConfigError(text);
  }
  finalized_ = true;
}

Reference Config::parse_reference(const std::string& name) const {
  Reference reference;
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos) reference.scope = name.substr(0, slash);
  reference.name = name.substr(slash == std::string::npos ? 0 : slash + 1);
  Found found = resolve(reference.name, Context{});
  reference.target = found.target;
  reference.why = std::move(found.why);
  reference.foreign = found.foreign;
  reference.call = true;
  return reference;
}

const Value* Config::query(const std::string& key) const {
  if (auto macro = macros_.find(key); macro != macros_.end()) return &macro->second;
  const size_t dot = key.rfind('.');
  if (dot == std::string::npos) return nullptr;
  const Reference reference = parse_reference(key.substr(0, dot));
  auto found = bindings_.find({reference.scope, reference.target});
  if (found == bindings_.end()) return nullptr;
  auto value = found->second.find(key.substr(dot + 1));
  return value == found->second.end() ? nullptr : &value->second;
}

}  // namespace t5x::gin
