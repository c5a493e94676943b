#pragma once

#include <initializer_list>
#include <string_view>

#include "oracle/field/detail/pass.h"

namespace shardproof::oracle::field {

/// Keys and values of one layer so far, B x M x K x Q; empty before the first pass.
struct Cache {
  Value k, v;
};

/// Computes and files a norm checkpoint of x, and its statistics.
Value norm(Pass& pass, int layer, std::string_view name, const Value& x);

/// Computes attention from the norm n, B x L x E, to `attn`; extends the cache.
Value attention(Pass& pass, int layer, const Value& n, Cache& cache);

/// Operands of a contraction: the terms' inputs, each B x L x ..., with the names of their
/// matrices; an int8 scale and biases, if the model has weights of these names.
struct Projection {
  struct Term {
    const Value& input;
    std::string_view matrix;
  };
  std::initializer_list<Term> terms;
  std::string_view scale;
  std::initializer_list<std::string_view> biases;
};
/// Computes S of the terms, times the scale, plus the biases: B x L x `channels`.
Value project(Pass& pass, int layer, std::string_view name, const Projection& of,
              const Shape& channels);

/// Runs layer `layer` from the block's input, B x L x E, to its `out`.
Value block(Pass& pass, int layer, const Value& x, Cache& cache);

}  // namespace shardproof::oracle::field
