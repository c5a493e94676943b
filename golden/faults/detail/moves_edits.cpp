#include "golden/faults/detail/moves_edits.h"

#include <algorithm>

#include "engine/collectives/faults.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

/// The right plan of a place.
Moves right_moves(const Place& place) {
  const Op& op = place.op();
  return moves_of(place.torus, op, place.type_of(op.args[0]).layout, place.local(op.args[0]));
}

Op with_reversed_axes(Op op) {
  if (op.kind == OpKind::permute_axes)
    std::swap(op.axes, op.as);
  else
    op.axes = reversed(op.axes);
  return op;
}

}  // namespace

Operator row_of_moves(std::string_view name, std::string_view fault_class, std::string_view what,
                      Kinds kinds, std::function<Strings(const Place&)> candidates, MovesEdit edit,
                      ProgramEdit written) {
  Operator made{.name = name, .fault_class = fault_class, .what = what};
  const bool of_hand_over = fault_class == "M15";
  if (of_hand_over) made.cases = "hand-over";
  made.moves = edit;
  made.written = std::move(written);
  made.parameters = [kinds = std::move(kinds), candidates = std::move(candidates),
                     edit = std::move(edit), of_hand_over](const Place& place) {
    Strings kept;
    if (place.is_weight() || (place.site.program == "hand_over") != of_hand_over) return kept;
    const Op& op = place.op();
    if (op.by_max || std::find(kinds.begin(), kinds.end(), op.kind) == kinds.end()) return kept;
    if (is_collective(op.kind) && place.torus.size(op.axes) == 1) return kept;
    const Moves right = right_moves(place);
    const MovesAt at{place.torus, op, place.type_of(op.args[0]).layout, right};
    for (const std::string& one : candidates ? candidates(place) : Strings{"-"})
      if (const auto changed = edit(at, one); changed && !same_parts(*changed, right, reduces(op)))
        kept.push_back(one);
    return kept;
  };
  return made;
}

std::size_t own_place(const MovesAt& at, int chip) {
  const std::vector<int> group = at.group(chip);
  return static_cast<std::size_t>(
      std::distance(group.begin(), std::find(group.begin(), group.end(), chip)));
}

std::optional<Moves> blocks_reversed(const MovesAt& at, const std::string&) {
  return reordered(at, [](std::size_t j, std::size_t, std::size_t n) { return n - 1 - j; });
}

std::optional<Moves> as_other(const MovesAt& at, const Op& op) {
  for (const Axis axis : op.axes)
    if (at.torus.size(axis) < 1) return std::nullopt;
  Moves moves = moves_of(at.torus, op, at.operand, at.right.from_local);
  if (moves.to_local != at.right.to_local || moves.block != at.right.block) return std::nullopt;
  return moves;
}

std::optional<Moves> dropped(const MovesAt& at, const std::string&) {
  return without_transfer(at.right);
}

void write_dropped(Program& program, std::size_t i, const std::string&) {
  if (program.ops[i].kind == OpKind::reduce_scatter)
    program.ops[i].kind = OpKind::slice;
  else
    erase_op(program, i);
}

Strings other_orders(const Place& place) {
  const Axes axes = wide(place.torus, place.op().axes);
  return axes.size() < 2 ? Strings{} : Strings{"-"};
}

std::optional<Moves> axes_reversed(const MovesAt& at, const std::string&) {
  return as_other(at, with_reversed_axes(at.op));
}

void write_axes_reversed(Program& program, std::size_t i, const std::string&) {
  program.ops[i] = with_reversed_axes(program.ops[i]);
}

}  // namespace shardproof::faults
