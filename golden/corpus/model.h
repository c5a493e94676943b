#pragma once

#include "engine/run/case.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::corpus {

/// The golden of a case (levels 2 and 3): weights as stored for the run, token ids, every
/// checkpoint of every pass and the tokens, as the unsharded model has them in the exact regime,
/// each with the first complete layout that it has under the case's strategies; and the text of
/// each phase's layer program. `given` replaces weights of the case's seed. A sharded run of just
/// these programs, under the judge, has every value equal in the exact and in the field regime, or
/// NotEqual is thrown, with the reason. Throws Error: "golden_case" (another regime than exact; a
/// layer program of the user's), and what make_plan, the oracle and verify_plan throw.
dump::Dump model_golden(const Case& named, const Weights* given = nullptr);

/// What says what a golden should hold: the unsharded model, or also a sharded run.
enum class By { model, model_and_run };

/// What a golden of this kind should hold, by its own case and layer programs; by its own weights
/// only where these are of a file. Throws as above, and what parse_case, parse_program and
/// golden_weights throw.
dump::Dump expected_model(const dump::Dump& golden, By by = By::model_and_run);

/// The case of a golden. Throws Error("golden_case", ...) if it has none; and what parse_case
/// throws.
Case case_of(const dump::Dump& golden);

/// The weights of a golden, as stored for the run. Throws Error("golden_weights", ...) on one that
/// is missing or has another shape, and what validate() throws.
Weights golden_weights(const dump::Dump& golden);

}  // namespace shardproof::corpus
