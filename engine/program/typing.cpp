#include "engine/program/typing.h"

#include <stdexcept>

#include "engine/collectives/collective_types.h"
#include "engine/ops/sampling.h"
#include "engine/program/constants.h"
#include "engine/program/detail/typing_rules.h"

namespace shardproof {
namespace {

/// `args` counts the indicators of `where`, too.
bool fits(const Op& op, std::size_t args) {
  if (args < op.indicators) return false;
  args -= op.indicators;
  const Operands& takes = op_row(op.kind).operands;
  const std::size_t times = takes.per_term ? op.spec.terms.size() : 1;
  return times > 0 && args >= times * static_cast<std::size_t>(takes.least) &&
         (takes.most == Operands::kAny || args <= times * static_cast<std::size_t>(takes.most));
}

std::string wanted(OpKind kind) {
  const Operands& takes = op_row(kind).operands;
  if (takes.per_term) return "two per term";
  if (takes.most == Operands::kAny) return fmt::format("{} or more", takes.least);
  if (takes.most == takes.least) return std::to_string(takes.least);
  return fmt::format("{} or {}", takes.least, takes.most);
}

/// The result types, once the rules of the table of ops hold.
std::vector<Type> result_types(const typing::Rules& rules, const Op& op,
                               const std::vector<Type>& args, const Torus& torus) {
  using namespace typing;
  switch (op.kind) {
    case OpKind::all_gather:
      return {all_gather_type(args[0], op.dim, op.axes)};
    case OpKind::reduce_scatter:
      return {reduce_scatter_type(args[0], op.dim, op.axes)};
    case OpKind::all_reduce:
      return {all_reduce_type(args[0], op.axes, op.by_max)};
    case OpKind::all_to_all:
      return {all_to_all_type(args[0], op.dim, op.to, op.axes, op.as)};
    case OpKind::permute_axes:
      return {permute_axes_type(args[0], op.dim, op.axes, op.as)};
    case OpKind::slice:
      return {slice_type(args[0], op.dim, op.axes)};
    case OpKind::last:
      return {last_type(args[0])};
    case OpKind::split_dim:
      return {split_dim_type(args[0], op.dim, Layout::parse(op.parameter), torus, op.parts)};
    case OpKind::merge_dim:
      return {merge_dim_type(args[0], op.parameter, op.to, torus)};
    case OpKind::einsum:
      return einsum(rules, op);
    case OpKind::embed_lookup:
      return embed_lookup(rules, args[0], args[1]);
    case OpKind::add:
    case OpKind::swiglu:
    case OpKind::geglu:
      return same_layouts(rules, args[0], args[1]);
    case OpKind::scale:
    case OpKind::bias:
    case OpKind::center:
      return broadcast(rules, args);
    case OpKind::scale_by:
    case OpKind::divide_by:
    case OpKind::gelu:
    case OpKind::gelu_erf:
    case OpKind::store:
      return {args[0]};
    case OpKind::norm:
      return norm(rules, args);
    case OpKind::rope:
    case OpKind::rope_interleaved:
      return rope(rules, args[0]);
    case OpKind::append:
      return append(rules, args[0], args[1]);
    case OpKind::attend:
      return attend(rules, args[0], args[1], args.size() > 4);
    case OpKind::attend_prefix:
      return attend_prefix(rules, args.size() > 6);
    case OpKind::with_prefix:
      return with_prefix(rules, args[0], args[1]);
    case OpKind::local_argmax:
      return local_argmax(rules, args[0], torus);
    case OpKind::argmax:
      return argmax(rules, args[0]);
    case OpKind::weigh:
      return weigh(rules, args[0]);
    case OpKind::top_k:
      return search(rules, args[0], op.axes, kTopKWords);
    case OpKind::top_p:
      return search(rules, args[0], op.axes, kTopPWords);
    case OpKind::masses:
      return masses(rules, args[0], torus);
    case OpKind::draw:
      return draw(rules, args[0], args[1], torus);
    case OpKind::map:
      return map(rules, op);
    case OpKind::max:
      return local_reduction(rules, op);
    case OpKind::sum:
      return sum(rules, op);
    case OpKind::stored_sum:
    case OpKind::mean:
      return local_reduction(rules, op);
    case OpKind::top:
      return top(rules, op);
    case OpKind::turn:
      return turn(rules, op);
    case OpKind::gather:
      return gather(rules, args[0], args[1]);
  }
  return {};
}

}  // namespace

std::vector<Type> infer(const Op& op, const std::vector<Type>& args, const Torus& torus) {
  const typing::Rules rules(op, args);
  if (!fits(op, args.size()))
    throw Error("program_c4", fmt::format("{} has {} operands, {} takes {}", op.to_string(),
                                          args.size(), to_string(op.kind), wanted(op.kind)));
  const OpRow& row = op_row(op.kind);
  if (row.parameters == Parameters::constant && !is_constant(op.kind, op.parameter))
    rules.require(false, 2, "{}", no_constant(op.kind, op.parameter));
  if (!row.takes_partial) rules.complete();
  if (!op.by_max)
    for (std::size_t i = 0; i < args.size(); ++i)
      if (args[i].layout.is_partial_max())
        throw Error(
            "program_c6",
            fmt::format("operand {} is {}; only all_reduce(..., AXES by max) takes a partial "
                        "maximum",
                        op.args.at(i), args[i].layout.to_string()));
  std::vector<Type> types = result_types(rules, op, args, torus);
  if (std::ssize(types) != row.results)
    throw std::logic_error(
        fmt::format("{} has the types of {} results, not {}", row.name, types.size(), row.results));
  return types;
}

}  // namespace shardproof
