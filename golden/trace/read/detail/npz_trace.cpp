#include "golden/trace/read/detail/npz_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/detail/element_type.h"
#include "golden/trace/read/detail/json_attributes.h"
#include "golden/trace/read/detail/npy_header.h"
#include "golden/trace/read/detail/place.h"
#include "golden/trace/read/detail/unicode.h"
#include "golden/trace/read/detail/zip_archive.h"

namespace shardproof::dump {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::string_view kDescription = "shardproof";
constexpr std::size_t kPiece = std::size_t{1} << 20;
// A parsed JSON document takes many times the memory of its text.
constexpr std::uint64_t kJsonShare = 64;

[[noreturn]] void refuse(std::string_view label, std::string_view name, std::string_view why) {
  throw Error(label, fmt::format("{:?} {}", name, why));
}

/// torch.save also writes a zip archive.
bool is_of_torch(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](std::string_view name) {
    return name == "data.pkl" || name.ends_with("/data.pkl");
  });
}

/// An array of the archive whose header has been read.
class Array {
 public:
  Array(ZipArchive::Member member, std::string name)
      : member_(std::move(member)), name_(std::move(name)) {
    // Every header, also the shortest of version 1.0, is longer than this prefix.
    std::array<std::byte, kNpyPrefix> prefix{};
    member_.read(prefix);
    const std::size_t whole = npy_header_bytes(prefix, name_);
    if (whole < kNpyPrefix) refuse("dump_value", name_, "has no header");
    std::vector<std::byte> rest(whole - kNpyPrefix);
    member_.read(rest);
    std::string text;
    const std::size_t begin = std::to_integer<int>(prefix[6]) == 1 ? kNpyPrefix - 2 : kNpyPrefix;
    for (std::size_t i = begin; i < kNpyPrefix; ++i) text.push_back(static_cast<char>(prefix[i]));
    for (const std::byte b : rest) text.push_back(static_cast<char>(b));
    header_ = parse_npy_header(text, name_);
    count_ = 1;
    for (const std::int64_t extent : header_.shape)
      if (__builtin_mul_overflow(count_, static_cast<std::uint64_t>(extent), &count_)) huge();
  }

  const NpyHeader& header() const { return header_; }

  /// Returns the array's size in bytes, given the bytes per element.
  std::uint64_t size(std::size_t element_bytes) const {
    std::uint64_t bytes = count_;
    if (__builtin_mul_overflow(bytes, std::uint64_t{element_bytes}, &bytes)) huge();
    return bytes;
  }

  std::vector<std::byte> all() {
    std::vector<std::byte> bytes(size(header_.element_bytes()));
    member_.read(bytes);
    member_.end();
    return bytes;
  }

  /// Passes on pieces of whole elements in row-major order, whatever the order in the file.
  template <class Take>
  void pieces(Take&& take) {
    const std::size_t element = header_.element_bytes();
    if (header_.fortran_order && header_.shape.size() > 1) {
      turned(all(), element, take);
      return;
    }
    const std::size_t at_once = std::max<std::size_t>(1, kPiece / element) * element;
    std::vector<std::byte> piece(std::min<std::uint64_t>(at_once, size(element)));
    for (std::uint64_t left = size(element); left > 0;) {
      piece.resize(std::min<std::uint64_t>(piece.size(), left));
      member_.read(piece);
      take(std::span<const std::byte>(piece));
      left -= piece.size();
    }
    member_.end();
  }

 private:
  [[noreturn]] void huge() const {
    refuse("dump_size", name_, "declares more bytes than can be counted");
  }

  template <class Take>
  void turned(const std::vector<std::byte>& all, std::size_t element, Take& take) const {
    if (all.empty()) return;
    const Shape& shape = header_.shape;
    std::vector<std::size_t> strides(shape.size(), element), index(shape.size(), 0);
    for (std::size_t i = 1; i < shape.size(); ++i)
      strides[i] = strides[i - 1] * static_cast<std::size_t>(shape[i - 1]);
    std::vector<std::byte> piece;
    piece.reserve(kPiece + element);
    for (std::size_t at = 0, left = all.size(); left > 0; left -= element) {
      piece.insert(piece.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                   all.begin() + static_cast<std::ptrdiff_t>(at + element));
      if (piece.size() >= kPiece || left == element) {
        take(std::span<const std::byte>(piece));
        piece.clear();
      }
      for (std::size_t dim = shape.size(); dim-- > 0;) {
        at += strides[dim];
        if (++index[dim] < static_cast<std::size_t>(shape[dim])) break;
        at -= strides[dim] * index[dim];
        index[dim] = 0;
      }
    }
  }

  ZipArchive::Member member_;
  std::string name_;
  NpyHeader header_;
  std::uint64_t count_ = 1;
};

/// Returns the JSON text, stored as one text of bytes or characters, or as an array of bytes.
std::string description(Array array, std::uint64_t most) {
  const NpyHeader& header = array.header();
  const bool bytes = (header.kind == 'u' || header.kind == 'i') && header.count == 1;
  if (!bytes && !(header.is_text() && array.size(1) == 1))
    refuse("dump_format", kDescription, "is not text: legal is json.dumps({...})");
  if (array.size(header.element_bytes()) > most)
    refuse("dump_size", kDescription, fmt::format("is a text of more than {} bytes", most));
  std::vector<std::byte> all = array.all();
  std::string text;
  if (header.kind == 'U') {
    text = utf8_of_ucs4(all, header.big_endian);
  } else {
    for (const std::byte b : all) text.push_back(static_cast<char>(b));
  }
  text.erase(text.find_last_not_of('\0') + 1);  // NumPy pads with zeros
  return text;
}

class Npz {
 public:
  Npz(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink)
      : archive_(path), allowance_(allowance), sink_(sink) {}

  void read() {
    const std::vector<std::string>& names = archive_.names();
    const auto at =
        std::find(names.begin(), names.end(), std::string(kDescription) + std::string(kEnding));
    if (at == names.end() && is_of_torch(names)) throw Error("dump_open", std::string(kOfTorch));
    if (at == names.end())
      throw Error("dump_format",
                  "has no member \"shardproof\", which says what its values are "
                  "(docs/trace-format.md)");
    const auto described = static_cast<std::size_t>(at - names.begin());
    attributes_ = parse_json_attributes(
        description(array(described, std::string(kDescription)), allowance_.whole() / kJsonShare));
    require_trace(attributes_.file);
    for (const auto& [name, text] : attributes_.file) sink_.attribute(name, text);
    for (std::size_t member = 0; member < names.size(); ++member)
      if (member != described) read_member(member);
  }

 private:
  Array array(std::size_t member, std::string name) const {
    return {archive_.open(member), std::move(name)};
  }

  void read_member(std::size_t member) {
    const std::string& name = archive_.names()[member];
    if (name.size() > kLongestText)
      throw Error("dump_value", fmt::format("has a name of {} bytes", name.size()));
    if (name.ends_with('/')) return;  // an entry of a folder
    const std::string_view folder = folder_of(name);
    if (!name.ends_with(kEnding) || (folder != "chips" && name.find('/') != std::string::npos)) {
      allowance_.take(name.size(), "a name");
      sink_.ignored(name);
      return;
    }
    const std::string path = name.substr(0, name.size() - kEnding.size());
    read_value(array(member, path), path, place_of(path));
  }

  void read_value(Array array, const std::string& path, const PathPlace& place) {
    static const Attributes kNone;
    const auto at = attributes_.values.find(place.id);
    const Attributes& attributes = at == attributes_.values.end() ? kNone : at->second;
    const ElementType type = element_type(array.header(), path);
    const EncodingOrNot known = encoding_of(type, attributes);
    if (!known.encoding) {
      allowance_.take(path.size(), "a name");
      sink_.unread(path, attributes, known.why);
      return;
    }
    const NumberFormat encoding = *known.encoding;
    allowance_.take(array.size(static_cast<std::size_t>(bytes_of(encoding))),
                    fmt::format("{:?}", path));
    sink_.array(path, attributes, encoding, array.header().shape);
    array.pieces(
        [&](std::span<const std::byte> piece) { convert(piece, type, encoding, path, sink_); });
  }

  ZipArchive archive_;
  Allowance allowance_;
  Sink& sink_;
  JsonAttributes attributes_;
};

}  // namespace

void read_npz(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink) {
  Npz(path, allowance, sink).read();
}

}  // namespace shardproof::dump
