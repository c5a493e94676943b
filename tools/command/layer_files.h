#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/command/case_flags.h"
#include "tools/runner/case_source.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// The scale of the embedding in the default case of a user's layer: at a scale of 1 the
/// embedding's value would be its table's row, and one could be taken for the other.
inline constexpr float kProgramEmbedScale = 0.75F;

/// The files of the user's that stand for strategies, as flags name them.
struct LayerFiles : LayerFileNames {
  /// Adds --layouts and, where the verb judges them, the flags of programs.
  void add_to(CLI::App& verb, bool programs);
};

/// Reads the files, and the case from `line` and the flags, where torus=4x2x3
/// model=palm-tiny,embed_scale=0.75 (or the weights file's) gen=3, the smallest legal prompt of at
/// least 4 and the smallest legal batch are the defaults; gen=1 where a prefill's program is judged
/// without a decode. Throws what load_layer, load_strategies and parse_case throw, and Error:
/// "program_f4" (a phase has a program and a strategy), "program_f5" (a phase that runs has
/// neither), "program_f6" (a decode's program shards L), "layouts_f4" (as name_phases).
Case load_given_case(const LayerFiles& files, CaseFlags& flags, const std::string& line = "");

/// Reads the tables, so that the case may name them; a file of one table stands for every phase
/// that `line` and the flags leave open. Throws what load_strategies throws, and
/// Error("layouts_f4", ...) where there are several tables and none is named, or where all that is
/// named is of another place.
void name_phases(const LayerFiles& files, CaseFlags& flags, const std::string& line);

/// The table of this name, or the only one where the name is empty.
/// Throws Error("layouts_f4", ...) if there is none, or the choice is open.
const Strategy& table_named(const std::string& name, const std::vector<Strategy>& tables,
                            const std::string& file);

}  // namespace shardproof::tools
