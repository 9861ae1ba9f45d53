// An array laid out over the devices of a mesh: one buffer per device, each with its part (or a copy) of the
// whole.
#pragma once

#include <vector>

#include "core/array.h"
#include "graph/graph.h"
#include "partition/mesh.h"
#include "pjrt/client.h"

namespace t5x {

class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(TensorType type, PartitionSpec spec, Mesh mesh, std::vector<pjrt::Buffer> shards)
      : type_(std::move(type)), spec_(std::move(spec)), mesh_(mesh), shards_(std::move(shards)) {}
  // Splits and copies a host array. Throws ShapeError if it cannot be split evenly.
  static DeviceArray from_host(const pjrt::Client& client, const Mesh& mesh, const Array& array,
                               const PartitionSpec& spec = {},
                               pjrt::HostTransfer how = pjrt::HostTransfer::kCopy);

  const TensorType& type() const { return type_; }
  const PartitionSpec& spec() const { return spec_; }
  std::vector<pjrt::Buffer>& shards() { return shards_; }
  const std::vector<pjrt::Buffer>& shards() const { return shards_; }
  // False before it is filled and after it was donated.
  explicit operator bool() const { return !shards_.empty() && !shards_[0].is_deleted(); }

  // Waits, then copies the parts into one host array. Throws DeviceError if the computation failed.
  Array to_host() const;
  void await() const;

 private:
  TensorType type_;
  PartitionSpec spec_;
  Mesh mesh_;
  std::vector<pjrt::Buffer> shards_;
};

}  // namespace t5x
