#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "oracle/walk/weights.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/sampling.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Input of the unsharded run of a text: its sizes, a prompt and the passes, which share no prefix.
struct Request {
  const ModelText& text;
  const TextSizes& sizes;
  NumberFormat act = NumberFormat::f32;
  IntTensor prompt;  ///< int32 [B, L]
  Passes passes;
  Sampling sampling = {};
  std::uint64_t seed = 1;                  ///< seed of the numbers that draw tokens
  double unit = 1.0;                       ///< a logit in base e: ln 2 in a base-2 model
  std::vector<std::int64_t> row_ids = {};  ///< sampling ids of rows; default: row index

  std::int64_t row(std::size_t b) const {
    return row_ids.empty() ? static_cast<std::int64_t>(b) : row_ids.at(b);
  }
};

/// Every named value of every pass in the exact regime.
struct Answer {
  /// Values by id, "decode.1.layer0.q": the letters of the text, B rows; padding of L and slots of
  /// M that no token of a row has reached hold +0.
  std::map<std::string, Tensor> values;
  std::map<std::string, IntTensor> tokens;  ///< "PASS.token", int32 [B], of each sampling pass
};

/// Runs a text on whole tensors, line by line of its flat form (weights/text/flat.h), whose lines
/// are all among the values (docs/spec-model-text.md). Rows of unequal length run
/// alone. `find` returns weights as stored for the run. Throws Error:
/// "weights_name" (none of this id), "weights_shape" (another number of elements), "oracle_range"
/// (prompt and passes do not fit; a token outside the vocabulary; a shared prefix), "oracle_graph"
/// (gather beyond its table, the maximum of nothing), "oracle_finite" (a value that is not finite).
Answer run(const FindWeight& find, const Request& request);

}  // namespace shardproof::oracle::graph
