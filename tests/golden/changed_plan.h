#pragma once

#include <functional>
#include <string>
#include <utility>

#include "golden/verify/verify.h"

namespace shardproof {

enum class Typing { checked, unchecked };
using PlanChange = std::function<void(RunPlan&)>;

/// The case judged by a plan that is changed before it is typed, or that is not typed at all.
inline Judgement judge_changed(const Case& c, const PlanChange& change, OracleMemo& memo,
                               Typing types = Typing::checked, const VerifyOptions& options = {}) {
  RunPlan plan = make_plan(c);
  change(plan);
  if (types == Typing::unchecked) return verify_unchecked(std::move(plan), memo, options);
  return verify_plan(make_typed_plan(std::move(plan), options.until), memo, options);
}

/// Every program of both phases, and the one between them.
inline std::vector<Program*> programs_of(RunPlan& p) {
  return {&p.prefill.embed, &p.prefill.layer, &p.prefill.head, &p.prefill.sample, &p.hand_over,
          &p.decode.embed,  &p.decode.layer,  &p.decode.head,  &p.decode.sample};
}

}  // namespace shardproof
