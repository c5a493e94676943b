// Faults of sums: counted twice, reduced by something else than a sum, or too coarsely.
#include <algorithm>

#include "engine/ops/local_ops.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/operator.h"
#include "weights/base/bf16.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

/// Adds the numbers of the chips of each group along `axes`.
void sum_over_chips(Sharded& value, const Axes& axes) {
  const Sharded from = value;
  on_numbers(from, value, [&](const auto& chips, const auto& to) {
    for (int chip = 0; chip < from.torus().chips(); ++chip) {
      const std::vector<int> group = from.torus().group(chip, axes);
      const auto out = to(chip);
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = chips[static_cast<std::size_t>(group[0])][i];
        for (std::size_t g = 1; g < group.size(); ++g)
          out[i] = sum_of(from, out[i], chips[static_cast<std::size_t>(group[g])][i]);
      }
    }
  });
}

Strings at_completed_sums(const Place& place) {
  return completes(place) && place.torus.size(place.op().axes) > 1 ? Strings{"-"} : Strings{};
}

/// The reduction that a value comes from, through ops of one operand beside weights; null if none.
const Op* reduction_of(const Program& program, const std::string& value) {
  const Op* op = program.producer(value);
  while (op != nullptr && !reduces(*op)) {
    const bool of_one = op->kind == OpKind::bias || op->kind == OpKind::scale ||
                        op->kind == OpKind::store || op->kind == OpKind::scale_by;
    op = of_one ? program.producer(op->args[0]) : nullptr;
  }
  return op;
}

/// Of a sum of two values, the index of the operand that is a reduction's result.
std::optional<std::size_t> reduced_operand(const Place& place) {
  if (place.is_weight() || place.op().kind != OpKind::add) return std::nullopt;
  for (const std::size_t i : {1U, 0U})
    if (const Op* const from = reduction_of(place.program, place.op().args[i]))
      if (place.torus.size(from->axes) > 1) return i;
  return std::nullopt;
}

std::int64_t chips_of(const Here& here, const std::string& value) {
  return here.seen.at(value).torus().size(reduction_of(here.program, value)->axes);
}

/// One part of each sum, chosen by the element: in a field, whose numbers have no order, one that
/// depends on all of them; of floats the largest.
template <class T>
T largest(const std::vector<T>& parts) {
  return *std::max_element(parts.begin(), parts.end());
}
FieldElement largest(const std::vector<FieldElement>& parts) {
  std::uint64_t all = 0;
  for (const FieldElement& part : parts) all ^= part.lane[0];
  return parts[all % parts.size()];
}

template <class From, class To>
void take_largest(const Op& op, const Torus& torus, const From& parts, const To& to,
                  const Shape& from_local, const Layout& operand) {
  const Moves moves = moves_of(torus, op, operand, from_local);
  const Shape& local = moves.to_local;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const auto out = to(chip);
    const auto& pieces = std::as_const(moves).pieces[static_cast<std::size_t>(chip)];
    Shape index(local.size(), 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < local.size(); ++d) at = at * from_local[d] + index[d];
      std::vector<std::decay_t<decltype(parts[0][0])>> all;
      for (const Piece& piece : pieces)
        all.push_back(parts[static_cast<std::size_t>(piece.from_chip)]
                           [static_cast<std::size_t>(piece.from + at)]);
      out[i] = static_cast<std::decay_t<decltype(out[i])>>(largest(all));
      for (std::size_t d = local.size(); d-- > 0 && ++index[d] == local[d];) index[d] = 0;
    }
  }
}

void by_max(const Here& here, Sharded& value) {
  const Sharded& parts = here.arg(0);
  const auto from = [&](const auto& numbers) {
    const auto to = [&](int chip) {
      if constexpr (std::is_same_v<std::decay_t<decltype(numbers[0][0])>, FieldElement>)
        return value.field_of(chip);
      else
        return value.f32_of(chip);
    };
    take_largest(here.op, value.torus(), numbers, to, parts.local(), parts.layout());
  };
  if (parts.holds_field())
    from(parts.field().values);
  else if (parts.holds_partial())
    from(parts.partial().values);
  else
    from(parts.f32());
}

/// Rounds what chips hold to bf16, in floats; a field does not round.
void to_bf16(Sharded& value) {
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    if (value.holds_partial()) {
      for (double& v : value.partial_values_of(chip))
        v = static_cast<double>(round_to_bf16(static_cast<float>(v)));
    } else if (!value.holds_field() && !value.stores_int32()) {
      for (float& v : value.f32_of(chip)) v = round_to_bf16(v);
    }
}

/// Rows of class M2.
std::vector<Operator> counted_twice() {
  std::vector<Operator> rows;
  rows.push_back({.name = "reduce-again",
                  .fault_class = "M2",
                  .what = "a sum that is complete is all-reduced once more",
                  .parameters = at_completed_sums,
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        Op again = program.ops[i];
                        again.kind = OpKind::all_reduce;
                        again.dim = 0;
                        add_after(program, i, again);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          sum_over_chips(value, here.op.axes);
                        };
                      }});
  rows.push_back({.name = "count-n-times",
                  .fault_class = "M2",
                  .what = "a complete sum is multiplied by the number of chips of its group",
                  .parameters = at_completed_sums,
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      multiply(value, value.torus().size(here.op.axes));
                    };
                  }});
  rows.push_back({.name = "reduce-complete",
                  .fault_class = "M2",
                  .what = "a complete value, of which chips hold copies, is all-reduced over them",
                  .parameters =
                      [](const Place& place) {
                        Strings all;
                        if (place.is_weight() || place.site.program == "sample" ||
                            place.op().results.size() != 1)
                          return all;
                        const Type& type = place.type_of(place.op().results[0].name);
                        if (type.integer || type.layout.is_partial() ||
                            is_collective(place.op().kind))
                          return all;
                        for (const Axis axis : copied_along(place.torus, type.layout))
                          all.push_back(Axes().with(axis).to_string());
                        return all;
                      },
                  .written =
                      [](Program& program, std::size_t i, const std::string& axes) {
                        Op again;
                        again.kind = OpKind::all_reduce;
                        again.axes = Axes::parse(axes);
                        add_after(program, i, again);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          sum_over_chips(value, Axes::parse(here.parameter));
                        };
                      }});
  rows.push_back(
      {.name = "residual-before-reduce",
       .fault_class = "M2",
       .what = "the residual is added on every chip before the reduction, so n times",
       .parameters =
           [](const Place& place) { return reduced_operand(place) ? Strings{"-"} : Strings{}; },
       .written =
           [](Program& program, std::size_t i, const std::string&) {
             Op& add = program.ops[i];
             for (std::string& arg : add.args)
               if (const Op* const from = reduction_of(program, arg)) arg = from->args[0];
           },
       .result =
           [] {
             return [](const Here& here, Sharded& value) {
               const std::size_t reduced = reduction_of(here.program, here.op.args[1]) ? 1 : 0;
               const Sharded& residual = here.arg(1 - reduced);
               for (std::int64_t n = chips_of(here, here.op.args[reduced]); n > 1; --n)
                 value = add(value, residual, calling_thread());
             };
           }});
  rows.push_back({.name = "bias-on-every-chip",
                  .fault_class = "M2",
                  .what = "the bias is added on every chip before the reduction, so n times",
                  .cases = "family",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || place.op().kind != OpKind::bias) return Strings{};
                        const Op* const from = reduction_of(place.program, place.op().args[0]);
                        return from != nullptr && place.torus.size(from->axes) > 1 ? Strings{"-"}
                                                                                   : Strings{};
                      },
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        Op& bias = program.ops[i];
                        bias.args[0] = reduction_of(program, bias.args[0])->args[0];
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          std::vector<const Sharded*> vectors;
                          for (std::size_t i = 1; i < here.op.args.size(); ++i)
                            vectors.push_back(&here.arg(i));
                          for (std::int64_t n = chips_of(here, here.op.args[0]); n > 1; --n)
                            value = bias(value, vectors, calling_thread());
                        };
                      }});
  rows.push_back(
      {.name = "addend-on-chip-0-only",
       .fault_class = "M2",
       .what = "the residual is added on the group's first chip alone, after the "
               "reduction",
       .parameters =
           [](const Place& place) { return reduced_operand(place) ? Strings{"-"} : Strings{}; },
       .result =
           [] {
             return [](const Here& here, Sharded& value) {
               const std::size_t reduced = reduction_of(here.program, here.op.args[1]) ? 1 : 0;
               const Sharded& alone = here.arg(reduced);
               const Axes axes = reduction_of(here.program, here.op.args[reduced])->axes;
               const Sharded whole = value;
               value = alone;
               on_numbers(whole, value, [&](const auto& chips, const auto& to) {
                 for (int chip = 0; chip < whole.torus().chips(); ++chip) {
                   if (whole.torus().block(chip, axes) != 0) continue;
                   const auto out = to(chip);
                   for (std::size_t i = 0; i < out.size(); ++i)
                     out[i] = chips[static_cast<std::size_t>(chip)][i];
                 }
               });
             };
           }});
  return rows;
}

/// Rows of class M4.
std::vector<Operator> wrong_reductions() {
  std::vector<Operator> rows;
  rows.push_back({.name = "mean-for-sum",
                  .fault_class = "M4",
                  .what = "the mean of the parts in place of their sum",
                  .parameters = at_completed_sums,
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      multiply(value, 1, value.torus().size(here.op.axes));
                    };
                  }});
  rows.push_back({.name = "max-for-sum",
                  .fault_class = "M4",
                  .what = "the largest of the parts in place of their sum",
                  .parameters = at_completed_sums,
                  .result = [] { return by_max; }});
  rows.push_back({.name = "parts-in-bf16",
                  .fault_class = "M4",
                  .what = "partial sums travel in bf16 where f32 is declared",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight()) return Strings{};
                        const ValueDecl& made = place.op().results[0];
                        return made.layout.is_partial() && !is_collective(place.op().kind) &&
                                       !wide(place.torus, made.layout.partial()).empty()
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .result = [] { return [](const Here&, Sharded& value) { to_bf16(value); }; }});
  rows.push_back({.name = "sum-in-bf16",
                  .fault_class = "M4",
                  .what = "a sum's result is rounded to bf16 where f32 is declared",
                  .parameters = at_completed_sums,
                  .result = [] { return [](const Here&, Sharded& value) { to_bf16(value); }; }});
  rows.push_back({.name = "sum-in-other-order",
                  .fault_class = "M4",
                  .what = "the parts are added in another order than the declared schedule's",
                  .parameters = at_completed_sums,
                  .moves = [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                    Moves moves = at.right;
                    for (auto& pieces : moves.pieces) std::reverse(pieces.begin(), pieces.end());
                    return moves;
                  }});
  rows.push_back({.name = "sum-of-indices",
                  .fault_class = "M4",
                  .what = "the candidates' ids are added up, as if they were partial sums",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || place.op().kind != OpKind::all_gather)
                          return Strings{};
                        return place.type_of(place.op().args[0]).integer ? Strings{"-"} : Strings{};
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          // Every candidate becomes the sum of all.
                          const std::int64_t C = value.local()[1];
                          const Sharded from = value;
                          static_cast<void>(here);
                          on_numbers(from, value, [&](const auto& chips, const auto& to) {
                            for (int chip = 0; chip < from.torus().chips(); ++chip) {
                              const auto out = to(chip);
                              const auto& of = chips[static_cast<std::size_t>(chip)];
                              for (std::size_t i = 0; i < out.size(); ++i) {
                                const std::size_t row =
                                    i / static_cast<std::size_t>(C) * static_cast<std::size_t>(C);
                                out[i] = of[row];
                                for (std::size_t c = 1; c < static_cast<std::size_t>(C); ++c)
                                  out[i] = sum_of(from, out[i], of[row + c]);
                              }
                            }
                          });
                        };
                      }});
  return rows;
}

}  // namespace

std::vector<Operator> operators_of_sums() {
  std::vector<Operator> rows = counted_twice();
  for (Operator& one : wrong_reductions()) rows.push_back(std::move(one));
  return rows;
}

}  // namespace shardproof::faults
