#pragma once

#include <filesystem>

#include "engine/run/plan_types.h"
#include "weights/base/error.h"

namespace shardproof {

/// Throws Error("trace_c2", ...), stating the size, if the trace of a run does not fit on the disk
/// under `folder`.
void require_trace_room(const TypedPlan& typed, const std::filesystem::path& folder);

}  // namespace shardproof
