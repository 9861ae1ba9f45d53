// The table of a model's parameters that t5x writes to model-info.txt.
#pragma once

#include <string>

#include "train/trainer.h"

namespace t5x {

// One line per array of the state: name, shape, logical axes, mesh axes; then totals.
std::string model_info(const Trainer& trainer);

}  // namespace t5x
