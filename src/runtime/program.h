// A program from C++ to the devices: trace, print as StableHLO with Shardy layouts, compile (through the
// on-disk cache), run. Arguments and results are flat and named, "params/encoder/..." and so on; a donated
// argument gives its memory to the result of the same name.
#pragma once

#include <string>
#include <vector>

#include "graph/trace.h"
#include "runtime/compile_cache.h"
#include "runtime/device_array.h"

namespace t5x {

struct ArgumentInfo {
  std::string name;
  TensorType type;
  PartitionSpec spec = {};
  bool donated = false;
};

struct ResultInfo {
  std::string name;
  PartitionSpec spec = {};
};

struct ProgramSpec {
  std::string name;
  Mesh mesh = {};
  std::vector<ArgumentInfo> arguments;
  std::vector<ResultInfo> results;
  TraceFunction function;  // from all arguments to all results, in their order
};

// StableHLO text of the program. Throws ShapeError if something cannot be split over the mesh or does not
// fit.
std::string lower(const ProgramSpec& spec);

class Program {
 public:
  // `cache` may be null. Throws ShapeError (tracing) and DeviceError (compiling).
  static Program compile(const pjrt::Client& client, const ProgramSpec& spec,
                         const CompileCache* cache = nullptr, pjrt::CompileOptions options = {});

  // Arguments in the order of the spec; donated ones are empty afterwards. Returns at once where the plugin
  // runs asynchronously. Throws ShapeError for a wrong argument, before anything runs.
  std::vector<DeviceArray> run(const std::vector<DeviceArray*>& arguments) const;

  const pjrt::Executable& executable() const { return executable_; }
  double compile_seconds() const { return compile_seconds_; }
  bool from_cache() const { return from_cache_; }
  const std::vector<TensorType>& result_types() const { return result_types_; }

 private:
  Program(ProgramSpec spec, std::vector<TensorType> result_types, pjrt::Executable executable)
      : spec_(std::move(spec)), result_types_(std::move(result_types)), executable_(std::move(executable)) {}

  ProgramSpec spec_;
  std::vector<TensorType> result_types_;
  pjrt::Executable executable_;
  double compile_seconds_ = 0;
  bool from_cache_ = false;
};

}  // namespace t5x
