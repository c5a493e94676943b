#pragma once

#include <string>
#include <string_view>

#include "engine/cost/plan/plan.h"

namespace shardproof::tools {

/// The strategies of a choice, both of which the engine needs. A decode-only choice prefills under
/// its own strategy; a prefill-only choice decodes under the strategy beside it, or else its own if
/// that can decode, or else ws2d:heads.
struct ProvenStrategies {
  Strategy prefill, decode;
};
ProvenStrategies proven_strategies(const cost::Choice& choice);

/// Returns the line above the command: on which model it proves the choice. `tori`: "torus".
std::string proof_heading(const ModelConfig& model, std::string_view tori);

/// Returns the command that proves a choice: its strategies, torus, block, FFN and numerics on a
/// model with the smallest dims that they divide.
std::string proof_command(const cost::Choice& choice, const ModelConfig& model,
                          const std::string& layouts_file = "");

/// Returns the command that proves a prefill and a decode on separate tori (docs/split.md).
std::string split_proof_command(const cost::Choice& prefill, const cost::Choice& decode,
                                const ModelConfig& model, const std::string& layouts_file = "");

}  // namespace shardproof::tools
