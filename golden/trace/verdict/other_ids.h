#pragma once

#include <optional>
#include <string>

#include "golden/trace/verdict/verdict.h"

namespace shardproof::dump {

/// For a trace without ids that diverges where ids enter: notes that its ids may differ from the
/// seed's prompt, and which they are, if its embedding or first norm shows them.
std::optional<std::string> other_ids(const Values& values, const Claim& claim, Reference& reference,
                                     const Verdict& verdict);

}  // namespace shardproof::dump
