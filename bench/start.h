// The program as its user starts it: `t5x train` on t5_1_1 small, from the start of the process to its first
// step, and the memory and input waits of a longer run.
#pragma once

#include <string>

namespace t5x::bench {

// `t5x` is the program's path. Prints figures named train_step_start_cold, _start_warm, _resident and
// _input_wait.
void measure_start(const std::string& t5x);

}  // namespace t5x::bench
