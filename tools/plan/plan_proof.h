#pragma once

#include <string>

#include "engine/cost/plan/plan.h"

namespace shardproof::tools {

/// The strategies that a choice runs, as the engine needs both: of a decode alone the prefill is
/// under the same one, of a prefill alone the decode is the one beside it, or under the same one
/// where that can decode, else ws2d:heads.
struct ProvenStrategies {
  Strategy prefill, decode;
};
ProvenStrategies proven_strategies(const cost::Choice& choice);

/// The command that proves a choice: its strategies, torus, block, FFN and numbers on a model with
/// the smallest dims that they divide.
std::string proof_command(const cost::Choice& choice, const ModelConfig& model,
                          const std::string& layouts_file = "");

/// The same of a prefill and a decode on tori of their own (docs/split.md).
std::string split_proof_command(const cost::Choice& prefill, const cost::Choice& decode,
                                const ModelConfig& model, const std::string& layouts_file = "");

}  // namespace shardproof::tools
