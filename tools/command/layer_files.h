#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/command/case_flags.h"
#include "tools/runner/case_source.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// embed_scale of the default case of a user's layer: with scale 1 the embedding would equal its
/// table's row, and a layer could confuse the two.
inline constexpr float kProgramEmbedScale = 0.75F;

/// The user's files that replace strategies, with their flags.
struct LayerFiles : LayerFileNames {
  /// Adds --layouts and, if `programs`, the flags of layer programs.
  void add_to(CLI::App& verb, bool programs);
};

/// Reads the files, and the case from `line` and the flags. Defaults: torus=4x2x3
/// model=palm-tiny,embed_scale=0.75 (or the weights file's) gen=3, the smallest legal prompt of at
/// least 4 and the smallest legal batch; gen=1 if only a prefill's program is judged. Throws what
/// load_layer, load_strategies and parse_case throw, and Error: "program_f4" (a phase has a program
/// and a strategy), "program_f5" (a phase that runs has neither), "program_f6" (a decode's program
/// shards L), "layouts_f4" (see name_phases).
Case load_given_case(const LayerFiles& files, CaseFlags& flags, const std::string& line = "");

/// Reads the tables of --layouts, so that the case may name them; the only table of a file applies
/// to every phase that `line` and the flags do not set. Throws what load_strategies throws, and
/// Error("layouts_f4", ...) if the file has several tables and none is named, or if no phase uses a
/// table of the file.
void name_phases(const LayerFiles& files, CaseFlags& flags, const std::string& line);

/// Returns the table of this name, or the only one if the name is empty. Throws Error("layouts_f4",
/// ...) if there is none, or the choice is ambiguous.
const Strategy& table_named(const std::string& name, const std::vector<Strategy>& tables,
                            const std::string& file);

}  // namespace shardproof::tools
