// A dense array in a device's memory. Move-only; the memory is released with it. Not for use from two threads
// at once; different buffers are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/array.h"

struct PJRT_Buffer;

namespace t5x::pjrt {

struct ClientCore;

// dtype and shape of one argument or result, as one device sees it.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  bool operator==(const TensorSpec&) const = default;
  size_t nbytes() const { return static_cast<size_t>(shape.size()) * byte_size(dtype); }
  // "float32(8, 128)"
  std::string describe() const;
};

enum class HostTransfer {
  // The bytes are copied; the host array may be freed at once (it is kept alive until the copy is done).
  kCopy,
  // A device on the host reads the array's own bytes if they are 64-byte aligned (arrays of core/ are);
  // nobody
  // may write to the array while the buffer lives. Given to a donating argument, it is copied, never
  // overwritten.
  kZeroCopy,
};

class Buffer {
 public:
  // An empty buffer, which can only be assigned to.
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  const TensorSpec& spec() const;
  DType dtype() const { return spec().dtype; }
  const Shape& shape() const { return spec().shape; }
  // Index into Client::addressable_devices().
  size_t device() const { return device_; }

  // Waits for the computation that fills this buffer. Throws DeviceError with its error.
  void await() const;
  bool is_ready() const;
  // Waits, then copies to the host.
  Array to_host() const;
  // A copy on another device (index into Client::addressable_devices()).
  Buffer copy_to(size_t device) const;
  // Frees the device memory once pending computations are done with it.
  void remove();
  // Whether it was donated, removed, moved from or never filled.
  bool is_deleted() const { return buffer_ == nullptr; }
  // Address of the bytes on the device, for tests of aliasing.
  std::uintptr_t address() const;

 private:
  friend class Client;
  friend class Executable;
  enum class State : uint8_t { kEmpty, kLive, kDonated, kRemoved };
  Buffer(std::shared_ptr<ClientCore> core, PJRT_Buffer* buffer, std::shared_ptr<const TensorSpec> spec,
         size_t device, bool borrows_host);
  void release() noexcept;
  // Throws DeviceError that says why there is nothing to use.
  void require_live(const char* doing) const {
    if (buffer_ == nullptr) throw_not_live(doing);
  }
  [[noreturn]] void throw_not_live(const char* doing) const;

  std::shared_ptr<ClientCore> core_;
  PJRT_Buffer* buffer_ = nullptr;
  std::shared_ptr<const TensorSpec> spec_;
  size_t device_ = 0;
  State state_ = State::kEmpty;
  bool borrows_host_ = false;
  bool donating_ = false;
};

}  // namespace t5x::pjrt
