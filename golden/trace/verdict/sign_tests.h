#pragma once

#include <string>
#include <vector>

#include "golden/bounds/number/carried.h"
#include "golden/trace/value/held.h"

namespace shardproof::candidate {

/// What the signs of a whole value's errors say that its bounds do not
/// (golden/bounds/number/signs.h), of a sum of `terms` products a number [BL…] whose operands are
/// known. `bound` is what follows for it.
std::vector<std::string> sign_tests(const Held& held, const bounds::Carried& bound,
                                    std::size_t terms);

}  // namespace shardproof::candidate
