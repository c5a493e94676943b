#pragma once

#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases {

/// What a case has for each key of its line, model keys too, as one of a few kinds: "act=bf16",
/// "1<K<H", "chunk<prompt", "hand-over". A key that is of no effect in the case says nothing: a
/// schedule in the exact regime, theta where nothing rotates.
std::vector<std::string> key_values_of(const Case& c);

/// All that random cases are to have: every kind of value of every key.
const std::vector<std::string>& all_key_values();

}  // namespace shardproof::cases
