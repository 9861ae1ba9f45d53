// The shape of an array: its dimensions, outermost first. All sizes are known when a program is traced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace t5x {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  size_t rank() const { return dims_.size(); }
  // Number of elements; 1 for a scalar.
  int64_t size() const;
  int64_t operator[](size_t axis) const { return dims_[axis]; }
  // Counts from the end when negative. Throws ShapeError when out of range.
  int64_t dim(int64_t axis) const { return dims_[normalize_axis(axis)]; }
  // -1 becomes rank - 1, and so on. Throws ShapeError when out of range.
  size_t normalize_axis(int64_t axis) const;
  const std::vector<int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  bool operator==(const Shape&) const = default;
  // "(8, 128)", "()" for a scalar.
  std::string to_string() const;

 private:
  std::vector<int64_t> dims_;
};

}  // namespace t5x
