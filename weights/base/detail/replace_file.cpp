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
#include <vector>

#include "weights/base/detail/descriptor.h"
#include "weights/base/detail/temporary_name.h"
#include "weights/base/error.h"

namespace shardproof {

/// Where a file is to be, and the one that is there.
struct ReplacementTarget {
  std::filesystem::path path, folder;
  std::optional<struct stat> replaced;  // status of the existing file
};

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

using Target = ReplacementTarget;

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

std::error_code write_all(int file, std::span<const char> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      return last_error();
  }
  return {};
}

/// Syncs the file, and gives it the mode and owner of the replaced one.
std::error_code finish(const Descriptor& file, const Target& target) {
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

/// Opens a file that is unnamed until it is complete; fails if the system or the file system does
/// not support such files.
int open_unnamed(const Target& target) {
  return ::open(target.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, first_mode(target));
}

int open_named(const Target& target, TemporaryName& name) {
  return name.create([&](const char* path) {
    return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, first_mode(target));
  });
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

struct Replacement::State {
  State(const fs::path& path, std::string_view of)
      : label(of), asked(path), target(target_of(path, of)), file(open_unnamed(target)) {
    if (file) return;
    name.emplace(target.folder);
    named.emplace(open_named(target, *name));
    if (!*named) refuse(path, last_error().message(), label);
  }
  const Descriptor& open() const { return file ? file : *named; }

  /// Returns nullopt if an unnamed file cannot be given a name.
  std::optional<std::error_code> take_place() {
    if (name) {
      if (!named->close()) return last_error();
      return renamed();
    }
    const std::string self = fmt::format("/proc/self/fd/{}", file.get());
    const auto link_as = [&](const char* path) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    };
    if (!target.replaced && link_as(target.path.c_str()) == 0) return std::error_code();
    name.emplace(target.folder);
    if (name->create(link_as) < 0) return std::nullopt;
    return renamed();
  }
  /// The same with a copy that has a name from the start.
  std::error_code take_place_named();
  std::error_code renamed() {
    if (::rename(name->path(), target.path.c_str()) != 0) return last_error();
    name->taken();
    return {};
  }

  std::string label;
  fs::path asked;
  Target target;
  std::optional<TemporaryName> name;
  Descriptor file;                  // unnamed, if there are such files
  std::optional<Descriptor> named;  // otherwise
};

namespace {

/// Copies a file from its first byte on.
std::error_code copy(int from, int to) {
  std::vector<char> piece(std::size_t{1} << 20);
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(from, piece.data(), piece.size(), at);
    if (count == 0) return {};
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_error();
    if (const auto failed = write_all(to, std::span(piece).first(static_cast<std::size_t>(count))))
      return failed;
    at += count;
  }
}

}  // namespace

Replacement::Replacement(const fs::path& path, std::string_view label) {
  try {
    state_ = std::make_unique<State>(path, label);
  } catch (const std::system_error& error) {
    refuse(path, error.code().message(), label);
  }
}

std::error_code Replacement::State::take_place_named() {
  name.emplace(target.folder);
  Descriptor copied(open_named(target, *name));
  if (!copied) return last_error();
  if (const std::error_code failed = copy(file.get(), copied.get())) return failed;
  if (const std::error_code failed = finish(copied, target)) return failed;
  if (!copied.close()) return last_error();
  return renamed();
}

Replacement::~Replacement() = default;

int Replacement::file() const { return state_->open().get(); }

void Replacement::commit(std::uint64_t size) {
  State& s = *state_;
  std::error_code failed;
  try {
    if (::ftruncate(file(), static_cast<off_t>(size)) != 0) failed = last_error();
    if (!failed) failed = finish(s.open(), s.target);
    if (!failed) {
      const std::optional<std::error_code> placed = s.take_place();
      failed = placed ? *placed : s.take_place_named();
    }
  } catch (const std::system_error& error) {
    failed = error.code();
  }
  if (failed) refuse(s.asked, failed.message(), s.label);
  sync_folder(s.target);
}

void replace_file(const fs::path& path, std::span<const char> bytes, std::string_view label) {
  Replacement replacement(path, label);
  if (const std::error_code failed = write_all(replacement.file(), bytes))
    refuse(path, failed.message(), label);
  replacement.commit(bytes.size());
}

}  // namespace shardproof
