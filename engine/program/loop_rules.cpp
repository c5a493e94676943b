#include "engine/program/loop_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardproof {
namespace {

bool takes(const Op& op, const std::string& value) {
  return std::find(op.args.begin(), op.args.end(), value) != op.args.end();
}

bool loops_over(const Op& op, const std::string& value) {
  return std::any_of(op.looped.begin(), op.looped.end(),
                     [&](std::size_t arg) { return op.args.at(arg) == value; });
}

void gathered(const Program& program, const Op& op) {
  for (const Op& other : program.ops)
    if (loops_over(other, op.results[0].name)) return;
  throw Error("all_gather_c4",
              fmt::format("no einsum loops over {0}: write 'loop {0}' where one takes it, or leave "
                          "'loop {1}' out",
                          op.results[0].name, to_string(op.loop)));
}

void scattered(const Program& program, const Op& op) {
  const std::string& value = op.args[0];
  const Op* const made = program.producer(value);
  std::string why;
  if (made == nullptr || made->kind != OpKind::einsum)
    why = fmt::format("{} is not the result of an einsum", value);
  for (const Op& other : program.ops)
    if (&other != &op && takes(other, value))
      why = fmt::format("{} takes {}, too, which a loop never makes as a whole",
                        other.results.empty() ? other.to_string() : other.results[0].name, value);
  if (std::find(program.outputs.begin(), program.outputs.end(), value) != program.outputs.end())
    why = fmt::format("{} is an output, which a loop never makes as a whole", value);
  if (!why.empty())
    throw Error("reduce_scatter_c3",
                fmt::format("{}; leave 'loop {}' out", why, to_string(op.loop)));
}

void looped(const Program& program, const Op& op, const Layout& result) {
  for (const std::size_t arg : op.looped) {
    const std::string& value = op.args.at(arg);
    const Op* const made = program.producer(value);
    if (made == nullptr || made->kind != OpKind::all_gather || made->loop == Loop::none)
      throw Error("einsum_c8",
                  fmt::format("{} is not the result of an all_gather with a loop: write it as "
                              "all_gather(..., AXES loop one-way), or leave 'loop' out",
                              value));
    if (op.loops_over(arg ^ 1U))
      throw Error("einsum_c9",
                  fmt::format("the term of {} and {} loops over both; leave one out",
                              op.args.at(arg & ~std::size_t{1}), op.args.at(arg | 1U)));
    if (const std::optional<Axis> axis = axis_of_replicas(made->axes, result))
      throw Error("einsum_c10",
                  fmt::format("axis {} of the ring of {} is in no subscript of the result {}: "
                              "each chip along {} would add in another order, and replicas would "
                              "differ; leave 'loop' out",
                              to_char(*axis), value, result.to_string(), to_char(*axis)));
  }
}

}  // namespace

std::optional<Axis> axis_of_replicas(const Axes& ring, const Layout& result) {
  Axes sharding;
  for (const Layout::Dim& dim : result.dims()) sharding = sharding.with(dim.axes);
  for (const Axis axis : ring)
    if (!sharding.has(axis)) return axis;
  return std::nullopt;
}

void require_loops(const Program& program, const Op& op, const Layout& result) {
  if (op.loop != Loop::none)
    op_row(op.kind).reduces ? scattered(program, op) : gathered(program, op);
  if (!op.looped.empty()) looped(program, op, result);
}

}  // namespace shardproof
