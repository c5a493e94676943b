#pragma once

#include <filesystem>

#include "golden/case.h"
#include "weights/error.h"

namespace shardproof {

/// Throws Error("trace_c2", ...) if the trace of a case has no room in memory beside the run, or on
/// the disk under `folder`; the size is named.
void require_trace_room(const Case& c, const GivenLayers& layers,
                        const std::filesystem::path& folder);

}  // namespace shardproof
