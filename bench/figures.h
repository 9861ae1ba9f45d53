// What benchmarks share: figures as JSON lines, and the clocks of a process.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace t5x::bench {

// {"name", "ours", "peer", "ratio", "unit"}: ratio is ours over peer, lower is better; null without a peer.
inline void print_figure(const std::string& name, double ours, std::optional<double> peer,
                         const std::string& unit) {
  nlohmann::ordered_json line = {
      {"name", name}, {"ours", ours}, {"peer", nullptr}, {"ratio", nullptr}, {"unit", unit}};
  if (peer) {
    line["peer"] = *peer;
    line["ratio"] = ours / *peer;
  }
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

inline double wall_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// User and system time of all threads of this process.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The most memory this process has had resident, in bytes.
inline double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace t5x::bench
