// What a client, its buffers and its executables share; inside this folder only.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pjrt/api.h"
#include "pjrt/buffer.h"
#include "pjrt/client.h"

namespace t5x::pjrt {

struct ClientCore {
  explicit ClientCore(const Plugin& the_plugin) : plugin(the_plugin), api(the_plugin.api()) {}
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  // The place of a device among the addressable ones. Throws DeviceError if it belongs to another process.
  size_t index_of(PJRT_Device* device) const;
  PJRT_Device* device(size_t index) const;

  const Plugin& plugin;
  const PJRT_Api* api;
  PJRT_Client* client = nullptr;
  std::string platform_name, platform_version;
  int process_index = 0;
  std::vector<DeviceInfo> devices, addressable;
  std::vector<PJRT_Device*> addressable_handles;

  std::mutex mutex;
  std::string identity;               // made when first asked for
  std::set<std::string> unsupported;  // platform overrides that this plugin does not know
};

// Options as the C API wants them; the values live in `options`.
std::vector<PJRT_NamedValue> named_values(const OptionMap& options);
// Waits for `event`, destroys it and throws what it carries.
void await_and_destroy(const PJRT_Api* api, PJRT_Event* event, std::string_view asked);
// Keeps `array` alive until `event` is ready; takes ownership of the event.
void keep_until_ready(const PJRT_Api* api, PJRT_Event* event, Array array);

}  // namespace t5x::pjrt
