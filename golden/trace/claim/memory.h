#pragma once

#include "engine/run/case.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// Throws Error("memory_c1", ...) if the weights of the case and the values that its traces are
/// judged by need more memory than this process may take (weights/base/memory.h): a few bytes of a
/// file can request any model.
void require_memory(const Case& c);

}  // namespace shardproof::dump
