#pragma once

#include <cstddef>
#include <vector>

#include "oracle/request/model_values.h"
#include "weights/model/model_config.h"
#include "weights/model/passes.h"

namespace shardproof::oracle {

/// Returns whether the rows can run as one batch: each has L tokens in every pass, and none
/// continues a prefix. Otherwise each row runs alone.
bool is_one_batch(const Passes& passes);

/// Returns the passes in which row `row` has tokens, reduced to these tokens: a batch of one row
/// without padding and with one cache, which begins with the tokens of its prefix.
Passes passes_alone(const Passes& passes, std::size_t row);
/// Returns the first row of each prefix: row b of B has prefix r if r·B ≤ b·N < (r+1)·B
/// (docs/spec.md section 2.11). Implemented independently of the engine's.
std::vector<std::int64_t> first_rows(const SharedPrefix& prefix, std::int64_t rows);
/// Returns the row's ids, int32 [1, P].
IntTensor ids_alone(const IntTensor& ids, std::size_t row);

/// Combines the values of rows that ran alone into `whole`, the batch's: each row's values at its
/// tokens, +0 at padding; a cache is unchanged by a pass with no token of its row. A pass over
/// prefixes takes the values of the first rows that have them; a row that continues a prefix
/// contributes only the cache slots after it. `T` as in ModelValues.
template <class T>
void put_together(ModelValues<T>& whole, const std::vector<ModelValues<T>>& rows,
                  const ModelConfig& config, const Passes& passes);

}  // namespace shardproof::oracle
