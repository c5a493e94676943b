#pragma once

#include <cstdint>
#include <string>

#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// Reads a layer program from a file (docs/program.md). Throws Error: "program_f1" (the file cannot
/// be read), "program_f2" (it holds no statement), "program_f3" (it is not text, or is larger than
/// 1 MiB); and what parse_program throws, with file and line.
Program load_layer(const std::string& path);

/// Throws Error, with file and line, unless the program is a layer of this model: "layer_c1"
/// (inputs: one `in` and one of each `previous` cache, complete and before the first step;
/// positions as BL; weights that the model has; ones; nothing else), "layer_c2" (outputs: `out`,
/// `k_cache` and `v_cache`, complete, each once), "layer_c3" (the two caches are supplied in one
/// layout), "layer_c4" (store lines, if and only if act=bf16; scales with weights=int8), "layer_c5"
/// (the role of a step is a value that a layer of this model does not have), "program_c5" (an input
/// or output has other dims than its role).
void require_layer(const Program& layer, const ModelConfig& config, const Numerics& numerics);

}  // namespace shardproof
