#include "checkpoint/index.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/strings.h"
#include "checkpoint/msgpack.h"

namespace t5x::checkpoint {
namespace {

constexpr std::string_view kPlaceholder =
    "PLACEHOLDER://";  // how Orbax's legacy index names an array stored beside it

MsgpackValue text(std::string_view value) { return {std::string(value)}; }
MsgpackValue integers(const Shape& shape) {
  MsgpackList list;
  for (int64_t dim : shape) list.push_back({dim});
  return {std::move(list)};
}

// The spec TensorStore would open the array with.
MsgpackValue spec_of(const IndexEntry& entry) {
  MsgpackMap kvstore{{"driver", text("file")}, {"path", text(entry.directory + "/")}};
  MsgpackMap compressor{{"id", text("gzip")}, {"level", {int64_t{kGzipLevel}}}};
  MsgpackMap metadata{{"chunks", integers(entry.chunks)},
                      {"compressor", {std::move(compressor)}},
                      {"shape", integers(entry.info.shape)}};
  return {MsgpackMap{{"driver", text("zarr")},
                     {"dtype", text(name(entry.info.dtype))},
                     {"kvstore", {std::move(kvstore)}},
                     {"metadata", {std::move(metadata)}}}};
}

struct Node {
  const IndexEntry* leaf = nullptr;
  std::map<std::string, Node> children;
};

MsgpackValue tree_of(const Node& node) {
  if (node.leaf != nullptr) return node.leaf->array ? MsgpackValue{*node.leaf->array} : spec_of(*node.leaf);
  MsgpackMap map;
  for (const auto& [key, child] : node.children) map.push_back({key, tree_of(child)});
  return {std::move(map)};
}

class Reader {
 public:
  Reader(const std::string& label, Index& index) : label_(label), index_(index) {}

  void walk(const std::string& name, const MsgpackValue& value) {
    if (const MsgpackMap* map = value.as_map()) {
      if (value.find("driver") != nullptr && value.find("kvstore") != nullptr)
        return add(name, read_spec(name, value));
      for (const auto& [key, child] : *map) walk(name.empty() ? key : name + "/" + key, child);
      return;
    }
    if (const auto* array = std::get_if<Array>(&value.data)) return add_inline(name, *array);
    if (const auto* scalar = std::get_if<NumpyScalar>(&value.data)) return add_inline(name, scalar->array);
    if (const int64_t* integer = value.as_int()) return add_inline(name, Array::scalar<int64_t>(*integer));
    if (const auto* real = std::get_if<double>(&value.data))
      return add_inline(name, Array::scalar<double>(*real));
    if (const std::string* word = value.as_string(); word != nullptr && word->starts_with(kPlaceholder)) {
      IndexEntry entry;
      entry.directory = checked_directory(name, word->substr(kPlaceholder.size()));
      return add(name, std::move(entry));
    }
    // Python's None: an optional part of the state that is not in use.
    if (std::holds_alternative<std::monostate>(value.data)) return;
    fail(name, "is neither an array nor a place where one is stored");
  }

 private:
  [[noreturn]] void fail(const std::string& name, std::string_view problem) const {
    throw_error<CheckpointError>("'{}': the entry '{}' {}", label_, name, problem);
  }
  void add_inline(const std::string& name, const Array& array) {
    add(name, IndexEntry{{array.dtype(), array.shape()}, array, "", Shape{}});
  }
  void add(const std::string& name, IndexEntry entry) {
    if (!index_.emplace(name, std::move(entry)).second) fail(name, "comes twice");
  }

  // A path that leads out of the checkpoint's own directory is refused.
  std::string checked_directory(const std::string& name, std::string path) const {
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (path.empty() || path == "." || path == ".." || path.find('/') != std::string::npos)
      fail(name, "is stored at '" + path + "', which is not a directory of the checkpoint");
    return path;
  }

  Shape read_dims(const std::string& name, const MsgpackValue* value) const {
    const MsgpackList* list = value != nullptr ? value->as_list() : nullptr;
    if (list == nullptr) fail(name, "lacks the shape or the chunks of its array");
    std::vector<int64_t> dims;
    for (const MsgpackValue& item : *list) {
      const int64_t* dim = item.as_int();
      if (dim == nullptr || *dim < 0) fail(name, "has a dimension that is not a count");
      dims.push_back(*dim);
    }
    return Shape(std::move(dims));
  }

  IndexEntry read_spec(const std::string& name, const MsgpackValue& spec) const {
    const std::string* driver = spec.find("driver")->as_string();
    if (driver == nullptr || *driver != "zarr") fail(name, "is not stored as zarr, the one driver supported");
    const MsgpackValue* path = spec.find("kvstore")->find("path");
    const MsgpackValue* dtype = spec.find("dtype");
    const MsgpackValue* metadata = spec.find("metadata");
    if (path == nullptr || path->as_string() == nullptr || dtype == nullptr ||
        dtype->as_string() == nullptr || metadata == nullptr)
      fail(name, "lacks the path, dtype or metadata of its array");
    IndexEntry entry;
    entry.directory = checked_directory(name, *path->as_string());
    try {
      entry.info.dtype = dtype_from_name(*dtype->as_string());
    } catch (const ConfigError& e) {
      fail(name, "has an " + e.message());
    }
    entry.info.shape = read_dims(name, metadata->find("shape"));
    entry.chunks = read_dims(name, metadata->find("chunks"));
    return entry;
  }

  const std::string& label_;
  Index& index_;
};

}  // namespace

bool is_inline(const std::string& name, const Array& array) {
  if (name.starts_with("target/")) return false;
  return array.size() == 1 || name.ends_with("/v_row") || name.ends_with("/v_col");
}

std::string zarr_directory(const std::string& name) {
  std::string directory = name;
  std::replace(directory.begin(), directory.end(), '/', '.');
  return directory;
}

std::string encode_index(const Index& index) {
  Node root;
  for (const auto& [name, entry] : index) {
    if (find_invalid_utf8(name) != std::string::npos || name.find('\0') != std::string::npos)
      throw_error<CheckpointError>("the name '{}' cannot be stored: it is not UTF-8 text", name);
    Node* node = &root;
    for (const std::string& part : split(name, '/')) {
      if (node->leaf != nullptr || part.empty())
        throw_error<CheckpointError>(
            "the name '{}' cannot be stored: it has an empty part or goes on after the name of "
            "another array",
            name);
      node = &node->children[part];
    }
    if (!node->children.empty())
      throw_error<CheckpointError>("the name '{}' cannot be stored: it is also the beginning of another name",
                                   name);
    node->leaf = &entry;
  }
  return encode_msgpack({MsgpackMap{{"version", {int64_t{kFormatVersion}}}, {"optimizer", tree_of(root)}}});
}

Index decode_index(std::string_view bytes, const std::string& label) {
  const MsgpackValue value = decode_msgpack(bytes, label);
  const MsgpackValue* version = value.find("version");
  if (version == nullptr || version->as_int() == nullptr)
    throw_error<CheckpointError>("'{}' is no t5x checkpoint: it has no version", label);
  if (*version->as_int() != kFormatVersion)
    throw_error<CheckpointError>("'{}' has version {}, but only version {} can be read", label,
                                 *version->as_int(), kFormatVersion);
  const MsgpackValue* optimizer = value.find("optimizer");
  if (optimizer == nullptr || optimizer->as_map() == nullptr)
    throw_error<CheckpointError>("'{}' is no t5x checkpoint: it has no 'optimizer'", label);
  Index index;
  Reader(label, index).walk("", *optimizer);
  return index;
}

}  // namespace t5x::checkpoint
