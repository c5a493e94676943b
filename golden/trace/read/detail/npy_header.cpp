#include "golden/trace/read/detail/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>

namespace shardproof::dump {
namespace {

constexpr std::size_t kMostDims = 64;  // NumPy's own limit

[[noreturn]] void refuse(std::string_view member, std::string_view why) {
  throw Error("dump_value", fmt::format("{:?} {}", member, why));
}

/// Parses the subset of Python literals that headers use.
class Dict {
 public:
  Dict(std::string_view text, std::string_view member) : text_(text), member_(member) {}

  NpyHeader read() {
    std::set<std::string_view> keys;
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      if (!keys.insert(key).second) bad();
      expect(':');
      value(key);
      if (!take(',') && peek() != '}') bad();
    }
    if (peek() != '\0' || at_ < text_.size() || keys.size() != 3) bad();
    return header_;
  }

 private:
  [[noreturn]] void bad() const {
    refuse(member_, fmt::format("has a header that is not a NumPy array's: {:?}",
                                text_.substr(0, std::min<std::size_t>(text_.size(), 200))));
  }

  void value(std::string_view key) {
    if (key == "descr") {
      if (peek() == '[') refuse(member_, "is a structured array; a value is one of numbers");
      descr(string());
    } else if (key == "fortran_order") {
      header_.fortran_order = boolean();
    } else if (key == "shape") {
      shape();
    } else {
      bad();
    }
  }

  void descr(std::string_view word) {
    if (word.empty()) bad();
    constexpr std::string_view kOrders = "<>=|";
    if (kOrders.find(word.front()) != std::string_view::npos) {
      header_.big_endian = word.front() == '>';
      word.remove_prefix(1);
    }
    if (word.empty()) bad();
    const std::string_view dtype = word;
    header_.kind = word.front();
    word.remove_prefix(1);
    if (header_.kind == 'O')
      refuse(member_, "is an array of Python objects (pickle), which is not read");
    constexpr std::string_view kKinds = "fiubVSU";
    if (kKinds.find(header_.kind) == std::string_view::npos)
      refuse(member_, fmt::format("has elements of dtype {:?}; legal: f, i, u and b1, bf16 as u2 "
                                  "or V2",
                                  dtype.substr(0, 80)));
    const auto read = std::from_chars(word.data(), word.data() + word.size(), header_.count);
    // Only the empty text has no bytes.
    if (read.ec != std::errc() || read.ptr != word.data() + word.size() ||
        header_.count > (std::size_t{1} << 40) || (header_.count == 0 && !header_.is_text()))
      bad();
  }

  bool boolean() {
    if (take("True")) return true;
    if (!take("False")) bad();
    return false;
  }

  void shape() {
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t extent = 0;
      const char* const from = text_.data() + at_;
      const auto read = std::from_chars(from, text_.data() + text_.size(), extent);
      if (read.ec != std::errc() || extent < 0 || header_.shape.size() == kMostDims) bad();
      at_ += static_cast<std::size_t>(read.ptr - from);
      take('L');  // Python 2
      header_.shape.push_back(extent);
      if (!take(',') && peek() != ')') bad();
    }
  }

  void skip_space() {
    constexpr std::string_view kSpaces = " \t\r\n";
    while (at_ < text_.size() && kSpaces.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool take(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(char c) {
    if (!take(c)) bad();
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad();
    const std::string_view found = text_.substr(at_ + 1, end - at_ - 1);
    if (found.find('\\') != std::string_view::npos) bad();
    at_ = end + 1;
    return found;
  }

  std::string_view text_, member_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

}  // namespace

std::size_t npy_header_bytes(std::span<const std::byte, kNpyPrefix> prefix,
                             std::string_view member) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(prefix[i]); };
  constexpr std::string_view kMagic = "\x93NUMPY";
  for (std::size_t i = 0; i < kMagic.size(); ++i)
    if (byte(i) != static_cast<unsigned char>(kMagic[i]))
      refuse(member, "does not begin as an .npy file");
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0)
    refuse(member,
           fmt::format("is an .npy file of version {}.{}; legal: 1.0, 2.0, 3.0", major, minor));
  const std::size_t text = major == 1 ? byte(8) | byte(9) << 8
                                      : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (text > kLongestNpyHeader)
    refuse(member,
           fmt::format("has a header of {} bytes; legal: at most {}", text, kLongestNpyHeader));
  return (major == 1 ? kNpyPrefix - 2 : kNpyPrefix) + text;
}

NpyHeader parse_npy_header(std::string_view text, std::string_view member) {
  return Dict(text, member).read();
}

ElementType element_type(const NpyHeader& header, std::string_view member) {
  using Kind = ElementType::Kind;
  ElementType type{.kind = Kind::opaque, .bytes = header.count, .big_endian = header.big_endian};
  switch (header.kind) {
    case 'f':
      type.kind = Kind::floating;
      break;
    case 'i':
      type.kind = Kind::signed_integer;
      break;
    case 'u':
      type.kind = Kind::unsigned_integer;
      break;
    case 'b':
      type.kind = Kind::boolean;
      break;
    case 'V':
      break;
    default:
      refuse(member, "is an array of texts; a value is one of numbers");
  }
  return type;
}

}  // namespace shardproof::dump
