#include "tests/golden/verify/field/mutant_plants.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/local_ops.h"
#include "tests/golden/faults.h"
#include "weights/base/error.h"

namespace shardproof::plants {
namespace {

Threads& one_thread() {
  static Threads one(1);
  return one;
}

Sharded shifted(Sharded positions, std::int32_t by, std::int32_t most) {
  for (int chip = 0; chip < positions.torus().chips(); ++chip)
    for (std::int32_t& p : positions.i32_of(chip)) p = std::clamp(p + by, 0, most);
  return positions;
}

/// The shards alone, each a whole value: their axes and the blocks of other chips are forgotten.
Sharded own_block(const Sharded& value, char dim) {
  const auto at = value.layout().find(dim);
  Shape shape = value.shape();
  if (!at) return value;
  shape[*at] = value.local()[*at];
  return value.relabelled(value.layout().with_axes(*at, {}), shape);
}

/// Calls on_numbers(from, to) with what each chip of a value has, and with the chips' numbers to
/// change: elements of a field or floats.
template <class OnNumbers>
void on_numbers(const Sharded& from, Sharded& changed, OnNumbers&& on_numbers_of) {
  if (from.holds_field())
    on_numbers_of(from.field().values, [&](int chip) { return changed.field_of(chip); });
  else
    on_numbers_of(from.f32(), [&](int chip) { return changed.f32_of(chip); });
}

FieldElement sum_of(const Sharded& of, const FieldElement& a, const FieldElement& b) {
  return of.field().field->add(a, b);
}
float sum_of(const Sharded&, float a, float b) { return a + b; }

/// The keys or values of each query head of its chip, as many heads as queries.
template <class T>
void spread_heads(const Sharded& q, const Sharded& kv, const ChipArrays<T>& from,
                  ChipArrays<T>& to) {
  const std::int64_t slots = kv.local()[0] * kv.local()[1], K = kv.local()[2], Q = kv.local()[3];
  const std::int64_t heads = q.local()[2];
  for (std::size_t chip = 0; chip < from.size(); ++chip)
    for (std::int64_t slot = 0; slot < slots; ++slot)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t c = 0; c < Q; ++c)
          to[chip].push_back(from[chip][static_cast<std::size_t>((slot * K + h % K) * Q + c)]);
}

Sharded tiled(const Sharded& q, const Sharded& kv) {
  const std::size_t dim = 2;
  const Layout layout = kv.layout().with_axes(dim, q.layout().axes('H'));
  Shape shape = kv.shape();
  shape[dim] = q.shape()[dim];
  if (kv.holds_field()) {
    FieldShards made{ChipArrays<FieldElement>(kv.field().values.size()), kv.field().field,
                     kv.field().sort, kv.field().degree};
    spread_heads(q, kv, kv.field().values, made.values);
    return {kv.torus(), layout, shape, made};
  }
  ChipArrays<float> made(kv.f32().size());
  spread_heads(q, kv, kv.f32(), made);
  return {kv.torus(), layout, shape, made};
}

template <class T>
void fill_unmasked(const Sharded& table, const Sharded& ids, const ChipArrays<T>& rows, int chip,
                   const std::function<void(std::size_t, const T&)>& set) {
  const std::int64_t height = table.local()[0], width = table.local()[1];
  const std::int64_t base = table.torus().block(chip, table.layout().dims()[0].axes) * height;
  const auto& wanted = ids.i32()[static_cast<std::size_t>(chip)];
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int64_t row = std::clamp<std::int64_t>(wanted[i] - base, 0, height - 1);
    for (std::int64_t e = 0; e < width; ++e)
      set(i * static_cast<std::size_t>(width) + static_cast<std::size_t>(e),
          rows[static_cast<std::size_t>(chip)][static_cast<std::size_t>(row * width + e)]);
  }
}

/// What nothing was written to holds 0, as in fresh memory it often does.
void zero_unwritten(Sharded& value) {
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    if (value.holds_field()) {
      for (FieldElement& v : value.field_of(chip))
        if (!value.field().field->is_number(v)) v = {};
    } else {
      for (float& v : value.f32_of(chip))
        if (std::isnan(v)) v = 0.0F;
    }
}

using OnResult = std::function<void(const Scope&, const Op&, const ValueDecl&, Sharded&)>;

/// A hook on the results of one kind of op.
FaultHooks on_result(OpKind kind, OnResult change) {
  FaultHooks hooks;
  hooks.result = [kind, change = std::move(change)](const Scope& scope, const Program&,
                                                    const Op& op, const ValueDecl& declared,
                                                    Sharded& value) {
    if (op.kind == kind) change(scope, op, declared, value);
  };
  return hooks;
}

/// A hook on the plans of one kind of op, told the group that each chip's pieces come from.
FaultHooks on_gathers(
    std::function<std::size_t(std::size_t mine, std::size_t place, std::size_t group)> source) {
  FaultHooks hooks;
  hooks.plan = [source = std::move(source)](const Scope&, const Program&, const Op& op,
                                            Moves& plan) {
    if (op.kind != OpKind::all_gather) return;
    for (std::size_t chip = 0; chip < plan.pieces.size(); ++chip) {
      auto& pieces = plan.pieces[chip];
      const std::vector<Piece> right = pieces;
      std::size_t mine = 0;
      while (right[mine].from_chip != static_cast<int>(chip)) ++mine;
      for (std::size_t place = 0; place < pieces.size(); ++place)
        pieces[place].from_chip = right[source(mine, place, right.size())].from_chip;
    }
  };
  return hooks;
}

Axes reversed(const Axes& axes) {
  Axes all;
  for (int i = axes.size(); i-- > 0;) all = all.with(axes.begin()[i]);
  return all;
}

}  // namespace

Hooks reduced_again(const std::string& value, const std::string& axes) {
  return [=](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks.result = [=](const Scope&, const Program& program, const Op&, const ValueDecl& declared,
                       Sharded& made) {
      if (program.name != kLayerProgram || declared.name != value) return;
      const Sharded from = made;
      on_numbers(from, made, [&](const auto& chips, const auto& to) {
        for (int chip = 0; chip < from.torus().chips(); ++chip) {
          const std::vector<int> group = from.torus().group(chip, Axes::parse(axes));
          const auto out = to(chip);
          for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = chips[static_cast<std::size_t>(group[0])][i];
            for (std::size_t g = 1; g < group.size(); ++g)
              out[i] = sum_of(from, out[i], chips[static_cast<std::size_t>(group[g])][i]);
          }
        }
      });
    };
  };
}

Hooks stored_as_order(const std::vector<std::string>& weights, char dim, const std::string& axes) {
  return [=](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks.weight = [=](const std::string& name, Sharded& placed) {
      if (std::find(weights.begin(), weights.end(), name) == weights.end()) return;
      const Sharded right = placed;
      const Axes declared = placed.layout().axes(dim), stored = Axes::parse(axes);
      on_numbers(right, placed, [&](const auto& chips, const auto& to) {
        for (int chip = 0; chip < placed.torus().chips(); ++chip) {
          const auto place = static_cast<std::size_t>(placed.torus().block(chip, stored));
          const auto& from =
              chips[static_cast<std::size_t>(placed.torus().group(chip, declared)[place])];
          std::copy(from.begin(), from.end(), to(chip).begin());
        }
      });
    };
  };
}

Hooks appended_at(std::int32_t by, const std::string& pass) {
  return [=](const Case& c, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::append, [=, &shown](const Scope& scope, const Op& op,
                                                  const ValueDecl&, Sharded& value) {
      if (!scope.pass.starts_with(pass)) return;
      const auto last = static_cast<std::int32_t>(value.shape()[1] - 1);
      value = append(shown.at(op.args[0]), shown.at(op.args[1]),
                     shifted(shown.at(op.args[2]), by, last), one_thread(), c.model.cache);
      zero_unwritten(value);
    });
  };
}

Hooks rotated_at(std::int32_t by, const std::string& pass) {
  return [=](const Case&, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::rope, [=, &shown](const Scope& scope, const Op& op, const ValueDecl&,
                                                Sharded& value) {
      if (!scope.pass.starts_with(pass)) return;
      const Sharded& cos = shown.at(op.args[2]);
      const auto last = static_cast<std::int32_t>(cos.shape()[0] - 1);
      value =
          rope(RopePairs::half_split, shown.at(op.args[0]), shifted(shown.at(op.args[1]), by, last),
               cos, shown.at(op.args[3]), one_thread());
    });
  };
}

Hooks local_norms() {
  return [](const Case& c, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::norm, [&shown, eps = c.model.eps](const Scope&, const Op& op,
                                                                const ValueDecl&, Sharded& value) {
      const Sharded& x = shown.at(op.args[0]);
      value = norm(own_block(x, 'E'), shown.at(op.args[1]), own_block(shown.at(op.args[2]), 'E'),
                   nullptr, eps, one_thread())
                  .relabelled(x.layout(), x.shape());
    });
  };
}

Hooks tiled_kv_heads() {
  return [](const Case& c, const LatestValues& shown, FaultHooks& hooks) {
    const Regime regime = c.numerics.regime;
    hooks = on_result(OpKind::attend, [&shown, regime](const Scope&, const Op& op,
                                                       const ValueDecl& declared, Sharded& value) {
      const Sharded& q = shown.at(op.args[0]);
      Attention a = attend(q, tiled(q, shown.at(op.args[1])), tiled(q, shown.at(op.args[2])),
                           shown.at(op.args[3]), one_thread(), regime);
      const std::vector<Sharded*> all{&a.score, &a.max, &a.exp, &a.denom, &a.attn};
      for (std::size_t r = 0; r < all.size(); ++r)
        if (op.results[r].name == declared.name) value = *all[r];
    });
  };
}

Hooks unmasked_lookup() {
  return [](const Case&, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::embed_lookup, [&shown](const Scope&, const Op& op, const ValueDecl&,
                                                     Sharded& value) {
      const Sharded &ids = shown.at(op.args[0]), &table = shown.at(op.args[1]);
      for (int chip = 0; chip < value.torus().chips(); ++chip)
        if (value.holds_field())
          fill_unmasked<FieldElement>(
              table, ids, table.field().values, chip,
              [&](std::size_t i, const FieldElement& v) { value.field_of(chip)[i] = v; });
        else if (value.holds_partial())
          fill_unmasked<float>(table, ids, table.f32(), chip, [&](std::size_t i, float v) {
            value.partial_values_of(chip)[i] = static_cast<double>(v);
          });
        else
          fill_unmasked<float>(table, ids, table.f32(), chip,
                               [&](std::size_t i, float v) { value.f32_of(chip)[i] = v; });
    });
  };
}

Hooks ids_without_offset() {
  return [](const Case&, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::local_argmax, [&shown](const Scope&, const Op& op,
                                                     const ValueDecl& declared, Sharded& value) {
      if (declared.name != op.results[1].name) return;
      const Candidates own = local_argmax(own_block(shown.at(op.args[0]), 'V'), one_thread());
      value = own.index.relabelled(value.layout(), value.shape());
    });
  };
}

Hooks gathered_reversed(const std::vector<std::string>& values) {
  return [=](const Case& c, const LatestValues&, FaultHooks& hooks) {
    hooks.plan = [=, torus = c.torus](const Scope&, const Program& program, const Op& op,
                                      Moves& plan) {
      const auto named = std::find(values.begin(), values.end(), op.results[0].name);
      if (op.kind != OpKind::all_gather || (!values.empty() && named == values.end())) return;
      const std::size_t dim = *program.declared(op.args[0]).layout.find(op.dim);
      plan = all_gather_moves(torus, plan.from_local, dim, reversed(op.axes));
    };
  };
}

Hooks ring_of_other_direction() {
  return [](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks = on_gathers([](std::size_t mine, std::size_t place, std::size_t group) {
      return (2 * mine + group - place) % group;
    });
  };
}

Hooks gathered_as_arrived() {
  return [](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks = on_gathers([](std::size_t mine, std::size_t place, std::size_t group) {
      return (mine + place) % group;
    });
  };
}

Hooks one_partial_sum_lost() {
  return [](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks.plan = [](const Scope&, const Program&, const Op& op, Moves& plan) {
      if (op.kind != OpKind::reduce_scatter) return;
      for (auto& pieces : plan.pieces)
        if (pieces.size() > 1) pieces.pop_back();
    };
  };
}

Hooks relabelled(const std::string& value, const std::string& program) {
  return [=](const Case&, const LatestValues&, FaultHooks& hooks) {
    hooks.plan = [=](const Scope&, const Program& now, const Op& op, Moves& plan) {
      if (now.name == program && (value.empty() || op.results[0].name == value))
        plan = without_transfer(std::move(plan));
    };
  };
}

}  // namespace shardproof::plants
