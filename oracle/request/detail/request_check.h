#pragma once

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/passes.h"

namespace shardproof::oracle {

/// Passes that read the given ids: those of the prefill (a prompt), or all.
enum class IdsOf { prefill, all };

/// Throws Error("oracle_range", ...) unless `ids`, int32 [B, P], are in the vocabulary and equal
/// where rows share a prefix, and the passes are consecutive and match the ids' rows and positions:
/// first those over the prefixes, then those of the rows that continue them.
void check_request(const ModelConfig& config, const Passes& passes, const IntTensor& ids, IdsOf of);

/// Returns the ids that the pass reads, int32 [B, L]: each row's tokens, 0 for padding.
IntTensor ids_at(const PassPlan& pass, const IntTensor& ids);

}  // namespace shardproof::oracle
