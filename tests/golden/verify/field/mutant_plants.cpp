#include "tests/golden/verify/field/mutant_plants.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/local_ops.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/detail/wrong_ops.h"
#include "tests/golden/faults.h"
#include "weights/base/error.h"

namespace shardproof::plants {
namespace {

using faults::on_numbers;
using faults::own_block;
using faults::reversed;
using faults::sum_of;
using faults::zero_unwritten;

Threads& one_thread() {
  static Threads one(1);
  return one;
}

Sharded shifted(Sharded positions, std::int32_t by, std::int32_t most) {
  for (int chip = 0; chip < positions.torus().chips(); ++chip)
    for (std::int32_t& p : positions.i32_of(chip)) p = std::clamp(p + by, 0, most);
  return positions;
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
      Attention a = attend(q, faults::with_tiled_heads(q, shown.at(op.args[1])),
                           faults::with_tiled_heads(q, shown.at(op.args[2])), shown.at(op.args[3]),
                           one_thread(), regime);
      const std::vector<Sharded*> all{&a.score, &a.max, &a.exp, &a.denom, &a.attn};
      for (std::size_t r = 0; r < all.size(); ++r)
        if (op.results[r].name == declared.name) value = *all[r];
    });
  };
}

Hooks unmasked_lookup() {
  return [](const Case&, const LatestValues& shown, FaultHooks& hooks) {
    hooks = on_result(OpKind::embed_lookup,
                      [&shown](const Scope&, const Op& op, const ValueDecl&, Sharded& value) {
                        faults::look_up_unmasked(shown.at(op.args[0]), shown.at(op.args[1]), value);
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
