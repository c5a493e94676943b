#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/layout/layout.h"
#include "golden/trace/pair/whole_value.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// An array of a trace whose model nobody knows: what it says of itself, without its numbers.
struct PlainArray {
  std::string name;   ///< in the file
  std::string title;  ///< with its meaning, layers spelled layerN
  std::string pass;   ///< "" of a weight
  std::string group;  ///< the title but for the pass
  Layout layout;      ///< without axes if the file has it whole
  Torus torus;        ///< 1x1x1 if the file has it whole
  bool whole = false;
  std::string padded;  ///< letters of dims that may be longer than the model's
  NumberFormat encoding = NumberFormat::f32;
  Shape shape;           ///< global, as the layout has it
  std::string why;       ///< why it cannot be put together
  std::string replicas;  ///< which chips' replicas differ, where; "": none
};

/// Returns the arrays of a trace by passes, layers and, as far as names are known, in the order of
/// a run. Throws Error("dump_mesh", ...), and Error("torus_c0", ...) for an attribute `torus` that
/// is none.
std::vector<PlainArray> plain_arrays(const Dump& dump);

/// The dim of the words of a number of the field regime.
inline constexpr char kWords = 'W';
/// The dim of the partial sums of a value, beside letters.
inline constexpr char kParts = '+';

/// Returns the letters of an array's dims; of partial sums kParts before them.
std::string dims_of(const PlainArray& array);
/// Returns the extents of these dims.
Shape shape_of(const PlainArray& array);

/// Puts an array together by `layout`, in the order of `letters`: partial sums side by side if
/// these begin with kParts, else added. Fills in the array's `replicas`.
WholeValue whole_array(const Dump& dump, PlainArray& array, const Layout& layout,
                       const std::string& letters);

}  // namespace shardproof::dump
