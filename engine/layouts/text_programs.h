#pragma once

#include "engine/layouts/around.h"
#include "engine/layouts/table.h"
#include "weights/base/error.h"
#include "weights/model/sampling.h"

namespace shardproof {

/// Lowers the embedding, the layers and the head of a text's model to programs, by the table and
/// the rules of docs/layouts.md, "Models as texts": one step for each line of the flat form, and
/// the cheapest paths between the layouts. Layers that differ in a flag have a program each.
///
/// Throws Error, naming the table and its line: "layouts_c4", "layouts_c5", "layouts_c6" as
/// partition(), "layouts_c11" (the text lacks a value, weight or dim that the table gives layouts),
/// "layouts_c12" (a line of the text that no program has a step for: before, a contraction of
/// positions, a merged dim along which an indicator differs).
PhasePrograms text_programs(const LayoutTable& table, const ModelConfig& config,
                            const Extents& extents, const Torus& torus, const Sampling& sampling);

}  // namespace shardproof
