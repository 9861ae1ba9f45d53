// What a gin file can put to the right of `=`: Python literals, references to configurables, macros, and
// objects that configurables made. A value is small, immutable and cheap to copy, and remembers where it was
// written. Semantics: google/gin-config, config_parser.py.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

namespace t5x::gin {

struct Configurable;

// Where a piece of configuration was written. Line and column count from 1; line 0 means "nowhere".
struct Location {
  std::shared_ptr<const std::string> file;
  uint32_t line = 0;
  uint32_t column = 0;

  // "file:line:column"; "--gin.NAME" for a flag; "a default" for nowhere.
  std::string str() const;
};

// `@scope/name` (call = false) or `@scope/name()` (call = true).
struct Reference {
  std::string scope;  // "a/b", or empty: the scope of whoever evaluates it
  std::string name;   // as written
  bool call = false;
  const Configurable* target = nullptr;  // null: the name is unknown, `why` says more
  std::string why;
  bool foreign = false;  // unknown because its module has no native counterpart

  std::string str() const;
};

// `%name`: a macro, or a constant such as gin.REQUIRED.
struct Macro {
  std::string name;
};

struct Bytes {
  std::string data;
};

// A C++ object behind a shared pointer, given out again as its own type or as any public base of it.
class Object {
 public:
  template <class T>
  static Object make(std::shared_ptr<T> pointer);

  // Null if the object is not a T (nor derived from it).
  template <class T>
  std::shared_ptr<T> as() const;
  const std::string& type_name() const { return type_name_; }
  const void* address() const { return pointer_.get(); }

 private:
  std::shared_ptr<void> pointer_;
  std::type_index type_ = typeid(void);
  std::string type_name_;
  // Throws the pointer as its true type: a handler for a base then catches it, which is the one conversion to
  // a base that the language offers without knowing both types.
  void (*throw_pointer_)(void*) = nullptr;
};

// The result of something that a dry run did not execute.
struct Pending {
  std::string what;
};

enum class Kind {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kBytes,
  kList,
  kTuple,
  kDict,
  kReference,
  kMacro,
  kObject,
  kPending
};

class Value {
 public:
  using Items = std::vector<Value>;
  using Entries = std::vector<std::pair<Value, Value>>;

  Value() = default;  // None
  Value(std::nullptr_t) {}
  // Templates, so that no pointer turns into a bool on its way here.
  template <std::same_as<bool> T>
  Value(T value) : data_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T value) : data_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Value(T value) : data_(static_cast<double>(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(Bytes value) : data_(std::move(value)) {}
  Value(Reference value);
  Value(Macro value) : data_(std::move(value)) {}
  Value(Pending value) : data_(std::move(value)) {}
  Value(Object value);

  static Value list(Items items);
  static Value tuple(Items items);
  // Insertion order; of equal keys the last value stays, at the place of the first.
  static Value dict(Entries entries);
  template <class T>
  static Value object(std::shared_ptr<T> pointer) {
    return Value(Object::make(std::move(pointer)));
  }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is(Kind k) const { return kind() == k; }

  // Unchecked by name: a std::bad_variant_access is a defect of the caller, who must look at kind() first.
  // For checked access with messages see Args::get and convert.h.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return std::get<int64_t>(data_); }
  double as_float() const { return std::get<double>(data_); }
  const std::string& as_string() const { return std::get<std::string>(data_); }
  const std::string& as_bytes() const { return std::get<Bytes>(data_).data; }
  const Items& items() const;  // of a list or a tuple
  const Entries& entries() const { return *std::get<DictData>(data_).entries; }
  const Reference& as_reference() const { return *std::get<std::shared_ptr<const Reference>>(data_); }
  const Macro& as_macro() const { return std::get<Macro>(data_); }
  const Object& as_object() const { return *std::get<std::shared_ptr<const Object>>(data_); }
  const Pending& as_pending() const { return std::get<Pending>(data_); }

  const Location& location() const { return location_; }
  Value at(Location location) const;

  // As Python's repr() prints it; parses again to an equal value unless it holds an object.
  std::string repr() const;
  // "an int (3)", "a str ('abc')", for messages; long values are cut.
  std::string describe() const;
  // Equal as Python's == for literals of the same kind (1 == 1.0 too); references by name, scope and call.
  friend bool operator==(const Value& a, const Value& b);

 private:
  struct ListData {
    std::shared_ptr<const Items> items;
  };
  struct TupleData {
    std::shared_ptr<const Items> items;
  };
  struct DictData {
    std::shared_ptr<const Entries> entries;
  };
  std::variant<std::monostate, bool, int64_t, double, std::string, Bytes, ListData, TupleData, DictData,
               std::shared_ptr<const Reference>, Macro, std::shared_ptr<const Object>, Pending>
      data_;
  Location location_;
};

std::string demangle(const std::type_info& type);

template <class T>
Object Object::make(std::shared_ptr<T> pointer) {
  static_assert(!std::is_void_v<T>);
  using Plain = std::remove_const_t<T>;
  Object object;
  object.type_ = typeid(Plain);
  object.type_name_ = demangle(typeid(Plain));
  object.pointer_ = std::const_pointer_cast<Plain>(std::move(pointer));
  object.throw_pointer_ = [](void* raw) { throw static_cast<Plain*>(raw); };
  return object;
}

template <class T>
std::shared_ptr<T> Object::as() const {
  using Plain = std::remove_const_t<T>;
  if (!pointer_) return nullptr;
  if (type_ == std::type_index(typeid(Plain))) return std::static_pointer_cast<Plain>(pointer_);
  if constexpr (std::is_class_v<Plain>) {
    try {
      throw_pointer_(pointer_.get());
    } catch (Plain* base) {
      return std::shared_ptr<Plain>(pointer_, base);
    } catch (...) {  // another type: the caller says which one was expected
    }
  }
  return nullptr;
}

}  // namespace t5x::gin
