#include "engine/strategies/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "weights/error.h"

namespace shardproof {
namespace {

/// What stands behind the first `keep` axes.
Axes behind(const Axes& axes, int keep) {
  Axes rest;
  for (const Axis* a = axes.begin() + keep; a != axes.end(); ++a) rest = rest.with(*a);
  return rest;
}

int common_prefix(const Axes& a, const Axes& b) {
  int n = 0;
  while (n < a.size() && n < b.size() && a.begin()[n] == b.begin()[n]) ++n;
  return n;
}

/// A value on its way to another layout. Every step either puts an axis where it belongs, behind
/// those that already stand right, or takes one away that does not: so the way ends.
class Way {
 public:
  Way(const Result& given, const Layout& to, const std::vector<std::string>& taken)
      : given_(given), now_(given.layout), to_(to), taken_(taken), name_(given.name) {}

  Resharding walk() {
    while (!(now_ == to_))
      if (!reduce() && !place() && !permute()) gather();
    return {std::move(ops_), name_};
  }

 private:
  const Axes& has(std::size_t dim) const { return now_.dims()[dim].axes; }
  const Axes& wants(std::size_t dim) const { return to_.dims()[dim].axes; }
  /// The axes that must leave before the dim can take more.
  Axes wrong(std::size_t dim) const {
    return behind(has(dim), common_prefix(has(dim), wants(dim)));
  }

  /// Partial axes that no dim wants.
  bool reduce() {
    Axes axes;
    for (Axis a : now_.partial())
      if (!to_.used().has(a)) axes = axes.with(a);
    if (axes.empty()) return false;
    Op op;
    op.kind = OpKind::all_reduce;
    op.axes = axes;
    step(std::move(op), now_.with_partial(now_.partial().without(axes)));
    return true;
  }

  /// The longest run of axes that a dim wants next and that lie ready in one place.
  bool place() {
    for (OpKind kind : {OpKind::reduce_scatter, OpKind::all_to_all, OpKind::slice})
      for (std::size_t d = 0; d < now_.rank(); ++d) {
        if (!wrong(d).empty()) continue;
        const Axes next = behind(wants(d), has(d).size());
        for (int n = next.size(); n > 0; --n)
          if (place(kind, d, next.without(behind(next, n)))) return true;
      }
    return false;
  }

  bool place(OpKind kind, std::size_t d, const Axes& run) {
    const Axes placed = has(d).with(run.without(has(d)));
    Op op;
    op.kind = kind;
    op.dim = now_.dims()[d].letter;
    op.axes = run;
    if (kind == OpKind::reduce_scatter) {
      if (!now_.partial().has_all(run)) return false;
      step(std::move(op), now_.with_partial(now_.partial().without(run)).with_axes(d, placed));
      return true;
    }
    if (kind == OpKind::slice) {
      if (now_.used().has_any(run)) return false;
      step(std::move(op), now_.with_axes(d, placed));
      return true;
    }
    for (std::size_t from = 0; from < now_.rank(); ++from) {
      const Axes gone = wrong(from);
      const Axes suffix = behind(has(from), std::max(0, has(from).size() - run.size()));
      if (from == d || !gone.ends_with(suffix) || !(suffix.sorted() == run.sorted())) continue;
      op.dim = now_.dims()[from].letter;
      op.to = now_.dims()[d].letter;
      op.axes = suffix;
      op.as = run;
      step(std::move(op), now_.with_axes(from, has(from).without(run)).with_axes(d, placed));
      return true;
    }
    return false;
  }

  bool permute() {
    for (std::size_t d = 0; d < now_.rank(); ++d) {
      if (wrong(d).empty() || !(has(d).sorted() == wants(d).sorted())) continue;
      Op op;
      op.kind = OpKind::permute_axes;
      op.dim = now_.dims()[d].letter;
      op.axes = has(d);
      op.as = wants(d);
      step(std::move(op), now_.with_axes(d, wants(d)));
      return true;
    }
    return false;
  }

  /// Nothing can be placed: then some dim holds what must leave, and the first such gives it up.
  void gather() {
    for (std::size_t d = 0; d < now_.rank(); ++d) {
      const Axes gone = wrong(d);
      if (gone.empty()) continue;
      Op op;
      op.kind = OpKind::all_gather;
      op.dim = now_.dims()[d].letter;
      op.axes = gone;
      step(std::move(op), now_.with_axes(d, has(d).without(gone)));
      return;
    }
    throw std::logic_error("no way from " + now_.to_string() + " to " + to_.to_string());
  }

  void step(Op op, Layout layout) {
    op.args = {name_};
    do name_ = fmt::format("{}_{}", given_.name, ++number_);
    while (std::find(taken_.begin(), taken_.end(), name_) != taken_.end());
    now_ = std::move(layout);
    op.results = {{name_, now_, given_.meaning}};
    ops_.push_back(std::move(op));
  }

  const Result& given_;
  Layout now_;
  const Layout& to_;
  const std::vector<std::string>& taken_;
  std::string name_;
  int number_ = 0;
  std::vector<Op> ops_;
};

std::vector<std::string> names(const Program& program) {
  std::vector<std::string> all;
  for (const Result& input : program.inputs) all.push_back(input.name);
  for (const Op& op : program.ops)
    for (const Result& result : op.results) all.push_back(result.name);
  return all;
}

bool moves(const Op& op) { return is_collective(op.kind) || op.kind == OpKind::slice; }

void rename(std::vector<Op>& ops, const std::string& from, const std::string& to) {
  for (Op& op : ops) std::replace(op.args.begin(), op.args.end(), from, to);
}

/// Puts `way` in place of ops [begin, end) of a program, and its value in that of the last of them.
void replace(Program& program, std::size_t begin, std::size_t end, Resharding way) {
  const std::string old =
      end > begin ? program.ops[end - 1].results[0].name : program.ops[begin - 1].results[0].name;
  const auto at = program.ops.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<Op> rest(program.ops.begin() + static_cast<std::ptrdiff_t>(end), program.ops.end());
  program.ops.erase(at, program.ops.end());
  rename(rest, old, way.value);
  for (std::vector<Op>* part : {&way.ops, &rest})
    program.ops.insert(program.ops.end(), part->begin(), part->end());
}

/// The end of the chain of collectives and slices that op `at` is the head of.
std::size_t end_of_moves(const Program& program, std::size_t at) {
  const auto follows = [&](const Op& op, const Op& before) {
    return moves(op) && op.args[0] == before.results[0].name;
  };
  while (++at < program.ops.size() && follows(program.ops[at], program.ops[at - 1])) {
  }
  return at;
}

/// ws2d's embedding with another way from `BLE_x partialsum-yz` to the residual stream; what comes
/// after is elementwise.
void lead_embedding_to(const Layout& residual, Program& embed) {
  const auto lookup = std::find_if(embed.ops.begin(), embed.ops.end(),
                                   [](const Op& op) { return op.kind == OpKind::embed_lookup; });
  const auto begin = static_cast<std::size_t>(lookup - embed.ops.begin()) + 1;
  const std::size_t end = end_of_moves(embed, begin - 1);
  for (std::size_t i = end; i < embed.ops.size(); ++i) embed.ops[i].results[0].layout = residual;
  const Result looked_up = lookup->results[0];
  replace(embed, begin, end, reshard(looked_up, residual, names(embed)));
}

/// ws2d's head with another way from the residual stream to `BE_x`: the last positions first, since
/// they are all that moves; an L that is sharded is gathered before.
void lead_head_from(const Layout& residual, Program& head) {
  const auto last = std::find_if(head.ops.begin(), head.ops.end(),
                                 [](const Op& op) { return op.kind == OpKind::last; });
  const auto begin = static_cast<std::size_t>(last - head.ops.begin());
  const std::size_t end = end_of_moves(head, begin);
  const Layout to = head.ops[end - 1].results[0].layout;
  Op take = *last;
  for (Result& input : head.inputs)
    if (input.name == take.args[0]) input.layout = residual;

  const Result& stream = head.declared(take.args[0]);
  const std::size_t L = residual.find('L').value();
  Resharding way = reshard(stream, residual.with_axes(L, Axes()), names(head));
  take.args = {way.value};
  std::vector<Layout::Dim> dims = residual.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(L));
  take.results[0].layout = Layout(dims, Axes());
  const Resharding rest = reshard(take.results[0], to, names(head));
  way.ops.push_back(take);
  way.ops.insert(way.ops.end(), rest.ops.begin(), rest.ops.end());
  way.value = rest.value;
  replace(head, begin, end, way);
}

const Result& input_of(const Program& program, std::string_view meaning) {
  for (const Result& input : program.inputs)
    if (input.meaning.to_string() == meaning) return input;
  return program.declared(meaning);  // throws: require_layer saw to it
}

}  // namespace

Resharding reshard(const Result& given, const Layout& to, const std::vector<std::string>& taken) {
  if (given.layout.letters() != to.letters())
    throw Error("reshard_c1", fmt::format("{} is {}: its dims are not those of {}", given.name,
                                          given.layout.to_string(), to.to_string()));
  return Way(given, to, taken).walk();
}

PhasePrograms programs_around(const Program& layer, const ModelConfig& config, ActType act) {
  PhasePrograms phase =
      build_programs({FfnLayout::ws2d, AttentionLayout::heads}, Axes(), config, act);
  phase.layer = layer;
  phase.residual = input_of(layer, "in").layout;
  phase.cache = input_of(layer, "previous k_cache").layout;
  for (std::string& output : phase.layer.outputs) {
    const Result made = phase.layer.declared(output);
    const Layout& to = made.meaning.name == "out" ? phase.residual : phase.cache;
    const Resharding back = reshard(made, to, names(phase.layer));
    phase.layer.ops.insert(phase.layer.ops.end(), back.ops.begin(), back.ops.end());
    output = back.value;
  }
  lead_embedding_to(phase.residual, phase.embed);
  lead_head_from(phase.residual, phase.head);
  return phase;
}

}  // namespace shardproof
