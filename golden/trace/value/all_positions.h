#pragma once

#include "golden/trace/value/held.h"

namespace shardproof::candidate {

// Logits of all positions, [B,L,V], where the model's are of each row's last one alone.

/// Whether the array is one of all positions: by its layout; a whole one by its number of dims.
bool has_all_positions(const Subject& subject, const dump::Value& value, const Mesh& mesh);
/// The subject of such an array, with the dim L.
Subject at_all_positions(const Subject& subject, const Passes& passes);
/// Leaves each row's last position of such a value, and says so in its note.
void take_last_positions(Held& held, const Passes& passes);

}  // namespace shardproof::candidate
