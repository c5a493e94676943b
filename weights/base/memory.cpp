#include "weights/base/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

#include "weights/base/error.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

void lower(MemoryLimit& limit, double bytes, std::string name) {
  if (bytes < limit.bytes) limit = {bytes, std::move(name)};
}

/// Lowers the limit to the number of bytes in a file; anything else, such as "max", is not a limit.
void lower_by_file(MemoryLimit& limit, const fs::path& file) {
  std::string word;
  if (!(std::ifstream(file) >> word)) return;
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), bytes);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size()) return;
  lower(limit, static_cast<double>(bytes), fmt::format("the limit in {} is", file.string()));
}

/// Lowers the limit by a control group and all its ancestors up to the mount. In a container the
/// path may be the host's, of which only the mount itself is visible.
void lower_by_group(MemoryLimit& limit, const fs::path& mount, std::string_view path,
                    const char* file) {
  lower_by_file(limit, mount / file);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") return;  // the group is outside the mount
    group /= part;
    lower_by_file(limit, group / file);
  }
}

/// Returns whether a comma-separated list contains the word.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

void lower_by_groups(MemoryLimit& limit, const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  lower_by_file(limit, mounts / "memory.max");
  lower_by_file(limit, mounts / "memory/memory.limit_in_bytes");
  std::ifstream groups(root / "proc/self/cgroup");
  // ID:CONTROLLERS:PATH; the version 2 line has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    const std::string_view path(line.data() + second + 1, line.size() - second - 1);
    if (controllers.empty()) lower_by_group(limit, mounts, path, "memory.max");
    if (lists(controllers, "memory"))
      lower_by_group(limit, mounts / "memory", path, "memory.limit_in_bytes");
  }
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root) {
  const auto pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  MemoryLimit limit{pages * static_cast<double>(::sysconf(_SC_PAGE_SIZE)), "the machine has"};
  for (const auto& [resource, name] :
       {std::pair{RLIMIT_AS, "the limit on address space (ulimit -v) is"},
        {RLIMIT_DATA, "the limit on data (ulimit -d) is"}}) {
    rlimit own{};
    if (::getrlimit(resource, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
      lower(limit, static_cast<double>(own.rlim_cur), name);
  }
  lower_by_groups(limit, root);
  return limit;
}

std::string show_bytes(double bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  return bytes < 1024.0 * kMiB ? fmt::format("{:.1f} MiB", bytes / kMiB)
                               : fmt::format("{:.1f} GiB", bytes / kMiB / 1024.0);
}

void require_memory(double bytes, const std::string& what, const std::string& advice) {
  const MemoryLimit limit = memory_limit();
  if (bytes > 0.8 * limit.bytes)
    throw Error("memory_c1", fmt::format("{} {}, {} {}; {}", what, show_bytes(bytes), limit.name,
                                         show_bytes(limit.bytes), advice));
}

}  // namespace shardproof
