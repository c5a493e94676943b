#include "weights/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "weights/error.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

std::error_code last_error() { return {errno, std::generic_category()}; }

[[noreturn]] void refuse(const fs::path& path, std::string_view reason, std::string_view label) {
  throw Error(label, fmt::format("{:?}: {}", path.string(), reason));
}

/// A rename over a device or a link would replace the thing itself.
fs::path target_of(const fs::path& path, std::string_view label) {
  std::error_code unknown;
  fs::path target = fs::weakly_canonical(path, unknown);
  if (unknown) target = path;
  const fs::file_status status = fs::status(target, unknown);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "not a regular file", label);
  return target;
}

std::error_code write(const std::string& path, std::span<const char> bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return last_error();
  std::error_code failed;
  for (std::size_t done = 0; done < bytes.size() && !failed;) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      failed = last_error();
    }
  }
  if (::close(file) != 0 && !failed) failed = last_error();
  return failed;
}

}  // namespace

fs::path require_replaceable(const fs::path& path, std::string_view label) {
  const fs::path target = target_of(path, label);
  if (!target.has_filename()) refuse(path, "no name of a file", label);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(path, last_error().message(), label);
  return target;
}

void replace_file(const fs::path& path, std::span<const char> bytes, std::string_view label) {
  const fs::path target = target_of(path, label);
  const std::string temporary = target.string() + fmt::format(".{}.tmp", ::getpid());
  std::error_code failed = write(temporary, bytes);
  if (!failed) fs::rename(temporary, target, failed);
  if (!failed) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  refuse(path, failed.message(), label);
}

}  // namespace shardproof
