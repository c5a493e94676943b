#pragma once

#include <memory>
#include <string>

#include "engine/program/program.h"
#include "tools/case_flags.h"

namespace shardproof::tools {

/// The scale of the embedding in the default case of a program: at a scale of 1 the embedding's
/// value would be its table's row, and one could be taken for the other.
inline constexpr float kProgramEmbedScale = 0.75F;

/// What `--program FILE` names: a user's layer program, and the case it is judged as.
struct GivenLayer {
  Program program;
  Case c;
};

/// Reads the program, and the case from `line` and the flags, where torus=4x2x3
/// model=palm-tiny,embed_scale=0.75 (or the weights file's) prompt=4 gen=3 and the smallest batch
/// that the program allows are the defaults. Throws what
/// load_layer and require_legal throw, and Error("program_f4", ...) if the case names a strategy:
/// the program is both prefill and decode.
std::shared_ptr<const GivenLayer> load_given_layer(const std::string& file, CaseFlags& flags,
                                                   const std::string& line = "");

}  // namespace shardproof::tools
