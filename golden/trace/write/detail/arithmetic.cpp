#include "golden/trace/write/detail/arithmetic.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/program/ops.h"
#include "golden/trace/write/field_words.h"

namespace shardproof {
namespace {

/// Returns the most wire roundings of a program's results, added up along partial operands.
int roundings(const Program& program, const Torus& torus, const Numerics& numerics) {
  std::map<std::string, int> of;  // most roundings so far of each partial value
  int most = 0;
  for (const Op& op : program.ops) {
    int before = 0;
    bool partial = false;
    for (const std::string& arg : op.args)
      if (program.declared(arg).layout.is_partial()) {
        partial = true;
        before = std::max(before, of[arg]);
      }
    const int chips = torus.size(op.axes);
    int here = 0;
    if (partial && chips > 1 && is_collective(op.kind) &&
        partial_wire_type(op.results[0].role, numerics, program.rows.get()) == NumberFormat::bf16) {
      const bool rings = numerics.schedule == Schedule::ring ||
                         numerics.schedule == Schedule::biring || op.loop != Loop::none;
      here = op_row(op.kind).reduces && rings ? chips - 1 : 1;
      if (op.kind == OpKind::all_reduce) ++here;  // the all_gather of the finished chunk
    }
    for (const ValueDecl& result : op.results) {
      most = std::max(most, before + here);
      if (result.layout.is_partial()) of[result.name] = before + here;
    }
  }
  return most;
}

}  // namespace

std::string_view claimed_arithmetic(const Numerics& numerics) {
  return numerics.regime == Regime::exact   ? "exact"
         : numerics.regime == Regime::field ? kFieldArithmetic
                                            : "f32";
}

int wire_roundings(const RunPlan& plan) {
  const Numerics& numerics = plan.source_case.numerics;
  if (numerics.regime != Regime::f32) return 0;
  int most = 0;
  std::vector<const PhasePrograms*> phases{&plan.prefill, &plan.decode};
  if (plan.passes.prefix().given()) phases.push_back(&plan.prefix);
  if (numerics.wire == NumberFormat::bf16)
    for (const PhasePrograms* phase : phases)
      for (const Program* program : phase->all())
        most = std::max(most, roundings(*program, phase->torus, numerics));
  return most;
}

}  // namespace shardproof
