#pragma once

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/passes.h"

namespace shardproof::oracle {

/// Which passes read the ids that a run is given: those of the prefill, a prompt, or all.
enum class IdsOf { prefill, all };

/// Throws Error("oracle_range", ...) unless `ids`, int32 [B, P], are of the vocabulary and equal
/// where rows share a prefix, and the passes follow each other and are of the ids' rows and
/// positions: first those over the prefixes, then those of the rows that go on from them.
void check_request(const ModelConfig& config, const Passes& passes, const IntTensor& ids, IdsOf of);

/// What the pass reads of the ids, int32 [B, L]: each row's tokens, 0 where the row has none.
IntTensor ids_at(const PassPlan& pass, const IntTensor& ids);

}  // namespace shardproof::oracle
