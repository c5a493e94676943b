#pragma once

#include <string>

#include "engine/program/execute.h"
#include "golden/compare/comparison.h"
#include "golden/compare/dim_padding.h"
#include "oracle/field/answer.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof {

/// What a declared value must be, and what that is called: "decode.1.layer0.gate".
struct Expected : ExpectedBits {
  std::string id;
};

/// What the oracle says a declared value is; answer and weights outlive it. `shape` is the value's
/// own: it tells how many blocks of candidates there are, of a vocabulary as `padding` has it, and
/// the shape of what no pass has made yet. Throws std::out_of_range, Error("oracle_id", ...) or
/// Error("weights_name", ...) if the model has no such value.
Expected expected_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                        const Role& role, const Shape& shape, const DimPadding& padding = {});
/// The same in the field regime. Throws std::out_of_range or Error("oracle_id", ...).
Expected expected_value(const oracle::field::Answer& answer, const Scope& scope, const Role& role,
                        const Shape& shape, const DimPadding& padding = {});

/// The same value as chips hold it whose layout has these letters: longer where dims are padded.
/// The padding of a weight is zero, of a scale 1; that of any other value may be anything.
Expected as_placed(Expected expected, const Role& role, std::string_view letters,
                   const DimPadding& padding);

}  // namespace shardproof
