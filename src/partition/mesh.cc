#include "partition/mesh.h"

#include "base/error.h"

namespace t5x {

int64_t Mesh::axis_size(const std::string& axis) const {
  if (axis == "data") return data;
  if (axis == "model") return model;
  throw_error<ConfigError>("the mesh has the axes 'data' and 'model', not '{}'", axis);
}

int64_t Mesh::coordinate(int64_t device, const std::string& axis) const {
  return axis == "data" ? device / model : device % model;
}

std::string Mesh::declaration() const {
  return fmt::format("sdy.mesh @mesh = <[\"data\"={}, \"model\"={}]>", data, model);
}

std::string sdy_sharding(const PartitionSpec& spec, size_t rank) {
  std::string dims;
  for (size_t i = 0; i < rank; ++i) {
    const std::string axis = i < spec.size() && !spec[i].empty() ? "\"" + spec[i] + "\"" : "";
    dims += (i == 0 ? "{" : ", {") + axis + "}";
  }
  return "#sdy.sharding<@mesh, [" + dims + "]>";
}

void check_divisible(const Mesh& mesh, const PartitionSpec& spec, const Shape& shape,
                     const std::string& what) {
  for (size_t i = 0; i < spec.size() && i < shape.rank(); ++i) {
    if (spec[i].empty()) continue;
    const int64_t parts = mesh.axis_size(spec[i]);
    if (shape[i] % parts == 0) continue;
    throw_error<ShapeError>(
        "{} of shape {} cannot be split: dimension {} ({}) is not a multiple of the mesh axis '{}' ({}); "
        "change the size, the "
        "mesh or the axis rules",
        what, shape.to_string(), i, shape[i], spec[i], parts);
  }
}

ShardSlice shard_slice(const Mesh& mesh, const PartitionSpec& spec, const Shape& shape, int64_t device) {
  std::vector<int64_t> starts, sizes;
  for (size_t i = 0; i < shape.rank(); ++i) {
    const bool split = i < spec.size() && !spec[i].empty();
    const int64_t size = split ? shape[i] / mesh.axis_size(spec[i]) : shape[i];
    starts.push_back(split ? size * mesh.coordinate(device, spec[i]) : 0);
    sizes.push_back(size);
  }
  return {starts, Shape(sizes)};
}

}  // namespace t5x
