#pragma once

#include <optional>

#include "golden/candidate/held.h"
#include "golden/diagnosis/diagnosis.h"

namespace shardproof::candidate {

/// A value as the diagnosis takes it: in the model's units, with dims and elements in the model's
/// order. Where the writer's padding or order of heads or channels leaves a chip with other
/// elements than a block of the model's value, it is the whole value, without its chips. Nothing
/// of a value that is neither a checkpoint nor the S of a product, or of which a part is missing.
std::optional<diagnosis::Wrong> wrong_value(const Held& held, const Values& values,
                                            const Torus& torus);

}  // namespace shardproof::candidate
