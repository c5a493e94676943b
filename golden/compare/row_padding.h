#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"

namespace shardproof {

/// The number of tokens of each row in a pass, and the rows whose logits become tokens. The rest of
/// L is padding, with undefined values (docs/spec.md section 2.7).
struct RowsOfPass {
  std::vector<std::int64_t> tokens;
  std::vector<bool> samples;

  RowsOfPass(std::vector<std::int64_t> tokens_of_rows, std::vector<bool> rows_that_sample)
      : tokens(std::move(tokens_of_rows)), samples(std::move(rows_that_sample)) {}
  explicit RowsOfPass(const PassPlan& pass);
};

/// Returns a mask, row-major, of the padding in a value with these dims and this shape: with B and
/// L a row's positions from its number of tokens on; for a value without L all of a row
/// without tokens; for a value of sampling (the token, and what it is chosen from) all of a row
/// that does not sample. Caches, with M and no L, have none: slots that no token has reached must
/// hold NaN, of a text's model 0. Empty if there is no padding.
std::vector<bool> row_padding(std::string_view dims, const Shape& shape, bool of_sampling,
                              const RowsOfPass& rows);
/// Returns the padding mask of a value with this role in the pass. Values of the previous pass,
/// prefixes, weights and constants have none.
std::vector<bool> row_padding(const Role& role, const Shape& shape, const RowsOfPass& rows,
                              const ModelRows* of_model = nullptr);

/// Returns the mask of undefined elements in any trace (docs/trace-format.md): the padding of
/// row_padding, and in caches the slots after the end of a row's tokens, which no query sees. What
/// a text makes of a cache (`view_of_cache`) has no value in a row without tokens.
std::vector<bool> padding_in_trace(std::string_view dims, const Shape& shape, bool of_sampling,
                                   const PassPlan& pass, bool view_of_cache = false);

}  // namespace shardproof
