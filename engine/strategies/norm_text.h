#pragma once

#include <string>

#include "engine/strategies/program_text.h"
#include "weights/model_config.h"

namespace shardproof {

/// One norm of a program, to be written out (docs/strategies.md section 3).
struct NormText {
  std::string x;               ///< the value to normalise
  std::string layout;          ///< its layout, E last: `BLE_x`, `BE_x`
  Axes e;                      ///< E's axes: the statistics are all-reduced over them
  std::string before, behind;  ///< of the norm's names: "final_", "2"
  bool last = false;           ///< of every row the last position only
};

/// The inputs that the norm needs besides x: gains `g`, for a layernorm ones and a bias.
void norm_inputs(ProgramText& p, const ModelConfig& config, const NormText& norm);

/// The norm's lines; returns the name of the stored checkpoint.
std::string norm_lines(ProgramText& p, const ModelConfig& config, const NormText& norm);

}  // namespace shardproof
