// Faults that are programs of their own: the run executes the edited text, whose layouts it
// believes.
#include <algorithm>

#include "golden/faults/detail/edits.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

/// The reductions that all operands of a non-linear op come from, over the same axes and dim; empty
/// if some operand comes from elsewhere.
std::vector<std::size_t> reductions_before(const Program& program, const Op& op) {
  std::vector<std::size_t> found;
  for (const std::string& arg : op.args) {
    const auto at = std::find_if(program.ops.begin(), program.ops.end(),
                                 [&](const Op& one) { return one.results[0].name == arg; });
    if (at == program.ops.end() || !reduces(*at)) return {};
    const Op& first =
        program.ops[found.empty() ? static_cast<std::size_t>(std::distance(program.ops.begin(), at))
                                  : found.front()];
    if (at->axes != first.axes || at->dim != first.dim || at->kind != first.kind) return {};
    found.push_back(static_cast<std::size_t>(std::distance(program.ops.begin(), at)));
  }
  return found;
}

bool is_nonlinear(OpKind kind) {
  return kind == OpKind::swiglu || kind == OpKind::geglu || kind == OpKind::gelu ||
         kind == OpKind::gelu_erf;
}

/// h and u are declared complete, the non-linear op is applied to them, and its result, declared
/// partial, is reduced.
void reduce_after(Program& program, std::size_t i, const std::string&) {
  const std::vector<std::size_t> before = reductions_before(program, program.ops[i]);
  Op reduction = program.ops[before.front()];
  Op& op = program.ops[i];
  Layout layout;
  for (std::size_t a = 0; a < op.args.size(); ++a) {
    const std::string part = program.ops[before[a]].args[0];
    op.args[a] = part;
    for (Op& producer : program.ops)
      for (ValueDecl& made : producer.results)
        if (made.name == part) layout = made.layout = made.layout.with_partial({});
  }
  reduction.results = op.results;
  op.results[0].name += "_early";
  op.results[0].layout = layout.with_partial(reduction.axes.sorted());
  reduction.args[0] = op.results[0].name;
  program.ops.insert(program.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, reduction);
  std::vector<std::size_t> gone = before;
  std::sort(gone.rbegin(), gone.rend());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  for (const std::size_t at : gone)
    program.ops.erase(program.ops.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The other operand of the same kind that an op could take by mistake: the weight of the other of
/// two equal contractions.
std::optional<std::size_t> twin_of(const Program& program, std::size_t i) {
  const Op& op = program.ops[i];
  if (op.kind != OpKind::einsum || op.args.size() != 2 || op.args[0] == op.args[1])
    return std::nullopt;
  for (std::size_t j = i + 1; j < program.ops.size(); ++j) {
    const Op& other = program.ops[j];
    if (other.kind != OpKind::einsum || other.args.size() != 2 || other.args[0] != op.args[0] ||
        other.args[1] == op.args[1] || !(other.spec == op.spec))
      continue;
    const Op* const later = program.producer(other.args[1]);  // null: an input
    if (later != nullptr && later > &op) continue;
    if (program.declared(op.args[1]).layout == program.declared(other.args[1]).layout) return j;
  }
  return std::nullopt;
}

/// Exchanges what reads two values.
void exchange(Program& program, std::size_t i, std::size_t arg_i, std::size_t j,
              std::size_t arg_j) {
  std::swap(program.ops[i].args[arg_i], program.ops[j].args[arg_j]);
}

bool same_layout(const Place& place, const std::string& a, const std::string& b) {
  return place.program.declared(a).layout == place.program.declared(b).layout;
}

/// The scale that another op of the program applies, of the same layout.
std::optional<std::string> other_scale(const Program& program, const Op& op) {
  for (const Op& other : program.ops)
    if (other.kind == OpKind::scale && other.args[1] != op.args[1] &&
        program.declared(other.args[1]).layout == program.declared(op.args[1]).layout)
      return other.args[1];
  return std::nullopt;
}

/// The op that reads a scaled value, if it is one of those after which a scale may wrongly stand,
/// and the only reader.
std::optional<std::size_t> reader_of_scaled(const Program& program, const Op& op) {
  std::optional<std::size_t> found;
  for (std::size_t j = 0; j < program.ops.size(); ++j) {
    const Op& reader = program.ops[j];
    if (std::find(reader.args.begin(), reader.args.end(), op.results[0].name) == reader.args.end())
      continue;
    if (found) return std::nullopt;
    found = j;
  }
  if (!found) return std::nullopt;
  const OpKind kind = program.ops[*found].kind;
  const bool may = kind == OpKind::swiglu || kind == OpKind::geglu || kind == OpKind::gelu ||
                   kind == OpKind::rope || kind == OpKind::rope_interleaved || kind == OpKind::add;
  return may && program.ops[*found].results.size() == 1 ? found : std::nullopt;
}

void scale_later(Program& program, std::size_t i, const std::string&) {
  Op scale = program.ops[i];
  const std::size_t j = *reader_of_scaled(program, scale);
  Op& reader = program.ops[j];
  for (std::string& arg : reader.args)
    if (arg == scale.results[0].name) arg = scale.args[0];
  scale.results = reader.results;
  reader.results[0].name += "_unscaled";
  scale.args[0] = reader.results[0].name;
  program.ops.insert(program.ops.begin() + static_cast<std::ptrdiff_t>(j) + 1, scale);
  program.ops.erase(program.ops.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

std::vector<Operator> operators_of_programs() {
  std::vector<Operator> rows;
  rows.push_back({.name = "nonlinear-before-reduce",
                  .fault_class = "M8",
                  .what = "the non-linear op is applied to partial sums, and its results are added",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || !is_nonlinear(place.op().kind)) return Strings{};
                        const auto before = reductions_before(place.program, place.op());
                        return !before.empty() &&
                                       place.torus.size(place.program.ops[before[0]].axes) > 1
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .planted = reduce_after});
  rows.push_back(
      {.name = "weights-exchanged",
       .fault_class = "M6",
       .what = "two parts of a fused weight are exchanged: keys and values, gate and up",
       .parameters =
           [](const Place& place) {
             return !place.is_weight() && twin_of(place.program, place.index) ? Strings{"-"}
                                                                              : Strings{};
           },
       .planted = [](Program& program, std::size_t i,
                     const std::string&) { exchange(program, i, 1, *twin_of(program, i), 1); }});
  rows.push_back({.name = "caches-exchanged",
                  .fault_class = "M10",
                  .what = "attention reads the cache of values as keys, and of keys as values",
                  .parameters =
                      [](const Place& place) {
                        return !place.is_weight() && place.op().kind == OpKind::attend &&
                                       same_layout(place, place.op().args[1], place.op().args[2])
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .planted = [](Program& program, std::size_t i,
                                const std::string&) { exchange(program, i, 1, i, 2); }});
  rows.push_back({.name = "scale-of-other-part",
                  .fault_class = "M12",
                  .what = "one scale for two parts of a fused weight",
                  .cases = "int8",
                  .parameters =
                      [](const Place& place) {
                        return !place.is_weight() && place.op().kind == OpKind::scale &&
                                       other_scale(place.program, place.op())
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .planted =
                      [](Program& program, std::size_t i, const std::string&) {
                        program.ops[i].args[1] = *other_scale(program, program.ops[i]);
                      }});
  rows.push_back({.name = "scale-after-next-op",
                  .fault_class = "M12",
                  .what = "the scale is applied after the op that reads the scaled value",
                  .cases = "int8",
                  .parameters =
                      [](const Place& place) {
                        return !place.is_weight() && place.op().kind == OpKind::scale &&
                                       reader_of_scaled(place.program, place.op())
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .planted = scale_later});
  rows.push_back({.name = "norm-left-out",
                  .fault_class = "M8",
                  .what = "a product reads the stream before its norm",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || place.op().kind != OpKind::einsum)
                          return Strings{};
                        const Op* const from = place.program.producer(place.op().args[0]);
                        return from != nullptr && from->kind == OpKind::norm ? Strings{"-"}
                                                                             : Strings{};
                      },
                  .planted =
                      [](Program& program, std::size_t i, const std::string&) {
                        const Op* const norm = program.producer(program.ops[i].args[0]);
                        program.ops[i].args[0] = norm->args[0];
                      }});
  return rows;
}

}  // namespace shardproof::faults
