#pragma once

#include "engine/run/plan.h"
#include "engine/shards/finding.h"

namespace shardproof {

/// Checks what one program of a plan hands to another: the residual stream, what the embedding
/// returns, a layer's caches to its next pass, caches through the hand-overs to the phase that
/// reads them. Adds findings "program_c7" (the reader declares another layout, or is handed no such
/// cache), each with the first pass that runs the reader. Every program by itself must be well
/// typed.
void check_handed_values(const RunPlan& plan, Findings& findings);

}  // namespace shardproof
