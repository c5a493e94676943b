#pragma once

#include <filesystem>
#include <string>

#include "weights/base/error.h"

namespace shardproof {

/// The least of the limits on this process's memory.
struct MemoryLimit {
  double bytes = 0.0;
  std::string name;  ///< "the machine has", "the limit of /sys/fs/cgroup/memory.max is", ...
};

/// Physical memory, the limits on address space and data (ulimit -v, -d), and those of the control
/// groups that the process is in, versions 1 and 2, with all their parents. `root` is where /proc
/// and /sys are looked for.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

/// "3.5 MiB", "48.0 GiB".
std::string show_bytes(double bytes);

/// Throws Error("memory_c1", ...) if `bytes` are more than four fifths of that limit, saying which
/// it is. `what` begins the message: "this needs about"; `advice` ends it.
void require_memory(
    double bytes, const std::string& what = "this needs about",
    const std::string& advice = "fewer chips, a smaller model, batch or prompt fit");

}  // namespace shardproof
