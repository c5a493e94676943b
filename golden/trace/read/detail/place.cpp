#include "golden/trace/read/detail/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardproof::dump {
namespace {

constexpr std::string_view kChips = "chips";
// The attributes of values in docs/trace-format.md.
constexpr std::array<std::string_view, 19> kKnown = {
    "layout", "spec",       "partial",  "encoding",  "meaning", "padded",     "fused",
    "along",  "summand_of", "replicas", "same_as",   "given",   "arithmetic", "wire",
    "ulp",    "folded",     "rounding", "reduction", "adding"};

std::string shown(const std::string* text) {
  return text != nullptr ? fmt::format("{:?}", *text) : "none";
}

}  // namespace

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::array<int, 3> chip_of(std::string_view group) {
  std::array<int, 3> chip{};
  const char* at = group.data();
  const char* const end = at + group.size();
  bool right = true;
  for (std::size_t axis = 0; axis < chip.size() && right; ++axis) {
    if (axis > 0) right = at != end && *at++ == '_';
    // No sign, no leading zero: otherwise one chip would have two names.
    right = right && at != end && *at >= '0' && *at <= '9' &&
            (*at != '0' || at + 1 == end || at[1] == '_');
    if (!right) break;
    const auto read = std::from_chars(at, end, chip[axis]);
    right = read.ec == std::errc();
    at = read.ptr;
  }
  if (!right || at != end)
    throw Error("dump_value", fmt::format("chips holds {:?}; legal: X_Y_Z, the coordinates of a "
                                          "chip, as 1_0_2",
                                          group));
  return chip;
}

PathPlace place_of(std::string_view path) {
  PathPlace place{.chip = std::nullopt, .id = std::string(path)};
  if (folder_of(path) == kChips) {
    const std::string_view rest = path.substr(kChips.size() + 1);
    const std::string_view group = folder_of(rest);
    place.chip = chip_of(group);
    place.id = rest.substr(group.size() + 1);
  }
  const auto odd = [](unsigned char c) { return c < ' ' || c == 0x7F || c == '/' || c == '\\'; };
  if (place.id.empty() || std::any_of(place.id.begin(), place.id.end(), odd))
    throw Error("dump_value", fmt::format("{:?} is not a name of a value", path));
  return place;
}

void require_same(const Attributes& one, const Attributes& other, std::string_view path) {
  for (const std::string_view name : kKnown) {
    const std::string *const first = find(one, name), *const second = find(other, name);
    if (first && second ? *first != *second : first != second)
      throw Error("dump_value", fmt::format("{:?} has {}={}, another shard of it {}", path, name,
                                            shown(second), shown(first)));
  }
}

void require_trace(const Attributes& attributes) {
  const std::string* const format = find(attributes, "format");
  if (format == nullptr || *format != "shardproof trace")
    throw Error("dump_format", fmt::format("its attribute format is {}; a trace's is \"shardproof "
                                           "trace\" (docs/trace-format.md)",
                                           shown(format)));
  const std::string* const version = find(attributes, "version");
  if (version == nullptr || *version != "1")
    throw Error("dump_format",
                fmt::format("its attribute version is {}; legal: 1", shown(version)));
}

}  // namespace shardproof::dump
