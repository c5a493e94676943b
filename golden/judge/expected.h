#pragma once

#include <memory>
#include <string>

#include "engine/program/execute.h"
#include "golden/compare/comparison.h"
#include "golden/compare/dim_padding.h"
#include "oracle/field/answer.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof {

/// The expected elements of a declared value, and its name: "decode.1.layer0.gate".
struct Expected : ExpectedBits {
  std::string id;
  std::shared_ptr<const Tensor> weight = {};  ///< owner of the bits of a weight; otherwise null
};

/// Returns the oracle's value for a declared one; answer and weights must outlive it. `shape` is
/// the value's own: it gives the number of blocks of candidates of a vocabulary padded as in
/// `padding`, and the shape of values that no pass has produced yet. Throws std::out_of_range,
/// Error("oracle_id", ...) or Error("weights_name", ...) if the model has no such value.
Expected expected_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                        const Role& role, const Shape& shape, const DimPadding& padding = {});
/// Returns the field regime's value for a declared one. Throws std::out_of_range or
/// Error("oracle_id", ...) if the model has no such value.
Expected expected_value(const oracle::field::Answer& answer, const Scope& scope, const Role& role,
                        const Shape& shape, const DimPadding& padding = {});

/// Returns the expected value as chips hold it under a layout with these letters: longer in padded
/// dims. The padding of a weight is 0, of a scale 1; that of any other value is not compared.
Expected as_placed(Expected expected, const Role& role, std::string_view letters,
                   const DimPadding& padding, const ModelRows* of_model = nullptr);

}  // namespace shardproof
