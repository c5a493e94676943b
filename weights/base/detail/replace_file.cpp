#include "weights/base/detail/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "weights/base/detail/descriptor.h"
#include "weights/base/detail/temporary_name.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

std::error_code last_error() { return {errno, std::generic_category()}; }

[[noreturn]] void refuse(const fs::path& path, std::string_view reason, std::string_view label) {
  throw Error(label, fmt::format("{:?}: {}", path.string(), reason));
}

/// Follows a chain of symbolic links to its end, which need not exist yet.
fs::path follow_links(const fs::path& path, std::string_view label) {
  constexpr int kMost = 40;  // the kernel's limit
  fs::path target = path;
  std::error_code failed;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, failed)); ++links) {
    const fs::path next = fs::read_symlink(target, failed);
    if (failed) refuse(path, failed.message(), label);
    if (links == kMost)
      refuse(path, std::make_error_code(std::errc::too_many_symbolic_link_levels).message(), label);
    target = target.parent_path() / next;  // equals `next` if that is absolute
  }
  if (!target.has_filename()) refuse(path, "not a file name", label);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const fs::path real = fs::canonical(folder, failed);
  if (failed) refuse(path, failed.message(), label);
  return real / target.filename();
}

struct Target {
  fs::path path, folder;
  std::optional<struct stat> replaced;  // status of the existing file
};

Target target_of(const fs::path& path, std::string_view label) {
  struct stat found {};
  // Checked before links are resolved: a pipe may be reachable only by its link, as /dev/stdout.
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    refuse(path, "not a regular file", label);
  Target target;
  target.path = follow_links(path, label);
  target.folder = target.path.parent_path();
  if (::stat(target.path.c_str(), &found) == 0) {
    // A rename would replace even a file that the user may not write.
    if (::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0)
      refuse(path, last_error().message(), label);
    target.replaced = found;
  } else if (errno != ENOENT) {
    refuse(path, last_error().message(), label);
  }
  if (::faccessat(AT_FDCWD, target.folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    refuse(path, last_error().message(), label);
  return target;
}

/// Writes all bytes with fsync, and keeps the mode and owner of the replaced file.
std::error_code fill(const Descriptor& file, std::span<const char> bytes, const Target& target) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      return last_error();
  }
  if (target.replaced) {
    const struct stat& old = *target.replaced;
    mode_t mode = old.st_mode & mode_t{07777};
    if (::fchown(file.get(), old.st_uid, old.st_gid) != 0) {
      mode &= mode_t{01777};  // the set-ID bits must not pass to another owner
      if (::fchown(file.get(), static_cast<uid_t>(-1), old.st_gid) != 0) errno = 0;
    }
    if (::fchmod(file.get(), mode) != 0) return last_error();
  }
  // EINVAL: the file system does not support fsync.
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return last_error();
  return {};
}

/// Mode 0600 hides the content of a replacing file from others until the final mode is set.
mode_t first_mode(const Target& target) { return target.replaced ? 0600 : 0666; }

std::error_code rename_over(TemporaryName& name, const Target& target) {
  if (::rename(name.path(), target.path.c_str()) != 0) return last_error();
  name.taken();
  return {};
}

/// Replaces the target by a file that is unnamed until it is complete. Returns nullopt if the
/// system or the file system does not support such files.
std::optional<std::error_code> replace_unnamed(const Target& target, std::span<const char> bytes) {
  Descriptor file(
      ::open(target.folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, first_mode(target)));
  if (!file) return std::nullopt;
  if (const std::error_code failed = fill(file, bytes, target)) return failed;
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  const auto link_as = [&](const char* path) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
  };
  if (!target.replaced && link_as(target.path.c_str()) == 0) return std::error_code();
  TemporaryName name(target.folder);
  if (name.create(link_as) < 0) return std::nullopt;
  return rename_over(name, target);
}

std::error_code replace_named(const Target& target, std::span<const char> bytes) {
  TemporaryName name(target.folder);
  Descriptor file(name.create([&](const char* path) {
    return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, first_mode(target));
  }));
  if (!file) return last_error();
  if (const std::error_code failed = fill(file, bytes, target)) return failed;
  if (!file.close()) return last_error();
  return rename_over(name, target);
}

/// Syncs the folder, and with it the new name. Errors are ignored: the file is complete either way,
/// old or new.
void sync_folder(const Target& target) {
  const Descriptor folder(::open(target.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::fsync(folder.get()) != 0) errno = 0;
}

}  // namespace

fs::path require_replaceable(const fs::path& path, std::string_view label) {
  return target_of(path, label).path;
}

void replace_file(const fs::path& path, std::span<const char> bytes, std::string_view label) {
  const Target target = target_of(path, label);
  std::error_code failed;
  try {
    const std::optional<std::error_code> unnamed = replace_unnamed(target, bytes);
    failed = unnamed ? *unnamed : replace_named(target, bytes);
  } catch (const std::system_error& error) {
    failed = error.code();
  }
  if (failed) refuse(path, failed.message(), label);
  sync_folder(target);
}

}  // namespace shardproof
