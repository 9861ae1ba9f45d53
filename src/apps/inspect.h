// `seqio inspect`: the examples of a task as they come from its source, as its preprocessors make them, and
// as a model gets them.
#pragma once

#include <string>
#include <vector>

namespace t5x::apps {

// `arguments` without the program's name and "inspect". Throws UsageError and what reading data throws.
int inspect_command(std::vector<std::string> arguments);

}  // namespace t5x::apps
