#pragma once

#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Returns the pass of that name.
PassPlan pass_named(const std::string& name, const Passes& passes);

// Logits of all positions, [B,L,V], where the model has only each row's last position.

/// Returns whether the array has all positions: by its layout, or by its number of dims if whole.
bool has_all_positions(const Subject& subject, const dump::Value& value, const Mesh& mesh);
/// Returns the subject of such an array, with dim L.
Subject at_all_positions(const Subject& subject, const Passes& passes);
/// Keeps only each row's last position of such a value, and records that in its note.
void take_last_positions(DumpedValue& dumped, const Passes& passes);

}  // namespace shardproof::dump
