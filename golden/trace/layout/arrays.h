#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "golden/trace/claim/mesh.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// The arrays of a value in a file, by chip; a whole value counts as that of a one-chip torus.
struct Arrays {
  /// One array in the local shape of a chip, after the stacked dims.
  struct Shard {
    int chip = 0;
    const dump::StoredArray* stored = nullptr;
    std::size_t first = 0;  ///< first element in the array
  };

  bool whole = false;
  Torus torus;
  Shape local;
  std::vector<Shard> shards;
  NumberFormat encoding = NumberFormat::f32;
};

/// Returns for example "[2,3]".
std::string in_brackets(const Shape& shape);

/// Returns the arrays of a value with `rank` dims; in stacked form the dims of `mesh` precede them.
/// `value` outlives the result. Throws Error("dump_layout", ...) naming the value: a chip that is
/// not on the torus, shards of different shapes, an array that is neither whole nor stacked.
Arrays arrays_of(const std::string& name, const dump::Value& value, const Mesh& mesh,
                 const Torus& torus, std::size_t rank);

}  // namespace shardproof::dump
