#pragma once

#include "engine/run/case.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::corpus {

/// Returns the golden of a case (levels 2 and 3): weights as stored for the run, token ids, every
/// checkpoint of every pass and the tokens, from the unsharded model in the exact regime, each with
/// the first complete layout that it has under the case's strategies; and the text of each phase's
/// layer program, or, of a model that is a text, that text. `given` replaces the weights of the
/// case's seed. Throws NotEqual, with the reason, unless a sharded run of these programs, under the
/// judge, has every value equal in the exact and in the field regime. Throws Error: "golden_case"
/// (another regime than exact; a user's layer program; a shared prefix of a model of keys),
/// "case_model" (what texts do not take), and what make_plan, the oracle and verify_plan throw.
dump::Dump model_golden(const Case& named, const Weights* given = nullptr);

/// The reference for a golden: the unsharded model alone, or also a sharded run.
enum class By { model, model_and_run };

/// Recomputes a golden of this kind from its case and layer programs, and from its weights only if
/// these come from a file. Throws what model_golden, parse_case, parse_program and golden_weights
/// throw.
dump::Dump expected_model(const dump::Dump& golden, By by = By::model_and_run);

/// Returns the case of a golden; its model's text is the golden's own. Throws
/// Error("golden_case", ...) if it has none, and what parse_case and parse_model_text throw.
Case case_of(const dump::Dump& golden);

/// Returns the weights of a golden, as stored for the run. Throws Error("golden_weights", ...) if
/// one is missing or has another shape, and what validate() throws.
Weights golden_weights(const dump::Dump& golden);

}  // namespace shardproof::corpus
