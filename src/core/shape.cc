#include "core/shape.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace t5x {

int64_t Shape::size() const {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

size_t Shape::normalize_axis(int64_t axis) const {
  const auto r = static_cast<int64_t>(rank());
  if (axis < -r || axis >= r)
    throw_error<ShapeError>("axis {} is out of range for shape {} of rank {}", axis, to_string(), r);
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

std::string Shape::to_string() const { return fmt::format("({})", fmt::join(dims_, ", ")); }

}  // namespace t5x
