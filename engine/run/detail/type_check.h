#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/run/plan_types.h"
#include "engine/shards/finding.h"

namespace shardproof {

/// The type check of a run's programs. A program runs in many passes, and in both phases if they
/// have one strategy: an error in a step is reported once, in the first pass that has it.
class TypeCheck {
 public:
  /// `model` is the placed model; it and `findings` must outlive this object.
  TypeCheck(const ModelConfig& model, Findings& findings) : model_(model), findings_(findings) {}

  /// The types of the values that have one, in a pass of these extents, M being the length of the
  /// caches before it; none if the findings ended the check. The program must outlive this object.
  ValueTypes types(const Program& program, const std::string& pass, const Torus& torus,
                   const PassExtents& extents);

 private:
  using Fault = std::tuple<std::string, std::string, std::string, std::string>;
  /// A program and the faults already reported for it.
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
