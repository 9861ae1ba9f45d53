#include "train/model_info.h"

#include <fmt/ranges.h>

#include "train/progress.h"

namespace t5x {

std::string model_info(const Trainer& trainer) {
  std::string params, state;
  int64_t state_size = 0;
  for (const auto& [name, entry] : trainer.state_entries()) {
    PartitionSpec spec = entry.spec;
    for (std::string& axis : spec) {
      if (axis.empty()) axis = "None";
    }
    const std::string shape =
        fmt::format("{} = ({})", fmt::join(entry.type.shape.dims(), " x "), fmt::join(entry.axes, ", "));
    const std::string line =
        fmt::format("{:<90} {:<44} partition spec: ({})\n", name, shape, fmt::join(spec, ", "));
    if (name.starts_with("target/")) {
      params += "Param: " + line;
    } else {
      state += "State: " + line;
      state_size += entry.type.shape.size();
    }
  }
  return fmt::format("{}Total number of parameters: {}\n\n{}Total size of the optimizer state: {}\n", params,
                     format_count(nn::count_parameters(trainer.param_specs())), state,
                     format_count(state_size));
}

}  // namespace t5x
