#pragma once

#include <cstddef>
#include <vector>

#include "oracle/request/filed.h"
#include "weights/model/model_config.h"
#include "weights/model/passes.h"

namespace shardproof::oracle {

/// Whether the rows run as one batch: each has as many tokens as the pass, and none goes on from a
/// prefix. Else each row runs alone.
bool is_one_batch(const Passes& passes);

/// The passes in which row `row` has tokens, of these tokens alone: a batch of one row without
/// padding, all of whose tokens, those of its prefix first, are in one cache.
Passes passes_alone(const Passes& passes, std::size_t row);
/// Of each prefix that rows of a batch have in common the first of them: row b of B has prefix r
/// where r·B ≤ b·N < (r+1)·B (docs/spec.md section 2.11). Of code of its own: the engine's side has
/// another.
std::vector<std::int64_t> first_rows(const SharedPrefix& prefix, std::int64_t rows);
/// The row's ids, int32 [1, P].
IntTensor ids_alone(const IntTensor& ids, std::size_t row);

/// What rows that ran alone have filed, put together as the batch's: each row's values where its
/// tokens are, +0 at padding; a cache stays as it was in a pass that has no token of the row. The
/// values of a pass over prefixes are those of the first rows that have them; of a row that goes on
/// from one, the slots of its cache behind the prefix are its own.
/// `T` is as in Filed, of which `whole` becomes the batch's.
template <class T>
void put_together(Filed<T>& whole, const std::vector<Filed<T>>& rows, const ModelConfig& config,
                  const Passes& passes);

}  // namespace shardproof::oracle
