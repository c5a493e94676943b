#pragma once

#include <optional>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/value/held.h"
#include "golden/trace/verdict/verdict.h"

namespace shardproof::candidate {

/// A value as the diagnosis takes it: in the model's units, with dims and elements in the model's
/// order. Where the writer's padding or order of heads or channels leaves a chip with other
/// elements than a block of the model's value, it is the whole value, without its chips. Nothing
/// of a value that is neither a checkpoint nor the S of a product, or of which a part is missing.
std::optional<diagnosis::Wrong> wrong_value(const Held& held, const Values& values,
                                            const Torus& torus);

/// What explains the first divergence: nothing where there is none, or none that the diagnosis
/// takes. Only values that the verdict does not find wrong are taken for its source, and what
/// explains it is held against some later values of its name. `values`, `claim` and `reference` are
/// those of the verdict.
std::vector<diagnosis::Hypothesis> diagnosed(const Verdict& verdict, const Values& values,
                                             const Claim& claim, Reference& reference);

}  // namespace shardproof::candidate
