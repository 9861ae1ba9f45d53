#include "runtime/run.h"

#include "graph/stablehlo.h"

namespace t5x {

pjrt::Client& default_client() {
  static pjrt::Client client = pjrt::Client::create();
  return client;
}

std::vector<Array> run(const Graph& graph, const std::vector<Array>& inputs) {
  std::vector<pjrt::ArgumentSpec> arguments;
  for (const TensorType& type : graph.arg_types()) arguments.push_back({.spec = {type.dtype, type.shape}});
  const pjrt::Executable executable = default_client().compile(to_stablehlo(graph), arguments);
  std::vector<pjrt::Buffer> buffers;
  std::vector<pjrt::Buffer*> pointers;
  for (const Array& input : inputs) buffers.push_back(default_client().to_device(input));
  for (pjrt::Buffer& buffer : buffers) pointers.push_back(&buffer);
  std::vector<Array> results;
  for (const pjrt::Buffer& buffer : executable.execute(std::span<pjrt::Buffer* const>(pointers)))
    results.push_back(buffer.to_host());
  return results;
}

}  // namespace t5x
