#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "golden/trace/read/detail/element_type.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// What stands before the elements of an .npy file (NumPy's format versions 1.0, 2.0 and 3.0).
struct NpyHeader {
  char kind = 'f';        ///< of descr: f, i, u, b, V; S, bytes; U, UCS-4 texts
  std::size_t count = 4;  ///< bytes of an element, of U its characters
  bool big_endian = false;
  bool fortran_order = false;  ///< the first dim is the minor one
  Shape shape;

  std::size_t element_bytes() const { return kind == 'U' ? 4 * count : count; }
  bool is_text() const { return kind == 'S' || kind == 'U'; }
};

/// The first bytes of every .npy file: what says how long the rest of its header is.
constexpr std::size_t kNpyPrefix = 12;
/// A longer header is refused.
constexpr std::size_t kLongestNpyHeader = std::size_t{64} << 10;

/// How many bytes the whole header has, those of `prefix` among them. Of version 1.0 it may be less
/// than kNpyPrefix. Throws Error("dump_value", ...), which names `member`.
std::size_t npy_header_bytes(std::span<const std::byte, kNpyPrefix> prefix,
                             std::string_view member);

/// Of the header's text, a dict of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (2,)}.
/// Throws Error("dump_value", ...) on anything else, on arrays of Python objects and on structured
/// ones.
NpyHeader parse_npy_header(std::string_view text, std::string_view member);

/// What elements of numbers are. Throws Error("dump_value", ...) on texts.
ElementType element_type(const NpyHeader& header, std::string_view member);

}  // namespace shardproof::dump
