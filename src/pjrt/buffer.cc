#include "pjrt/buffer.h"

#include <cstdint>
#include <utility>

#include "base/error.h"
#include "pjrt/core.h"

namespace t5x::pjrt {
namespace {

constexpr uintptr_t kZeroCopyAlignment = 64;

void destroy_event(const PJRT_Api* api, PJRT_Event* event) noexcept {
  T5X_PJRT_ARGS(PJRT_Event_Destroy_Args, args);
  args.event = event;
  call_quietly(api, &PJRT_Api::PJRT_Event_Destroy, args);
}

// A host array that the plugin reads, until it says that it is done.
struct Kept {
  const PJRT_Api* api;
  Array array;
};

void free_kept(PJRT_Error* error, void* kept) noexcept {
  const std::unique_ptr<Kept> owned(static_cast<Kept*>(kept));
  discard_error(owned->api, error);
}

}  // namespace

void await_and_destroy(const PJRT_Api* api, PJRT_Event* event, std::string_view asked) {
  if (event == nullptr) return;
  T5X_PJRT_ARGS(PJRT_Event_Await_Args, args);
  args.event = event;
  PJRT_Error* error = api->PJRT_Event_Await(&args);
  destroy_event(api, event);
  throw_if_error(api, error, asked);
}

void keep_until_ready(const PJRT_Api* api, PJRT_Event* event, Array array) {
  if (event == nullptr) return;
  auto kept = std::make_unique<Kept>(Kept{api, std::move(array)});
  T5X_PJRT_ARGS(PJRT_Event_OnReady_Args, args);
  args.event = event;
  args.callback = free_kept;
  args.user_arg = kept.get();
  PJRT_Error* error = api->PJRT_Event_OnReady(&args);
  if (error == nullptr) {
    kept.release();  // the callback's now, which may have run already
    destroy_event(api, event);
    return;
  }
  discard_error(api, error);
  await_and_destroy(api, event, "copying a host array to a device");
}

std::string TensorSpec::describe() const { return fmt::format("{}{}", name(dtype), shape.to_string()); }

Buffer::Buffer(std::shared_ptr<ClientCore> core, PJRT_Buffer* buffer, std::shared_ptr<const TensorSpec> spec,
               size_t device, bool borrows_host)
    : core_(std::move(core)),
      buffer_(buffer),
      spec_(std::move(spec)),
      device_(device),
      state_(State::kLive),
      borrows_host_(borrows_host) {}

Buffer::Buffer(Buffer&& other) noexcept
    : core_(std::move(other.core_)),
      buffer_(std::exchange(other.buffer_, nullptr)),
      spec_(std::move(other.spec_)),
      device_(other.device_),
      state_(std::exchange(other.state_, State::kEmpty)),
      borrows_host_(other.borrows_host_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  core_ = std::move(other.core_);
  buffer_ = std::exchange(other.buffer_, nullptr);
  spec_ = std::move(other.spec_);
  device_ = other.device_;
  state_ = std::exchange(other.state_, State::kEmpty);
  borrows_host_ = other.borrows_host_;
  return *this;
}

void Buffer::release() noexcept {
  if (buffer_ == nullptr) return;
  T5X_PJRT_ARGS(PJRT_Buffer_Destroy_Args, args);
  args.buffer = std::exchange(buffer_, nullptr);
  call_quietly(core_->api, &PJRT_Api::PJRT_Buffer_Destroy, args);
}

void Buffer::remove() {
  if (buffer_ == nullptr) return;
  release();
  state_ = State::kRemoved;
}

void Buffer::throw_not_live(const char* doing) const {
  const std::string what = spec_ ? spec_->describe() : "nothing";
  switch (state_) {
    case State::kDonated:
      throw_error<DeviceError>(
          "{}: the buffer {} was donated to a program and is gone; use that program's result instead", doing,
          what);
    case State::kRemoved:
      throw_error<DeviceError>("{}: the buffer {} was removed", doing, what);
    default:
      throw_error<DeviceError>("{}: the buffer is empty (never filled, or moved from)", doing);
  }
}

const TensorSpec& Buffer::spec() const {
  if (!spec_) throw_not_live("asking for the shape of a buffer");
  return *spec_;
}

void Buffer::await() const {
  require_live("waiting for a buffer");
  T5X_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, args);
  args.buffer = buffer_;
  call(core_->api, &PJRT_Api::PJRT_Buffer_ReadyEvent, args, "waiting for a buffer");
  await_and_destroy(core_->api, args.event, "waiting for a buffer");
}

bool Buffer::is_ready() const {
  require_live("asking whether a buffer is ready");
  T5X_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, args);
  args.buffer = buffer_;
  call(core_->api, &PJRT_Api::PJRT_Buffer_ReadyEvent, args, "asking whether a buffer is ready");
  T5X_PJRT_ARGS(PJRT_Event_IsReady_Args, ready);
  ready.event = args.event;
  PJRT_Error* error = core_->api->PJRT_Event_IsReady(&ready);
  destroy_event(core_->api, args.event);
  throw_if_error(core_->api, error, "asking whether a buffer is ready");
  return ready.is_ready;
}

Array Buffer::to_host() const {
  require_live("copying a buffer to the host");
  Array out = Array::uninitialized(spec_->dtype, spec_->shape);
  const auto asked = [&] { return fmt::format("copying {} to the host", spec_->describe()); };
  // Device layouts may differ from row-major, so the layout is said outright: the last dimension is the most
  // minor.
  std::vector<int64_t> minor_to_major(spec_->shape.rank());
  for (size_t i = 0; i < minor_to_major.size(); ++i)
    minor_to_major[i] = static_cast<int64_t>(minor_to_major.size() - 1 - i);
  T5X_PJRT_ARGS(PJRT_Buffer_MemoryLayout, layout);
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  T5X_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, args);
  args.src = buffer_;
  args.host_layout = &layout;
  args.dst = out.bytes();
  args.dst_size = out.nbytes();
  call(core_->api, &PJRT_Api::PJRT_Buffer_ToHostBuffer, args, asked);
  await_and_destroy(core_->api, args.event, asked());
  return out;
}

Buffer Buffer::copy_to(size_t device) const {
  require_live("copying a buffer to another device");
  T5X_PJRT_ARGS(PJRT_Buffer_CopyToDevice_Args, args);
  args.buffer = buffer_;
  args.dst_device = core_->device(device);
  call(core_->api, &PJRT_Api::PJRT_Buffer_CopyToDevice, args,
       [&] { return fmt::format("copying {} from device {} to {}", spec_->describe(), device_, device); });
  return Buffer(core_, args.dst_buffer, spec_, device, false);
}

uintptr_t Buffer::address() const {
  require_live("asking for the address of a buffer");
  await();
  T5X_PJRT_ARGS(PJRT_Buffer_UnsafePointer_Args, args);
  args.buffer = buffer_;
  call(core_->api, &PJRT_Api::PJRT_Buffer_UnsafePointer, args, "asking for the address of a buffer");
  return args.buffer_pointer;
}

Buffer Client::to_device(const Array& array, size_t device, HostTransfer how) const {
  const bool borrow = how == HostTransfer::kZeroCopy && array.nbytes() > 0 &&
                      reinterpret_cast<uintptr_t>(array.bytes()) % kZeroCopyAlignment == 0;
  const std::vector<int64_t>& dims = array.shape().dims();
  T5X_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, args);
  args.client = core_->client;
  args.data = array.bytes();
  args.type = to_pjrt(array.dtype());
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.host_buffer_semantics = borrow ? PJRT_HostBufferSemantics_kImmutableZeroCopy
                                      : PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.device = core_->device(device);
  call(core_->api, &PJRT_Api::PJRT_Client_BufferFromHostBuffer, args,
       [&] { return fmt::format("copying the host array {} to device {}", array.describe(), device); });
  Buffer buffer(core_, args.buffer,
                std::make_shared<const TensorSpec>(TensorSpec{array.dtype(), array.shape()}), device, borrow);
  keep_until_ready(core_->api, args.done_with_host_buffer, array);
  return buffer;
}

}  // namespace t5x::pjrt
