#pragma once

#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases {

/// Returns the values of a case's keys, model keys included, each reduced to one of a few kinds:
/// "act=bf16", "1<K<H", "chunk<prompt", "hand-over". Keys without effect in the case are left out:
/// a schedule in the exact regime, theta without rotation.
std::vector<std::string> key_values_of(const Case& c);

/// Returns every kind of value of every key, all of which random cases must cover.
const std::vector<std::string>& all_key_values();

}  // namespace shardproof::cases
