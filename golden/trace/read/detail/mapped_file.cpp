#include "golden/trace/read/detail/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

void MappedFile::refuse(std::string_view label, const std::filesystem::path& path,
                        std::string_view why) {
  throw Error(label, fmt::format("{:?}: {}", path.string(), why));
}

namespace {

/// The addresses of a mapped file, for a signal handler: it may not lock.
struct Slot {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<const char*> name = nullptr;
};
std::array<Slot, 64> slots{};  // files beyond these have no name where they are shortened

std::uintptr_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

void enter(std::span<const std::byte> bytes, const char* name) {
  for (Slot& slot : slots) {
    std::uintptr_t none = 0;
    if (!slot.begin.compare_exchange_strong(none, address_of(bytes.data()))) continue;
    slot.name = name;
    slot.end = address_of(bytes.data()) + bytes.size();
    return;
  }
}

void leave(std::span<const std::byte> bytes) {
  for (Slot& slot : slots)
    if (slot.begin == address_of(bytes.data())) {
      slot.end = 0;
      slot.begin = 0;
    }
}

}  // namespace

const char* mapped_file_at(const void* address) noexcept {
  for (const Slot& slot : slots)
    if (slot.begin <= address_of(address) && address_of(address) < slot.end) return slot.name;
  return nullptr;
}

MappedFile::MappedFile(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_ || ::fstat(file_.get(), &status_) != 0)
    refuse("dump_open", path_, std::strerror(errno));
  if (!S_ISREG(status_.st_mode)) refuse("dump_open", path_, "is not a regular file");
  quoted_ = fmt::format("{:?}", path_.string());
  if (size() == 0) return;
  void* const at = ::mmap(nullptr, size(), PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (at == MAP_FAILED) return;
  bytes_ = {static_cast<const std::byte*>(at), size()};
  enter(bytes_, quoted_.c_str());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  leave(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::begins(std::string_view with, std::uint64_t at) const {
  char found[8] = {};
  return ::pread(file_.get(), found, with.size(), static_cast<off_t>(at)) ==
             static_cast<ssize_t>(with.size()) &&
         std::equal(with.begin(), with.end(), found);
}

void MappedFile::require_unchanged() const {
  struct stat now {};
  const bool same = ::fstat(file_.get(), &now) == 0 && now.st_size == status_.st_size &&
                    now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  constexpr std::string_view kRemedy = "wait until its writer has ended, then read it again";
  if (!same)
    throw Error("dump_changed",
                fmt::format("{} was changed while it was read; {}", quoted_, kRemedy));
}

}  // namespace shardproof::dump
