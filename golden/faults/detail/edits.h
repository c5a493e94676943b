#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/program/program.h"
#include "golden/faults/place.h"

// What rows of the table share: edits of a program's text, and questions to a place.

namespace shardproof::faults {

/// Takes the op out; its readers read its first operand.
inline void erase_op(Program& program, std::size_t i) {
  const std::string gone = program.ops[i].results[0].name, instead = program.ops[i].args[0];
  program.ops.erase(program.ops.begin() + static_cast<std::ptrdiff_t>(i));
  for (Op& op : program.ops)
    for (std::string& arg : op.args)
      if (arg == gone) arg = instead;
  for (std::string& output : program.outputs)
    if (output == gone) output = instead;
}

/// Adds an op after op i that reads its first result; all later readers read the new one's.
inline void add_after(Program& program, std::size_t i, Op op) {
  const ValueDecl before = program.ops[i].results[0];
  op.args = {before.name};
  op.results = {{before.name + "_again", before.layout, before.role}};
  for (std::size_t j = i + 1; j < program.ops.size(); ++j)
    for (std::string& arg : program.ops[j].args)
      if (arg == before.name) arg = op.results[0].name;
  for (std::string& output : program.outputs)
    if (output == before.name) output = op.results[0].name;
  program.ops.insert(program.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(op));
}

/// The axes with more than one chip.
inline Axes wide(const Torus& torus, const Axes& axes) {
  Axes all;
  for (const Axis axis : axes)
    if (torus.size(axis) > 1) all = all.with(axis);
  return all;
}

inline Axes reversed(const Axes& axes) {
  Axes all;
  for (int i = axes.size(); i-- > 0;) all = all.with(axes.begin()[i]);
  return all;
}

inline Axes all_axes() { return Axes::parse("xyz"); }

/// The axes along which chips hold copies of a value.
inline Axes copied_along(const Torus& torus, const Layout& layout) {
  return wide(torus, all_axes().without(layout.used()));
}

inline bool reduces(const Op& op) { return op_row(op.kind).reduces && !op.by_max; }
/// The op that takes partial sums to complete ones at this place: its result has no partial axes.
inline bool completes(const Place& place) {
  return !place.is_weight() && reduces(place.op()) &&
         !place.type_of(place.op().results[0].name).layout.is_partial();
}

/// The parameters of a row without any: at the steps for which this is true.
inline std::function<std::vector<std::string>(const Place&)> steps_where(
    std::function<bool(const Place&)> applies) {
  return [applies = std::move(applies)](const Place& place) {
    return !place.is_weight() && applies(place) ? std::vector<std::string>{"-"}
                                                : std::vector<std::string>{};
  };
}

}  // namespace shardproof::faults
