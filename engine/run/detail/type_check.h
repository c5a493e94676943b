#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/run/plan_types.h"
#include "engine/shards/finding.h"

namespace shardproof {

/// The type check of a run's programs. A program runs in many passes, and in both phases if they
/// have one strategy: what is wrong with a step of it is found once, in the first of them.
class TypeCheck {
 public:
  /// `model`, as placed, and `findings` outlive this.
  TypeCheck(const ModelConfig& model, Findings& findings) : model_(model), findings_(findings) {}

  /// The types of the values that have one, in a pass of these extents, M being the length of the
  /// caches before it; none where the findings have ended the check. The program outlives this.
  ValueTypes types(const Program& program, const std::string& pass, const Torus& torus,
                   const PassExtents& extents);

 private:
  using Fault = std::tuple<std::string, std::string, std::string, std::string>;
  /// A program and what is known to be wrong with it.
  struct Known {
    const Program* program;
    std::set<Fault> faults;
  };

  std::set<Fault>& known_faults(const Program& program);

  const ModelConfig& model_;
  Findings& findings_;
  std::vector<Known> known_;
};

}  // namespace shardproof
