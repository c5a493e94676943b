#pragma once

#include <optional>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/value/dumped_value.h"
#include "golden/trace/verdict/verdict.h"

namespace shardproof::dump {

/// Converts a value for the diagnosis: in the model's units, with dims and elements in the model's
/// order. If the writer's padding or order of heads or channels means that a chip does not hold a
/// block of the model's value, the result is the whole value, without chips. Returns nullopt if the
/// value is neither a checkpoint, a weight nor the S of a product, or is incomplete. `rows`: of a
/// text's model.
std::optional<diagnosis::Wrong> wrong_value(const DumpedValue& dumped, const Values& values,
                                            const Torus& torus, const ModelRows* rows = nullptr);

/// Returns explanations of the first divergence; empty if there is none, or the diagnosis does not
/// cover it. Only values that the verdict does not find wrong are offered as its source, and
/// explanations are checked against some later values of the name. `values`, `claim` and
/// `reference` are those of the verdict; `without` is as for diagnosis::diagnose.
std::vector<diagnosis::Hypothesis> diagnosed(const Verdict& verdict, const Values& values,
                                             const Claim& claim, Reference& reference,
                                             std::string_view without = "");

}  // namespace shardproof::dump
