#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run/plan_types.h"
#include "tools/command/case_flags.h"

namespace shardproof::tools {

/// The explained object: a strategy or a program as one pass of a case.
struct Subject {
  std::string title;  // name of the strategy or of the program's file
  std::optional<Strategy> strategy;
  TypedPlan typed;
  bool prefill = false;  // a prefill pass, because L is sharded; otherwise a decode step
  bool hands_over = false;

  const Case& c() const { return typed.plan.source_case; }
  Phase phase() const { return prefill ? Phase::prefill : Phase::decode; }
  /// Number of positions of a row after its prefix.
  std::int64_t own() const { return c().prompt - c().prefix.length; }
  std::int64_t L() const { return prefill ? own() : 1; }
  std::int64_t M() const { return prefill ? 0 : own(); }
  /// Returns what the pass is, and of which extents.
  std::string pass() const;
  /// Returns "3 prefixes".
  std::string prefixes() const;
  /// Returns the tokens of each row; empty if all have the whole prompt.
  std::vector<std::int64_t> row_lengths() const;
};

/// Makes the subject of a strategy and the case on which it is explained.
Subject subject(const Strategy& strategy, CaseFlags flags);
/// Makes the subject of a user's program: as a prefill if L is sharded on this torus, otherwise as
/// both phases.
Subject subject(const std::string& program, CaseFlags& flags);

/// Returns the model and its padding: "palm-tiny,H=20,V=250, pad_heads=24".
std::string model_text(const Case& c);
/// Returns the rows' token counts, in lines that begin with `indent`; empty if all have the whole
/// prompt.
std::string rows_text(const Subject& of, std::string_view indent);

}  // namespace shardproof::tools
