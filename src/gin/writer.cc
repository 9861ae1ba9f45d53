// Configurations as text, in gin's format. Semantics: config.py, _config_str, ImportManager and markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/strings.h"
#include "gin/config.h"
#include "gin/repr.h"
#include "gin/runtime.h"

namespace t5x::gin {

namespace {

constexpr size_t kLineLength = 80;
constexpr size_t kIndent = 4;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Innermost name first, then the modules, then the scopes from the inside out.
std::vector<std::string> sort_key(const std::string& selector, const std::string& scope) {
  std::vector<std::string> parts = split(lower(selector), '.');
  std::reverse(parts.begin(), parts.end());
  std::vector<std::string> scopes = split(lower(scope), '/');
  parts.insert(parts.end(), scopes.rbegin(), scopes.rend());
  return parts;
}

}  // namespace

class Writer {
 public:
  Writer(const Config& config, const std::map<Config::Key, Config::Params>& bindings,
         const std::map<std::string, Value>& macros)
      : config_(config), bindings_(bindings), macros_(macros) {}

  std::string write() {
    collect_imports();
    std::vector<std::string> lines;
    // dynamic_registration must come before any other import, whatever their names.
    auto rank = [](const ImportStatement& import) {
      return std::pair(!import.module.starts_with("__gin__."), import.module);
    };
    std::stable_sort(imports_.begin(), imports_.end(),
                     [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    for (const ImportStatement& statement : imports_) lines.push_back(statement.str());
    if (!lines.empty()) lines.emplace_back();
    write_macros(lines);
    write_sections(lines);
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\n" : "") + lines[i];
    return out;
  }

 private:
  // Every import once, under a name of its own, and those that the configurables in use need.
  void collect_imports() {
    std::vector<ImportStatement> given = config_.imports_;
    std::stable_sort(given.begin(), given.end(), [](const auto& a, const auto& b) {
      return std::pair(a.module, !a.is_from) < std::pair(b.module, !b.is_from);
    });
    for (const ImportStatement& statement : given) add_import(statement);
    if (!config_.dynamic_) return;
    for (const auto& [key, params] : bindings_) {
      require_import(*key.target);
      for (const auto& [name, value] : params) require_imports(value);
    }
    for (const auto& [name, value] : macros_) require_imports(value);
  }

  void add_import(ImportStatement statement) {
    if (!modules_.insert(statement.module).second) return;
    const std::string wanted = statement.bound_name();
    std::string name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i) name = wanted + std::to_string(i);
    if (name != wanted) statement.alias = name;
    imports_.push_back(std::move(statement));
  }

  void require_import(const Configurable& target) {
    if (target.module == "gin" || !find_selector(target).empty()) return;
    ImportStatement statement;
    statement.module = target.module;
    statement.is_from = target.module.find('.') != std::string::npos;
    add_import(std::move(statement));
  }

  void require_imports(const Value& value) {
    if (value.is(Kind::kReference)) {
      if (value.as_reference().target != nullptr) require_import(*value.as_reference().target);
    } else if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
      for (const Value& item : value.items()) require_imports(item);
    } else if (value.is(Kind::kDict)) {
      for (const auto& [key, item] : value.entries()) {
        require_imports(key);
        require_imports(item);
      }
    }
  }

  // The name that the import of the longest enclosing module gives to the configurable; empty if none does.
  std::string find_selector(const Configurable& target) const {
    if (target.module == "gin") return target.name;
    std::vector<std::string> names = target.aliases;
    names.insert(names.begin(), target.name);
    size_t longest = 0;
    std::string selector;
    for (const ImportStatement& statement : imports_) {
      const std::string module = statement.module == "__main__" ? config_.main_module_ : statement.module;
      if (module.empty() || module.size() <= longest) continue;
      for (const std::string& name : names) {
        if (!name.starts_with(module + ".")) continue;
        const bool bound = statement.is_from || !statement.alias.empty() || statement.module == "__main__";
        selector = (bound ? statement.bound_name() : statement.module) + name.substr(module.size());
        longest = module.size();
        break;
      }
    }
    return selector;
  }

  std::string selector(const Configurable& target) const {
    if (!config_.dynamic_) return config_.registry_->minimal_selector(target);
    const std::string found = find_selector(target);
    return found.empty() ? target.name : found;
  }

  std::string reference(const Reference& reference) const {
    if (reference.target == nullptr) return reference.str();
    Reference named = reference;
    if (config_.dynamic_) named.name = selector(*reference.target);
    return named.str();
  }

  std::string binding(const std::string& key, const Value& value) const {
    std::string text =
        pretty_value(value, kLineLength - kIndent, [this](const Reference& r) { return reference(r); });
    if (text.find('\n') == std::string::npos && utf8_length(key + text) <= kLineLength)
      return key + " = " + text;
    const std::string indent(kIndent, ' ');
    std::string out = key + " = \\";
    for (const std::string& line : split(text, '\n')) out += "\n" + indent + line;
    return out;
  }

  void write_macros(std::vector<std::string>& lines) const {
    std::vector<std::pair<std::vector<std::string>, std::string>> order;
    for (const auto& [name, value] : macros_) {
      if (is_literal(value)) order.emplace_back(sort_key("gin.macro", name), name);
    }
    if (order.empty()) return;
    std::sort(order.begin(), order.end());
    lines.emplace_back("# Macros:");
    lines.push_back("# " + std::string(kLineLength - 2, '='));
    for (const auto& [key, name] : order) lines.push_back(binding(name, macros_.at(name)));
    lines.emplace_back();
  }

  void write_sections(std::vector<std::string>& lines) const {
    std::vector<std::pair<std::vector<std::string>, const std::pair<const Config::Key, Config::Params>*>>
        order;
    for (const auto& entry : bindings_) {
      order.emplace_back(sort_key(entry.first.target->name, entry.first.scope), &entry);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [sort, entry] : order) {
      const std::string& scope = entry->first.scope;
      const std::string name = (scope.empty() ? "" : scope + "/") + selector(*entry->first.target);
      lines.push_back(fmt::format("# Parameters for {}:", name));
      lines.push_back("# " + std::string(kLineLength - 2, '='));
      const size_t before = lines.size();
      for (const auto& [param, value] : entry->second) {
        if (is_literal(value)) lines.push_back(binding(name + "." + param, value));
      }
      if (lines.size() == before) lines.emplace_back("# None.");
      lines.emplace_back();
    }
  }

  const Config& config_;
  const std::map<Config::Key, Config::Params>& bindings_;
  const std::map<std::string, Value>& macros_;
  std::vector<ImportStatement> imports_;
  std::set<std::string> modules_;
  std::set<std::string> names_;
};

std::string Config::config_str() const { return Writer(*this, bindings_, macros_).write(); }

std::string Config::operative_config_str() const {
  std::lock_guard lock(runtime_->mutex);
  return Writer(*this, runtime_->operative, runtime_->operative_macros).write();
}

std::string Config::markdown(const std::string& config_text) {
  std::string out;
  bool first = true;
  std::vector<std::string> lines = split(config_text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) {
    if (!std::exchange(first, false)) out += '\n';
    const std::string comment = line.starts_with("#") ? line.substr(std::min<size_t>(2, line.size())) : "";
    if (!line.starts_with("#")) {
      out += "    " + line;
    } else if (comment.starts_with("None")) {
      out += "    # None.";
    } else if (comment.ends_with(":")) {
      out += "#### " + comment;
    } else if (!comment.starts_with("====")) {
      out += comment;
    }
  }
  return out;
}

}  // namespace t5x::gin
