// `t5x train`: flags, the configuration they make, and the run.
#pragma once

#include <string>
#include <vector>

namespace t5x::apps {

// `arguments` without the program's name and "train". The exit code: 0, or 130 after SIGINT or SIGTERM.
// Throws UsageError and what configuring and training throw.
int train_command(std::vector<std::string> arguments);

}  // namespace t5x::apps
