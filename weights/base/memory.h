#pragma once

#include <filesystem>
#include <string>

#include "weights/base/error.h"

namespace shardproof {

/// Smallest of the limits on this process's memory.
struct MemoryLimit {
  double bytes = 0.0;
  std::string name;  ///< "the machine has", "the limit of /sys/fs/cgroup/memory.max is", ...
};

/// Returns the smallest of physical memory, the limits on address space and data (ulimit -v, -d),
/// and those of the process's control groups, versions 1 and 2, with all their ancestors. /proc and
/// /sys are read below `root`.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

/// Formats bytes with a binary unit: "3.5 MiB", "48.0 GiB".
std::string show_bytes(double bytes);

/// Throws Error("memory_c1", ...), naming the limit, if `bytes` exceed four fifths of
/// memory_limit(). `what` begins the message, `advice` ends it.
void require_memory(
    double bytes, const std::string& what = "this needs about",
    const std::string& advice = "fewer chips, a smaller model, batch or prompt fit");

}  // namespace shardproof
