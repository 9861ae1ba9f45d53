// The device mesh and how arrays are laid out over it. The mesh has two axes, as t5x's: `data` replicates
// parameters and splits batches, `model` splits parameters. Devices are numbered row-major, `model` fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"

namespace t5x {

struct Mesh {
  int64_t data = 1;
  int64_t model = 1;

  int64_t num_devices() const { return data * model; }
  // Size of an axis by its name. Throws ConfigError for other names.
  int64_t axis_size(const std::string& axis) const;
  // Position of a device along an axis.
  int64_t coordinate(int64_t device, const std::string& axis) const;
  // The Shardy declaration: sdy.mesh @mesh = <["data"=2, "model"=2]>
  std::string declaration() const;
  bool operator==(const Mesh&) const = default;
};

// For every dimension of an array the mesh axis that splits it; "" for none. Shorter than the rank: none for
// the rest.
using PartitionSpec = std::vector<std::string>;

// #sdy.sharding<@mesh, [{"data"}, {}]>
std::string sdy_sharding(const PartitionSpec& spec, size_t rank);

// Throws ShapeError unless every split dimension is a multiple of its axis: names `what`, the dimension and
// the axis.
void check_divisible(const Mesh& mesh, const PartitionSpec& spec, const Shape& shape,
                     const std::string& what);

// The part of a global array that one device holds.
struct ShardSlice {
  std::vector<int64_t> starts;
  Shape sizes;
  bool operator==(const ShardSlice&) const = default;
};
ShardSlice shard_slice(const Mesh& mesh, const PartitionSpec& spec, const Shape& shape, int64_t device);

}  // namespace t5x
