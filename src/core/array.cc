#include "core/array.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"

namespace t5x {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<void> allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* p = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (p == nullptr) throw std::bad_alloc();
  return {p, std::free};
}

// Calls f with a value of the C++ type that stands for `dtype`.
template <class F>
void visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kUInt16:
      return f(uint16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kUInt32:
      return f(uint32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt64:
      return f(uint64_t{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kFloat16:
      return f(Float16{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
  }
}

template <class To, class From>
To convert(From value) {
  constexpr bool half_from = std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>;
  constexpr bool half_to = std::is_same_v<To, BFloat16> || std::is_same_v<To, Float16>;
  if constexpr (half_from) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (half_to) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

Array::Array(Raw, DType dtype, Shape shape, std::shared_ptr<void> data)
    : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)) {}

Array::Array(DType dtype, Shape shape) : Array(uninitialized(dtype, std::move(shape))) {
  std::memset(bytes(), 0, nbytes());
}

Array Array::uninitialized(DType dtype, Shape shape) {
  for (int64_t dim : shape) {
    if (dim < 0)
      throw_error<ShapeError>("an array cannot have the shape {}: a dimension is negative",
                              shape.to_string());
  }
  const size_t bytes = static_cast<size_t>(shape.size()) * byte_size(dtype);
  return Array(Raw{}, dtype, std::move(shape), allocate(bytes));
}

Array Array::view(DType dtype, Shape shape, void* bytes, std::shared_ptr<void> owner) {
  return Array(Raw{}, dtype, std::move(shape), std::shared_ptr<void>(std::move(owner), bytes));
}

Array Array::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  Array out = uninitialized(dtype, shape_);
  visit(dtype_, [&]<class From>(From) {
    visit(dtype, [&]<class To>(To) {
      std::span<const From> from = values<From>();
      std::span<To> to = out.values<To>();
      for (size_t i = 0; i < from.size(); ++i) to[i] = convert<To>(from[i]);
    });
  });
  return out;
}

Array Array::reshape(Shape shape) const {
  if (shape.size() != size())
    throw_error<ShapeError>("cannot reshape {} to {}: the sizes differ", describe(), shape.to_string());
  return Array(Raw{}, dtype_, std::move(shape), data_);
}

Array Array::copy() const {
  Array out = uninitialized(dtype_, shape_);
  std::memcpy(out.bytes(), bytes(), nbytes());
  return out;
}

std::string Array::describe() const { return fmt::format("{}{}", name(dtype_), shape_.to_string()); }

bool Array::identical(const Array& other) const {
  return dtype_ == other.dtype_ && shape_ == other.shape_ &&
         std::memcmp(bytes(), other.bytes(), nbytes()) == 0;
}

void Array::check_dtype(DType wanted) const {
  if (wanted != dtype_) throw_error<ShapeError>("array {} was read as {}", describe(), name(wanted));
}

void Array::check_single() const {
  if (size() != 1) throw_error<ShapeError>("array {} was read as a scalar", describe());
}

void throw_size_mismatch(size_t count, const Shape& shape) {
  throw_error<ShapeError>("{} values do not fill an array of shape {}", count, shape.to_string());
}

}  // namespace t5x
