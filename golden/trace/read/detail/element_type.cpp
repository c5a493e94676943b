#include "golden/trace/read/detail/element_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace shardproof::dump {
namespace {

using Kind = ElementType::Kind;

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::uint64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view kLegal =
    "f64, f32, f16, int8, int32, int64, other integers but uint16, and bf16 as uint16 or V2 with "
    "the attribute encoding=bf16";

[[noreturn]] void refuse(std::string_view value, std::string_view why) {
  throw Error("dump_value", fmt::format("{:?} {}", value, why));
}

std::optional<NumberFormat> own_encoding(const ElementType& type) {
  switch (type.kind) {
    case Kind::floating:
      if (type.bytes == 8) return NumberFormat::f64;
      if (type.bytes == 4) return NumberFormat::f32;
      if (type.bytes == 2) return NumberFormat::f16;
      return std::nullopt;
    case Kind::boolean:
      return type.bytes == 1 ? std::optional(NumberFormat::int8) : std::nullopt;
    case Kind::signed_integer:
      if (type.bytes == 1) return NumberFormat::int8;
      if (type.bytes == 2 || type.bytes == 4) return NumberFormat::int32;
      if (type.bytes == 8) return NumberFormat::int64;
      return std::nullopt;
    case Kind::unsigned_integer:
      // A uint16 may be bf16 with its declaration missing.
      if (type.bytes == 1) return NumberFormat::int32;
      if (type.bytes == 4 || type.bytes == 8) return NumberFormat::int64;
      return std::nullopt;
    case Kind::opaque:
      return std::nullopt;
  }
  return std::nullopt;
}

bool may_be_bf16(const ElementType& type) {
  return type.bytes == 2 && (type.kind == Kind::unsigned_integer || type.kind == Kind::opaque);
}

/// Returns an element's bits; integers are sign-extended to 64 bits.
std::uint64_t load(std::span<const std::byte> element, const ElementType& type) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < type.bytes; ++i) {
    const std::size_t at = type.big_endian ? i : type.bytes - 1 - i;
    bits = bits << 8 | std::to_integer<std::uint64_t>(element[at]);
  }
  if (type.kind == Kind::signed_integer && type.bytes < 8 && (bits >> (8 * type.bytes - 1)) != 0)
    bits |= ~std::uint64_t{0} << 8 * type.bytes;
  return bits;
}

}  // namespace

bool keeps_bytes(const ElementType& type, NumberFormat encoding) {
  return type.bytes == static_cast<std::size_t>(bytes_of(encoding)) &&
         (!type.big_endian || type.bytes == 1) &&
         !(type.kind == Kind::unsigned_integer && type.bytes == 8);
}

std::string ElementType::to_string() const {
  const std::string order = big_endian && bytes > 1 ? "big-endian " : "";
  switch (kind) {
    case Kind::floating:
      return fmt::format("{}f{}", order, 8 * bytes);
    case Kind::signed_integer:
      return fmt::format("{}int{}", order, 8 * bytes);
    case Kind::unsigned_integer:
      return fmt::format("{}uint{}", order, 8 * bytes);
    case Kind::boolean:
      return bytes == 1 ? "bool" : fmt::format("bools of {} bytes", bytes);
    case Kind::opaque:
      return fmt::format("{} opaque bytes", bytes);
  }
  return "?";
}

EncodingOrNot encoding_of(const ElementType& type, const Attributes& attributes) {
  const std::string* const declared = find(attributes, "encoding");
  if (declared != nullptr && *declared == "bf16") {
    if (may_be_bf16(type)) return {NumberFormat::bf16, ""};
    return {std::nullopt, fmt::format("has encoding=bf16 and elements of {}; bf16 is stored as "
                                      "uint16, or as V2 in an npz",
                                      type.to_string())};
  }
  const std::optional<NumberFormat> own = own_encoding(type);
  if (!own)
    return {std::nullopt, fmt::format("has elements of {}; legal: {}", type.to_string(), kLegal)};
  if (declared != nullptr && *declared != to_string(*own) && *declared != type.to_string())
    return {std::nullopt,
            fmt::format("has encoding={} and elements of {}; legal: bf16, or leave it out",
                        *declared, type.to_string())};
  return {own, ""};
}

void convert(std::span<const std::byte> elements, const ElementType& type, NumberFormat encoding,
             std::string_view value, Sink& sink) {
  if (keeps_bytes(type, encoding)) {
    if (!elements.empty()) sink.bytes(elements);
    return;
  }
  // Converts piece by piece: a second copy of the whole might not fit in memory.
  const auto bytes = static_cast<std::size_t>(bytes_of(encoding));
  const std::size_t most = kPiece / type.bytes * type.bytes;
  std::vector<std::byte> out;
  while (!elements.empty()) {
    const std::span<const std::byte> piece = elements.first(std::min(most, elements.size()));
    elements = elements.subspan(piece.size());
    out.clear();
    for (std::size_t at = 0; at < piece.size(); at += type.bytes) {
      std::uint64_t bits = load(piece.subspan(at, type.bytes), type);
      if (type.kind == Kind::unsigned_integer && bits > kMostInt64)
        refuse(value, fmt::format("holds {}, which is not an int64", bits));
      for (std::size_t i = 0; i < bytes; ++i, bits >>= 8)
        out.push_back(static_cast<std::byte>(bits & 0xFFU));
    }
    sink.bytes(out);
  }
}

}  // namespace shardproof::dump
