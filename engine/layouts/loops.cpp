#include "engine/layouts/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/program/loop_rules.h"

namespace shardproof {
namespace {

/// An operand of one of the layer's contractions.
struct Taken {
  std::size_t op = 0, arg = 0;
};

class Fusing {
 public:
  explicit Fusing(PartitionedLayer& made) : layer_(made.layer) {}

  /// Loops the arrow. Returns the reason if it cannot be looped, otherwise "".
  std::string fuse(const Arrow& arrow, Loop loop) {
    Op& first = layer_.ops[arrow.begin];
    Op& last = layer_.ops[arrow.end - 1];
    if (first.kind == OpKind::reduce_scatter) return reduced(first, loop);
    if (last.kind == OpKind::all_gather) return gathered(last, loop);
    return fmt::format(
        "its path is {} and neither begins with a reduce_scatter nor ends in an "
        "all_gather",
        first.to_string());
  }

 private:
  static bool is_contraction(const Op& op) {
    if (op.kind != OpKind::einsum) return false;
    const Role& role = op.results[0].role;
    const ValueRow* const row = value_row(role);
    return row != nullptr && row->contraction && role.kind != Role::Kind::stat;
  }

  std::string reduced(Op& op, Loop loop) {
    const Op* const before = layer_.producer(op.args[0]);
    if (before == nullptr || !is_contraction(*before))
      return fmt::format("{} is not what a contraction returns", op.args[0]);
    op.loop = loop;
    return "";
  }

  std::vector<Taken> takers(const ValueDecl& value) const {
    std::vector<Taken> all;
    for (std::size_t i = 0; i < layer_.ops.size(); ++i) {
      const Op& op = layer_.ops[i];
      const std::string& result = op.results[0].role.name;
      const bool collected =
          value.role.kind != Role::Kind::weight && (result == "k" || result == "v");
      if (!is_contraction(op) || collected) continue;
      for (std::size_t arg = 0; arg < op.args.size(); ++arg)
        if (op.args[arg] == value.name) all.push_back({i, arg});
    }
    return all;
  }

  std::string gathered(Op& gather, Loop loop) {
    const std::vector<Taken> all = takers(gather.results[0]);
    if (all.empty())
      return fmt::format("no contraction takes {} as it is gathered", gather.results[0].name);
    for (const Taken& one : all) {
      const Op& op = layer_.ops[one.op];
      if (op.loops_over(one.arg ^ 1U))
        return fmt::format("{} has a ring of its own for {}", op.results[0].name,
                           op.args[one.arg ^ 1U]);
      const std::optional<Axis> axis = axis_of_replicas(gather.axes, op.results[0].layout);
      if (axis)
        return fmt::format(
            "axis {} of its ring is in no subscript of {} : {}, whose replicas would differ",
            to_char(*axis), op.results[0].name, op.results[0].layout.to_string());
    }
    gather.loop = loop;
    for (const Taken& one : all) {
      std::vector<std::size_t>& looped = layer_.ops[one.op].looped;
      looped.insert(std::upper_bound(looped.begin(), looped.end(), one.arg), one.arg);
    }
    return "";
  }

  Program& layer_;
};

}  // namespace

void fuse_loops(PartitionedLayer& made, const LayoutTable& table, Loop loop) {
  Fusing fusing(made);
  for (const Arrow& arrow : made.arrows) {
    if (arrow.loop.value_or(Loop::none) == Loop::none) continue;
    const std::string why = fusing.fuse(arrow, *arrow.loop);
    if (!why.empty() && !arrow.lenient)
      throw Error("layouts_c10",
                  fmt::format("{}{}: {} -> {} [loop {}] cannot be looped: {}; leave the note out, "
                              "or write [loop none] (docs/layouts.md)",
                              table.where(arrow.line), arrow.value, arrow.from.to_string(),
                              arrow.to.to_string(), to_string(*arrow.loop), why));
  }
  if (loop == Loop::none) return;
  for (const Arrow& arrow : made.arrows)
    if (!arrow.loop) fusing.fuse(arrow, loop);
}

}  // namespace shardproof
