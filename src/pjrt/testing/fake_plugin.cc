// A shared library that looks like a PJRT plugin but has a table this program must refuse, for tests.
#include <xla/pjrt/c/pjrt_c_api.h>

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
#if defined(FAKE_other_version)
  api.pjrt_api_version.major_version = 9;
#elif defined(FAKE_short_table)
  api.struct_size = 128;
#endif
  return &api;
}
