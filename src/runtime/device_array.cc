#include "runtime/device_array.h"

#include <cstring>
#include <map>

#include "base/error.h"

namespace t5x {
namespace {

// Copies between a dense `part` and its place in a dense `whole`, row by row of the innermost axis.
template <class F>
void for_each_row(const Shape& whole, const ShardSlice& slice, size_t element, F&& copy) {
  const size_t rank = whole.rank();
  const size_t row = (rank == 0 ? 1 : static_cast<size_t>(slice.sizes[rank - 1])) * element;
  const int64_t rows = rank == 0 ? 1 : slice.sizes.size() / std::max<int64_t>(1, slice.sizes[rank - 1]);
  std::vector<int64_t> index(rank, 0);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset = offset * whole[i] + slice.starts[i] + index[i];
    copy(static_cast<size_t>(offset) * element, static_cast<size_t>(r) * row, row);
    for (size_t i = rank - 1; i-- > 0;) {
      if (++index[i] < slice.sizes[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

DeviceArray DeviceArray::from_host(const pjrt::Client& client, const Mesh& mesh, const Array& array,
                                   const PartitionSpec& spec, pjrt::HostTransfer how) {
  check_divisible(mesh, spec, array.shape(), "the array");
  std::vector<pjrt::Buffer> shards;
  std::map<std::vector<int64_t>, Array> parts;  // devices that hold the same part share its host copy
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    const ShardSlice slice = shard_slice(mesh, spec, array.shape(), device);
    auto [part, fresh] = parts.try_emplace(slice.starts, array);
    if (fresh && slice.sizes != array.shape()) {
      part->second = Array::uninitialized(array.dtype(), slice.sizes);
      std::byte* to = part->second.bytes();
      for_each_row(array.shape(), slice, byte_size(array.dtype()),
                   [&](size_t in_whole, size_t in_part, size_t row) {
                     std::memcpy(to + in_part, array.bytes() + in_whole, row);
                   });
    }
    shards.push_back(client.to_device(part->second, static_cast<size_t>(device), how));
  }
  return {{array.dtype(), array.shape()}, spec, mesh, std::move(shards)};
}

Array DeviceArray::to_host() const {
  if (shards_.empty()) throw_error<InternalError>("an empty device array was read");
  if (shards_[0].shape() == type_.shape) return shards_[0].to_host();
  Array whole = Array::uninitialized(type_.dtype, type_.shape);
  std::map<std::vector<int64_t>, bool> seen;
  for (size_t device = 0; device < shards_.size(); ++device) {
    const ShardSlice slice = shard_slice(mesh_, spec_, type_.shape, static_cast<int64_t>(device));
    if (!seen.try_emplace(slice.starts, true).second) continue;
    const Array part = shards_[device].to_host();
    for_each_row(type_.shape, slice, byte_size(type_.dtype),
                 [&](size_t in_whole, size_t in_part, size_t row) {
                   std::memcpy(whole.bytes() + in_whole, part.bytes() + in_part, row);
                 });
  }
  return whole;
}

void DeviceArray::await() const {
  for (const pjrt::Buffer& shard : shards_) shard.await();
}

}  // namespace t5x
