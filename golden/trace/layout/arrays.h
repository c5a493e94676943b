#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "golden/trace/claim/mesh.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::candidate {

/// The arrays of a value of a file, by chip; a whole one as of a torus of one chip.
struct Arrays {
  /// One array in the local shape of a chip, after the stacked dims.
  struct Shard {
    int chip = 0;
    const dump::Stored* stored = nullptr;
    std::size_t first = 0;  ///< element of the array
  };

  bool whole = false;
  Torus torus;
  Shape local;
  std::vector<Shard> shards;
  dump::Encoding encoding = dump::Encoding::f32;
};

/// Of a value with `rank` dims, whose stacked form has the dims of `mesh` before them. `value`
/// outlives it. Throws Error("dump_layout", ...) naming the value: a chip that is not on the torus,
/// shards of several shapes, an array that is neither whole nor stacked.
Arrays arrays_of(const std::string& name, const dump::Value& value, const Mesh& mesh,
                 const Torus& torus, std::size_t rank);

}  // namespace shardproof::candidate
