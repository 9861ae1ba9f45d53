// A host array: dense, row-major, aligned to 64 bytes so that a device on the host can use it without a copy.
// Copies share the bytes; an array is filled once, by its maker, and then only read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/shape.h"

namespace t5x {

[[noreturn]] void throw_size_mismatch(size_t count, const Shape& shape);

class Array {
 public:
  // A float32 scalar zero.
  Array() : Array(DType::kFloat32, Shape{}) {}
  // Zeros.
  Array(DType dtype, Shape shape);
  // Not initialised: the maker fills it.
  static Array uninitialized(DType dtype, Shape shape);
  // Shares memory that `owner` keeps alive.
  static Array view(DType dtype, Shape shape, void* bytes, std::shared_ptr<void> owner);
  template <class T>
  static Array from(std::span<const T> values, Shape shape);
  template <class T>
  static Array scalar(T value) {
    return from<T>(std::span<const T>(&value, 1), Shape{});
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  size_t nbytes() const { return static_cast<size_t>(size()) * byte_size(dtype_); }
  std::byte* bytes() { return static_cast<std::byte*>(data_.get()); }
  const std::byte* bytes() const { return static_cast<const std::byte*>(data_.get()); }
  std::string_view as_bytes() const { return {static_cast<const char*>(data_.get()), nbytes()}; }

  // The elements. Throws ShapeError if T is not the array's dtype.
  template <class T>
  std::span<T> values() {
    check_dtype(dtype_of<T>());
    return {reinterpret_cast<T*>(bytes()), static_cast<size_t>(size())};
  }
  template <class T>
  std::span<const T> values() const {
    check_dtype(dtype_of<T>());
    return {reinterpret_cast<const T*>(bytes()), static_cast<size_t>(size())};
  }
  // The only element of an array of size 1.
  template <class T>
  T item() const {
    check_single();
    return values<T>()[0];
  }

  // Converted element by element, as C++ converts (to bfloat16: nearest even).
  Array cast(DType dtype) const;
  // The same elements under another shape of the same size; shares the bytes.
  Array reshape(Shape shape) const;
  // A copy with bytes of its own.
  Array copy() const;
  // "float32(8, 128)"
  std::string describe() const;
  // Equal dtype, shape and bytes.
  bool identical(const Array& other) const;

 private:
  struct Raw {};
  Array(Raw, DType dtype, Shape shape, std::shared_ptr<void> data);
  void check_dtype(DType wanted) const;
  void check_single() const;

  DType dtype_;
  Shape shape_;
  std::shared_ptr<void> data_;
};

template <class T>
Array Array::from(std::span<const T> values, Shape shape) {
  Array array = uninitialized(dtype_of<T>(), std::move(shape));
  std::span<T> to = array.values<T>();
  if (to.size() != values.size()) throw_size_mismatch(values.size(), array.shape());
  for (size_t i = 0; i < to.size(); ++i) to[i] = values[i];
  return array;
}

}  // namespace t5x
