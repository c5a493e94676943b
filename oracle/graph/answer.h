#pragma once

#include "oracle/field/answer.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle::graph {

/// Runs the model of a text, `stored.config().rows`, and returns its values as oracle::run returns
/// those of a model of keys: every line of the flat form is a checkpoint; logits are [BLV]. Throws
/// what graph::run throws.
oracle::Answer answer(const Weights& stored, const oracle::Request& request);

/// Returns the answer in the field regime, of `request.config`. Degrees and applications are those
/// of sampling alone: what the text's lines apply follows from their form. Throws what run_in_field
/// throws.
field::Answer answer_in_field(const field::Request& request);

}  // namespace shardproof::oracle::graph
