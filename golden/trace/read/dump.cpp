#include "golden/trace/read/dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "golden/trace/read/detail/hdf5_trace.h"
#include "golden/trace/read/detail/npz_trace.h"
#include "golden/trace/read/detail/process.h"
#include "weights/base/detail/descriptor.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
namespace {

using Container = void (*)(const std::filesystem::path&, std::uint64_t, Sink&);

[[noreturn]] void refuse(std::string_view label, const std::filesystem::path& path,
                         std::string_view why) {
  throw Error(label, fmt::format("{:?}: {}", path.string(), why));
}

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (!file_ || ::fstat(file_.get(), &status) != 0)
      refuse("dump_open", path, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) refuse("dump_open", path, "is not a regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  std::uint64_t size() const { return size_; }

  /// Returns the file's bytes, to be read where they are needed; null if the system maps none.
  std::shared_ptr<const void> mapped() const {
    if (size_ == 0) return nullptr;
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.get(), 0);
    if (at == MAP_FAILED) return nullptr;
    return {at, [size = size_](const void* from) { ::munmap(const_cast<void*>(from), size); }};
  }

  bool begins(std::string_view with, std::uint64_t at) const {
    char found[8] = {};
    return ::pread(file_.get(), found, with.size(), static_cast<off_t>(at)) ==
               static_cast<ssize_t>(with.size()) &&
           std::equal(with.begin(), with.end(), found);
  }

 private:
  Descriptor file_;
  std::uint64_t size_ = 0;
};

Container container_of(const File& file, const std::filesystem::path& path) {
  if (file.begins("PK\3\4", 0) || file.begins("PK\5\6", 0)) return read_npz;
  // HDF5's signature may follow a user block of 512 bytes, or 512 times a power of two.
  for (std::uint64_t at = 0; at < file.size(); at = at == 0 ? 512 : 2 * at)
    if (file.begins("\x89HDF\r\n\x1a\n", at)) return read_hdf5;
  // Older torch.save files are not archives; they begin with this pickled number.
  if (file.begins("\x80\x02\x8a\x0al\xfc\x9c", 0)) refuse("dump_open", path, kOfTorch);
  if (file.begins("\x93NUMPY", 0))
    refuse("dump_open", path, "is one array; legal: an HDF5 file, or an npz of numpy.savez");
  refuse("dump_open", path,
         file.size() == 0 ? "is empty" : "is neither an HDF5 file nor a NumPy archive");
}

}  // namespace

const std::string* find(const Attributes& attributes, std::string_view name) {
  const auto at = attributes.find(name);
  return at == attributes.end() ? nullptr : &at->second;
}

namespace {

std::optional<std::int64_t> number(const Value& value, std::string_view attribute) {
  const std::string* const given = find(value.attributes, attribute);
  if (given == nullptr) return std::nullopt;
  std::int64_t place = 0;
  const char* const end = given->data() + given->size();
  const auto [at, error] = std::from_chars(given->data(), end, place);
  return error == std::errc() && at == end ? std::optional(place) : std::nullopt;
}

/// Sorts names by the numbers of an attribute; those without one follow in the order given.
std::vector<std::string> sorted(const Dump& dump, std::string_view attribute) {
  std::vector<std::pair<std::int64_t, std::string>> names;
  for (const std::string& name : dump.order) {
    const auto place = number(dump.values.find(name)->second, attribute);
    names.emplace_back(place.value_or(std::numeric_limits<std::int64_t>::max()), name);
  }
  stable_sort(names, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (auto& [place, name] : names) result.push_back(std::move(name));
  return result;
}

}  // namespace

std::optional<std::int64_t> place_in_run(const Value& value) { return number(value, "order"); }

std::vector<std::string> in_order(const Dump& dump) { return sorted(dump, "order"); }

Dump read_dump(const std::filesystem::path& path, Unread unread) {
  std::optional<Limits> limits;
  Container container = nullptr;
  std::shared_ptr<const void> mapped;
  std::span<const std::byte> bytes;
  {
    const File file(path);
    limits = limits_of(file.size());
    container = container_of(file, path);
    mapped = file.mapped();
    if (mapped) bytes = {static_cast<const std::byte*>(mapped.get()), file.size()};
  }
  try {
    Dump dump =
        read_in_child([&](Sink& sink) { container(path, limits->bytes, sink); }, *limits, bytes);
    dump.file = std::move(mapped);
    for (const auto& [name, value] : dump.values)
      if (unread == Unread::refused && !value.unread.empty())
        throw Error("dump_value", fmt::format("{:?} {}", name, value.unread));
    dump.order = sorted(dump, kListed);
    return dump;
  } catch (const Error& error) {
    refuse(error.label(), path, error.message());
  }
}

}  // namespace shardproof::dump
