#include "weights/safetensors/detail/header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

#include "weights/json/strict_json.h"

namespace shardproof {
namespace {

using nlohmann::json;

/// The most bytes of a header, as the format's own readers take them, and of a tensor.
constexpr std::uint64_t kMostHeader = 100'000'000, kMostBytes = std::uint64_t{1} << 46;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw Error("tensors_header", fmt::format("{}: {}", file.string(), why));
}

/// Returns the size of a regular file. Throws Error("tensors_open", ...).
std::uint64_t size_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw Error("tensors_open", fmt::format("{}: no regular file", file.string()));
  return std::filesystem::file_size(file, error);
}

std::string read_bytes(const std::filesystem::path& file, std::uint64_t begin,
                       std::uint64_t count) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes(count, '\0');
  in.seekg(static_cast<std::streamoff>(begin));
  if (!in.read(bytes.data(), static_cast<std::streamsize>(count)))
    throw Error("tensors_open", fmt::format("{}: cannot be read", file.string()));
  return bytes;
}

json parse(const std::filesystem::path& file, std::string_view text) {
  json document = parse_strict_json(
      text, [&](const std::string& why) { refuse(file, fmt::format("its header {}", why)); });
  if (!document.is_object()) refuse(file, "its header is no JSON object");
  return document;
}

/// Returns the bytes of a tensor of this shape, or kMostBytes + 1 if there are more.
std::uint64_t bytes_of(const Shape& shape, int width) {
  std::uint64_t bytes = static_cast<std::uint64_t>(width);
  for (const std::int64_t extent : shape) {
    const auto factor = static_cast<std::uint64_t>(extent);
    if (factor == 0) return 0;
    if (bytes > kMostBytes / factor) return kMostBytes + 1;
    bytes *= factor;
  }
  return bytes;
}

/// Reads one entry: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, and the end of its
/// bytes in the data.
std::pair<StoredTensor, std::uint64_t> tensor_of(const std::filesystem::path& file,
                                                 const std::string& name, const json& entry) {
  const auto fail = [&](const std::string& why) {
    refuse(file, fmt::format("{:?}: {}", name, why));
  };
  const auto list = [&](const char* key) -> std::vector<std::uint64_t> {
    const json member = entry.is_object() ? entry.value(key, json()) : json();
    const bool whole = member.is_array() &&
                       std::all_of(member.begin(), member.end(),
                                   [](const json& item) { return item.is_number_unsigned(); });
    if (!whole) fail(fmt::format("{} is not a list of whole numbers", key));
    return member.get<std::vector<std::uint64_t>>();
  };
  StoredTensor tensor;
  tensor.file = file;
  const std::vector<std::uint64_t> shape = list("shape"), offsets = list("data_offsets");
  const json type = entry.value("dtype", json());
  const auto row =
      std::find_if(kNumberFormats.begin(), kNumberFormats.end(), [&](const NumberFormatRow& r) {
        return type.is_string() && type.get_ref<const std::string&>() == r.safetensors;
      });
  if (row == kNumberFormats.end()) {
    std::vector<std::string_view> words;
    for (const NumberFormatRow& r : kNumberFormats) words.push_back(r.safetensors);
    fail(fmt::format("dtype {} is not one of {}", type.dump(), fmt::join(words, ", ")));
  }
  tensor.format = row->format;
  for (const std::uint64_t extent : shape) {
    if (extent > kMostBytes) fail(fmt::format("an extent of {} is beyond any file", extent));
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const std::uint64_t bytes = bytes_of(tensor.shape, row->bytes);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes)
    fail(fmt::format("data_offsets {} are not {} bytes, as its shape [{}] of {} has",
                     fmt::join(offsets, ", "), bytes, fmt::join(shape, ", "), row->word));
  tensor.begin = offsets[0];
  return {std::move(tensor), offsets[1]};
}

}  // namespace

std::map<std::string, StoredTensor> read_header(const std::filesystem::path& file) {
  const std::uint64_t size = size_of(file);
  if (size < 8) refuse(file, fmt::format("{} bytes are no safetensors file", size));
  const std::string prefix = read_bytes(file, 0, 8);
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  if (length > std::min(size - 8, kMostHeader))
    refuse(file, fmt::format("its header of {} bytes is beyond the file of {}, or the most, {}",
                             length, size, kMostHeader));
  const json header = parse(file, read_bytes(file, 8, length));
  std::map<std::string, StoredTensor> tensors;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    auto [tensor, end] = tensor_of(file, name, entry);
    spans.emplace_back(tensor.begin, end);
    tensor.begin += 8 + length;
    tensors.emplace(name, std::move(tensor));
  }
  std::sort(spans.begin(), spans.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != at)
      refuse(file, fmt::format("the data's bytes from {} to {} are of {}", std::min(at, begin),
                               std::max(at, begin), begin < at ? "two tensors" : "none"));
    at = end;
  }
  if (at != size - 8 - length)
    refuse(file, fmt::format("the header describes {} bytes of data, the file has {}", at,
                             size - 8 - length));
  return tensors;
}

std::map<std::string, std::string> read_index(const std::filesystem::path& file) {
  const std::uint64_t size = size_of(file);
  if (size > kMostHeader) refuse(file, fmt::format("it has more than {} bytes", kMostHeader));
  const json document = parse(file, read_bytes(file, 0, size));
  const json map = document.value("weight_map", json());
  if (!map.is_object()) refuse(file, "it has no weight_map");
  std::map<std::string, std::string> names;
  for (const auto& [name, value] : map.items()) {
    // A path would reach files that the directory does not hold.
    if (!value.is_string() || value.get_ref<const std::string&>().find('/') != std::string::npos)
      refuse(file, fmt::format("{:?} is in {}, which is not a file name", name, value.dump()));
    names.emplace(name, value.get<std::string>());
  }
  return names;
}

}  // namespace shardproof
