#include "engine/collectives/collectives.h"

#include "engine/collectives/collective_types.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"

namespace shardproof {
namespace {

/// The index of a dim that the typing rules have found in the operand.
std::size_t place(const Sharded& t, char dim) { return t.layout().find(dim).value(); }

/// Returns the type; throws if its dims do not divide.
Type divided(Type type, const Torus& torus) {
  local_shape(type.layout, type.shape, torus);
  return type;
}

Sharded moved(const Sharded& t, const Moves& moves, const Type& to, Threads& threads) {
  return transfer(t, moves, to.layout, to.shape, threads);
}

Sharded summed(const Sharded& t, const Moves& moves, const Type& to, const Summation& how,
               Threads& threads) {
  return reduce(t, moves, to.layout, to.shape, threads, how);
}

}  // namespace

Sharded all_gather(const Sharded& t, char dim, const Axes& axes, Threads& threads) {
  const Type to = divided(all_gather_type(t.type(), dim, axes), t.torus());
  return moved(t, all_gather_moves(t.torus(), t.local(), place(t, dim), axes), to, threads);
}

Sharded reduce_scatter(const Sharded& t, char dim, const Axes& axes, Schedule schedule,
                       Threads& threads) {
  const Type to = divided(reduce_scatter_type(t.type(), dim, axes), t.torus());
  return summed(t, reduce_scatter_moves(t.torus(), t.local(), place(t, dim), axes), to,
                {.order = schedule, .dim = place(t, dim)}, threads);
}

Sharded all_reduce(const Sharded& t, const Axes& axes, Schedule schedule, Threads& threads) {
  const Type to = divided(all_reduce_type(t.type(), axes), t.torus());
  return summed(t, all_reduce_moves(t.torus(), t.local(), axes), to, {.order = schedule}, threads);
}

Sharded all_to_all(const Sharded& t, char from, char to, const Axes& axes, const Axes& as,
                   Threads& threads) {
  const Type type = divided(all_to_all_type(t.type(), from, to, axes, as), t.torus());
  return moved(t, all_to_all_moves(t.torus(), t.local(), place(t, from), place(t, to), axes, as),
               type, threads);
}

Sharded all_to_all(const Sharded& t, char from, char to, const Axes& axes, Threads& threads) {
  return all_to_all(t, from, to, axes, axes, threads);
}

Sharded permute_axes(const Sharded& t, char dim, const Axes& from, const Axes& to,
                     Threads& threads) {
  const Type type = divided(permute_axes_type(t.type(), dim, from, to), t.torus());
  return moved(t, permute_axes_moves(t.torus(), t.local(), from, to), type, threads);
}

Sharded slice(const Sharded& t, char dim, const Axes& axes, Threads& threads) {
  const Type to = divided(slice_type(t.type(), dim, axes), t.torus());
  return moved(t, slice_moves(t.torus(), t.local(), place(t, dim), axes), to, threads);
}

Sharded last(const Sharded& t, Threads& threads) {
  const Type to = divided(last_type(t.type()), t.torus());
  return moved(t, last_moves(t.torus(), t.local(), place(t, 'L')), to, threads);
}

Sharded split_dim(const Sharded& t, char dim, const Layout& parts, const Shape& extents) {
  const Type to = divided(split_dim_type(t.type(), dim, parts, t.torus(), extents), t.torus());
  return t.relabelled(to.layout, to.shape);
}

Sharded merge_dim(const Sharded& t, std::string_view parts, char dim) {
  const Type to = divided(merge_dim_type(t.type(), parts, dim, t.torus()), t.torus());
  return t.relabelled(to.layout, to.shape);
}

}  // namespace shardproof
