#pragma once

#include <string_view>

#include "oracle/model/detail/pass.h"
#include "oracle/model/model.h"

namespace shardproof::oracle {

/// Keys and values of one layer so far, B x M x K x Q; empty before the first pass.
struct Cache {
  Tensor k, v;
};

/// Computes and files a norm checkpoint of x, and its statistics.
const Tensor& norm(Pass& pass, int layer, std::string_view name, const Tensor& x,
                   const NormWeights& weights, const ModelConfig& config);

/// Runs layer `layer` from the block's input, B x L x E, to its `out`; extends the cache.
const Tensor& block(Pass& pass, int layer, const Tensor& x, const Model& model, Cache& cache);

}  // namespace shardproof::oracle
