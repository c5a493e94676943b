#include "golden/trace/read/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "golden/trace/read/detail/hdf5_trace.h"
#include "golden/trace/read/detail/mapped_file.h"
#include "golden/trace/read/detail/npz_trace.h"
#include "golden/trace/read/detail/process.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
namespace {

using Container = void (*)(const std::filesystem::path&, std::uint64_t, Sink&);

Container container_of(const MappedFile& file, const std::filesystem::path& path) {
  if (file.begins("PK\3\4", 0) || file.begins("PK\5\6", 0)) return read_npz;
  // HDF5's signature may follow a user block of 512 bytes, or 512 times a power of two.
  for (std::uint64_t at = 0; at < file.size(); at = at == 0 ? 512 : 2 * at)
    if (file.begins("\x89HDF\r\n\x1a\n", at)) return read_hdf5;
  // Older torch.save files are not archives; they begin with this pickled number.
  if (file.begins("\x80\x02\x8a\x0al\xfc\x9c", 0)) MappedFile::refuse("dump_open", path, kOfTorch);
  if (file.begins("\x93NUMPY", 0))
    MappedFile::refuse("dump_open", path,
                       "is one array; legal: an HDF5 file, or an npz of numpy.savez");
  MappedFile::refuse("dump_open", path,
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

namespace {

bool has_lent_arrays(const Dump& dump) {
  return std::any_of(dump.values.begin(), dump.values.end(), [](const auto& named) {
    const Value& value = named.second;
    return !value.whole.lent.empty() ||
           std::any_of(value.chips.begin(), value.chips.end(),
                       [](const auto& chip) { return !chip.second.lent.empty(); });
  });
}

}  // namespace

Dump read_dump(const std::filesystem::path& path, Unread unread) {
  const auto file = std::make_shared<const MappedFile>(path);
  const Limits limits = limits_of(file->size());
  const Container container = container_of(*file, path);
  try {
    Dump dump = read_in_child([&](Sink& sink) { container(path, limits.bytes, sink); }, limits,
                              file->bytes());
    file->require_unchanged();
    if (has_lent_arrays(dump)) dump.file = file;
    for (const auto& [name, value] : dump.values)
      if (unread == Unread::refused && !value.unread.empty())
        throw Error("dump_value", fmt::format("{:?} {}", name, value.unread));
    dump.order = sorted(dump, kListed);
    return dump;
  } catch (const Error& error) {
    if (error.label() == "dump_changed") throw;
    MappedFile::refuse(error.label(), path, error.message());
  }
}

void require_unchanged(const Dump& dump) {
  if (dump.file != nullptr) dump.file->require_unchanged();
}

}  // namespace shardproof::dump
