#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "golden/trace/read/detail/element_type.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// The header of an .npy file (NumPy's format versions 1.0, 2.0 and 3.0).
struct NpyHeader {
  char kind = 'f';        ///< kind letter of descr: f, i, u, b, V; S, bytes; U, UCS-4 texts
  std::size_t count = 4;  ///< bytes per element; for U, characters
  bool big_endian = false;
  bool fortran_order = false;  ///< the first dim varies fastest
  Shape shape;

  std::size_t element_bytes() const { return kind == 'U' ? 4 * count : count; }
  bool is_text() const { return kind == 'S' || kind == 'U'; }
};

/// Bytes at the start of every .npy file that determine the length of its header.
constexpr std::size_t kNpyPrefix = 12;
/// Longer headers are rejected.
constexpr std::size_t kLongestNpyHeader = std::size_t{64} << 10;

/// Returns the length of the whole header, `prefix` included; for version 1.0 it may be less than
/// kNpyPrefix. Throws Error("dump_value", ...) naming `member`.
std::size_t npy_header_bytes(std::span<const std::byte, kNpyPrefix> prefix,
                             std::string_view member);

/// Parses the header's text, a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape':
/// (2,)}. Throws Error("dump_value", ...) for anything else, for arrays of Python objects and for
/// structured arrays.
NpyHeader parse_npy_header(std::string_view text, std::string_view member);

/// Returns the type of numeric elements. Throws Error("dump_value", ...) for texts.
ElementType element_type(const NpyHeader& header, std::string_view member);

}  // namespace shardproof::dump
