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

/// How many tokens each row has in a pass, and which rows' logits become tokens. What is left of L
/// is padding: nothing is said of its values (docs/spec.md section 2.7).
struct RowsOfPass {
  std::vector<std::int64_t> tokens;
  std::vector<bool> samples;

  RowsOfPass(std::vector<std::int64_t> tokens_of_rows, std::vector<bool> rows_that_sample)
      : tokens(std::move(tokens_of_rows)), samples(std::move(rows_that_sample)) {}
  explicit RowsOfPass(const PassPlan& pass);
};

/// The elements, row-major, of a value with these dims and this shape that are padding: of "BLE..."
/// a row's places from its number of tokens on; of a value without L all that is of a row without
/// tokens; of a value of sampling (the token, and what it
/// is chosen from) all of a row that does not sample. Of caches, "BMKQ", none is: a slot that
/// no token has reached is known to hold NaN. Empty where there is no padding.
std::vector<bool> row_padding(std::string_view dims, const Shape& shape, bool of_sampling,
                              const RowsOfPass& rows);
/// The same of a value of the pass that a program declares to be this; of the pass before, of
/// prefixes, weights and constants none is.
std::vector<bool> row_padding(const Role& role, const Shape& shape, const RowsOfPass& rows);

/// What nothing is said of in a trace of anybody's (docs/trace-format.md): the same, and of caches
/// the slots after the end of a row's tokens, which no query sees.
std::vector<bool> padding_in_trace(std::string_view dims, const Shape& shape, bool of_sampling,
                                   const PassPlan& pass);

}  // namespace shardproof
