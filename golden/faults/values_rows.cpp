// Faults of values: local numbers for global ones, padding, scales, stale buffers, replicas that
// part, hand-overs.
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <tuple>

#include "engine/collectives/transfer.h"
#include "engine/ops/local_ops.h"
#include "engine/ops/sampling.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;
using Applies = std::function<bool(const Place&)>;

/// Parameters of a row without any: at the steps for which this is true.
std::function<Strings(const Place&)> where(Applies applies) {
  return [applies = std::move(applies)](const Place& place) {
    return !place.is_weight() && applies(place) ? Strings{"-"} : Strings{};
  };
}
std::function<Strings(const Place&)> at(OpKind kind) {
  return where([kind](const Place& place) { return place.op().kind == kind; });
}

std::vector<Operator> of_local_numbers() {
  std::vector<Operator> rows;
  rows.push_back(
      {.name = "norm-by-local-extent",
       .fault_class = "M7",
       .what = "the norm divides by the extent of the chip's own block of E",
       .parameters = where([](const Place& place) {
         return place.op().kind == OpKind::norm &&
                place.torus.size(place.type_of(place.op().args[0]).layout.axes_or_none('E')) > 1;
       }),
       .result = [] {
         return [](const Here& here, Sharded& value) {
           const Sharded& x = here.arg(0);
           Sharded bias = x;
           const bool has_bias = here.op.args.size() > 3;
           if (has_bias) bias = own_block(here.arg(3), 'E');
           value = norm(own_block(x, 'E'), here.arg(1), own_block(here.arg(2), 'E'),
                        has_bias ? &bias : nullptr, here.source_case.model.eps, calling_thread())
                       .relabelled(x.layout(), x.shape());
         };
       }});
  rows.push_back(
      {.name = "mean-by-local-extent",
       .fault_class = "M7",
       .what = "the mean divides by the extent of the chip's own block of E",
       .cases = "family",
       .parameters = where([](const Place& place) {
         return place.op().kind == OpKind::divide_by && place.torus.chips() > 1;
       }),
       .result = [] { return [](const Here&, Sharded& value) { multiply(value, 2); }; }});
  rows.push_back(
      {.name = "argmax-without-offset",
       .fault_class = "M7",
       .what = "a chip's best id is not shifted by where its block of the vocabulary begins",
       .parameters = where([](const Place& place) {
         return place.op().kind == OpKind::local_argmax &&
                place.torus.size(place.type_of(place.op().args[0]).layout.axes('V')) > 1;
       }),
       .result = [] {
         return [](const Here& here, Sharded& value) {
           if (here.declared.name != here.op.results[1].name) return;
           const Candidates own = local_argmax(own_block(here.arg(0), 'V'), calling_thread());
           value = own.index.relabelled(value.layout(), value.shape());
         };
       }});
  rows.push_back({.name = "search-of-own-block",
                  .fault_class = "M7",
                  .what = "top-k or top-p looks at the chip's own block of the vocabulary alone",
                  .cases = "base2",
                  .parameters = where([](const Place& place) {
                    return op_row(place.op().kind).searches &&
                           place.torus.size(place.op().axes) > 1;
                  }),
                  .moves = [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                    Moves moves = at.right;
                    for (std::size_t chip = 0; chip < moves.pieces.size(); ++chip)
                      moves.pieces[chip] = {{static_cast<int>(chip), 0, 0}};
                    return moves;
                  }});
  rows.push_back({.name = "base2-logits-at-natural-temperature",
                  .fault_class = "M7",
                  .what = "logits that are in base-2 units are sampled at the natural temperature",
                  .cases = "base2",
                  .parameters = at(OpKind::weigh),
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      value = weigh(here.arg(0), here.arg(1), here.source_case.sampling.temperature,
                                    calling_thread(), 1.0, here.source_case.model.V);
                    };
                  }});
  return rows;
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

void look_up_unmasked(const Here& here, Sharded& value) {
  const Sharded &ids = here.arg(0), &table = here.arg(1);
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
}

std::vector<Operator> of_padding() {
  std::vector<Operator> rows;
  rows.push_back({.name = "lookup-without-mask",
                  .fault_class = "M11",
                  .what = "ids of other chips' blocks are clamped in place of masked",
                  .parameters = where([](const Place& place) {
                    return place.op().kind == OpKind::embed_lookup &&
                           place.torus.size(place.type_of(place.op().args[1]).layout.axes('V')) > 1;
                  }),
                  .result = [] { return look_up_unmasked; }});
  rows.push_back(
      {.name = "padded-ids-not-masked",
       .fault_class = "M11",
       .what = "a block's padded ids take part in the argmax, with a logit above all others",
       .cases = "padded",
       .parameters = where([](const Place& place) {
         return place.op().kind == OpKind::local_argmax && place.source_case().pad_vocab > 0;
       }),
       .result = [] {
         return [](const Here& here, Sharded& value) {
           // Its logit, above all others, and its id.
           const bool is_id = here.declared.name == here.op.results[1].name;
           const std::int64_t block = here.arg(0).local()[1], V = here.source_case.model.V;
           const Axes axes = here.arg(0).layout().axes('V');
           for (int chip = 0; chip < value.torus().chips(); ++chip) {
             const std::int64_t first = value.torus().block(chip, axes) * block;
             if (V <= first || V >= first + block) continue;  // no padded id beside others
             if (value.holds_field())
               for (FieldElement& v : value.field_of(chip)) v = value.field().field->integer(V);
             else if (is_id)
               for (std::int32_t& v : value.i32_of(chip)) v = static_cast<std::int32_t>(V);
             else
               for (float& v : value.f32_of(chip)) v = 1000.0F;
           }
         };
       }});
  return rows;
}

std::vector<Operator> of_scales() {
  std::vector<Operator> rows;
  rows.push_back(
      {.name = "scale-dropped",
       .fault_class = "M12",
       .what = "codes are not multiplied by their scale",
       .cases = "int8",
       .parameters = at(OpKind::scale),
       .written = [](Program& program, std::size_t i, const std::string&) { erase_op(program, i); },
       .result = [] { return [](const Here& here, Sharded& value) { value = here.arg(0); }; }});
  rows.push_back({.name = "scale-twice",
                  .fault_class = "M12",
                  .what = "codes are multiplied by their scale twice",
                  .cases = "int8",
                  .parameters = at(OpKind::scale),
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        const Op right = program.ops[i];
                        add_after(program, i, right);
                        program.ops[i + 1].args.push_back(right.args[1]);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          value = scale(value, here.arg(1), calling_thread());
                        };
                      }});
  return rows;
}

// M13. What a step made before: in the pass before, or in the layer before.
class History {
 public:
  /// What the same step made in the layer before, of this pass; null in layer 0.
  const Sharded* layer_before(const Here& here) const {
    return find({here.scope.layer - 1, here.scope.pass, here.declared.name});
  }
  /// What it made in the pass before; null in the first.
  const Sharded* pass_before(const Here& here) const {
    return find({here.scope.layer, here.scope.previous, here.declared.name});
  }
  void keep(const Here& here, const Sharded& value) {
    made_.insert_or_assign({here.scope.layer, here.scope.pass, here.declared.name}, value);
  }

 private:
  using Key = std::tuple<int, std::string, std::string>;
  const Sharded* find(const Key& key) const {
    const auto at = made_.find(key);
    return at == made_.end() ? nullptr : &at->second;
  }
  std::map<Key, Sharded> made_;
};

enum class Before { pass, layer };

/// The value of another time in place of this, on all chips or part of one chip.
ResultEdit stale(Before before, bool half_of_one_chip) {
  auto history = std::make_shared<History>();
  return [=](const Here& here, Sharded& value) {
    const Sharded right = value;
    const Sharded* const old =
        before == Before::pass ? history->pass_before(here) : history->layer_before(here);
    if (old != nullptr && old->local() == value.local() &&
        old->data().index() == value.data().index()) {
      const int last = value.torus().chips() - 1;
      on_numbers(*old, value, [&](const auto& chips, const auto& to) {
        for (int chip = 0; chip < right.torus().chips(); ++chip) {
          if (half_of_one_chip && chip != last) continue;
          const auto out = to(chip);
          const std::size_t end = half_of_one_chip ? (out.size() + 1) / 2 : out.size();
          for (std::size_t i = 0; i < end; ++i) out[i] = chips[static_cast<std::size_t>(chip)][i];
        }
      });
    }
    history->keep(here, right);
  };
}

/// Steps whose buffers are used again: collectives' results.
bool is_buffer(const Place& place) {
  return is_collective(place.op().kind) && place.torus.size(place.op().axes) > 1 &&
         !place.op().by_max;
}
/// The same step runs in two passes with equal shapes.
bool runs_again(const Place& place) {
  const Case& c = place.source_case();
  if (place.site.program == "hand_over") return false;
  return place.site.phase == "decode" ? c.gen > 2 : c.chunk * 2 <= c.prompt && !c.lengths.given();
}
/// A weight is the same in each pass.
bool varies(const Place& place) { return place.op().results[0].role.kind != Role::Kind::weight; }

std::vector<Operator> of_stale_buffers() {
  std::vector<Operator> rows;
  rows.push_back({.name = "stale-pass",
                  .fault_class = "M13",
                  .what = "a collective's buffer still holds the pass before",
                  .parameters = where([](const Place& place) {
                    return is_buffer(place) && runs_again(place) && varies(place) &&
                           (place.site.program == "layer" || place.site.phase == "decode" ||
                            place.site.program == "embed");
                  }),
                  .result = [] { return stale(Before::pass, false); }});
  rows.push_back({.name = "stale-layer",
                  .fault_class = "M13",
                  .what = "a collective's buffer still holds the layer before: of a weight, a "
                          "prefetch that came too early",
                  .parameters = where([](const Place& place) {
                    return is_buffer(place) && place.program.of_layer() &&
                           place.source_case().model.layers > 1;
                  }),
                  .result = [] { return stale(Before::layer, false); }});
  rows.push_back({.name = "half-arrived",
                  .fault_class = "M13",
                  .what = "on one chip half of a collective's buffer still holds the pass before",
                  .parameters = where([](const Place& place) {
                    return is_buffer(place) && runs_again(place) && varies(place) &&
                           (place.site.program == "layer" || place.site.phase == "decode" ||
                            place.site.program == "embed");
                  }),
                  .result = [] { return stale(Before::pass, true); }});
  return rows;
}

/// Changes one element of the last chip's copy of a value: "bit-0" to "bit-30" of a float.
void flip(const Here& here, Sharded& value) {
  const int chip = value.torus().chips() - 1;
  const int bit = std::stoi(here.parameter.substr(4));
  if (value.holds_field()) {
    FieldElement& v = value.field_of(chip)[0];
    if (value.field().field->is_number(v))
      v = value.field().field->add(v, value.field().field->integer(std::int64_t{1} << bit));
  } else if (value.stores_int32()) {
    value.i32_of(chip)[0] ^= 1;
  } else if (!value.holds_partial()) {
    float& v = value.f32_of(chip)[0];
    v = std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) ^ (std::uint32_t{1} << bit));
  }
}

bool has_copies(const Place& place) {
  const Type& type = place.type_of(place.op().results[0].name);
  const Shape local = place.local(place.op().results[0].name);
  return !type.layout.is_partial() && element_count(local) > 0 &&
         !copied_along(place.torus, type.layout).empty();
}

std::vector<Operator> of_replicas() {
  std::vector<Operator> rows;
  rows.push_back({.name = "bit-of-one-copy",
                  .fault_class = "M14",
                  .what = "one bit of one element differs in one chip's copy",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || !has_copies(place) ||
                            place.op().kind == OpKind::append)
                          return Strings{};
                        return place.type_of(place.op().results[0].name).integer
                                   ? Strings{"bit-0"}
                                   : Strings{"bit-0", "bit-12", "bit-22"};
                      },
                  .result = [] { return flip; }});
  rows.push_back({.name = "token-of-one-chip",
                  .fault_class = "M14",
                  .what = "one chip samples another token than the others",
                  .parameters = where([](const Place& place) {
                    return place.op().kind == OpKind::argmax && place.torus.chips() > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      const int chip = value.torus().chips() - 1;
                      if (value.holds_field())
                        for (FieldElement& v : value.field_of(chip))
                          v = value.field().field->add(v, value.field().field->integer(1));
                      else
                        for (std::int32_t& v : value.i32_of(chip)) v = v == 0 ? 1 : v - 1;
                    };
                  }});
  return rows;
}

// M5. Collectives along another dim: the same elements in another order.

/// The value that moves make of an operand, called by the layout and shape that `value` has.
Sharded relabelled_result(const Sharded& operand, const Moves& moves, const Sharded& value) {
  std::vector<Layout::Dim> dims = operand.layout().dims();
  for (Layout::Dim& dim : dims) dim.axes = {};
  const Sharded whole = operand.relabelled(Layout(dims, {}), operand.local());
  return transfer(whole, moves, Layout(dims, {}), moves.to_local, calling_thread())
      .relabelled(value.layout(), value.shape());
}

std::vector<Operator> of_dims() {
  std::vector<Operator> rows;
  rows.push_back({.name = "gather-other-dim",
                  .fault_class = "M5",
                  .what = "blocks are joined along another dim",
                  .parameters =
                      [](const Place& place) {
                        Strings all;
                        if (place.is_weight() || place.op().kind != OpKind::all_gather ||
                            place.torus.size(place.op().axes) == 1 ||
                            place.site.program == "hand_over")
                          return all;
                        const std::string& from = place.op().args[0];
                        const Shape local = place.local(from);
                        const Layout& layout = place.type_of(from).layout;
                        const std::size_t right = *layout.find(place.op().dim);
                        for (std::size_t d = 0; d < local.size(); ++d) {
                          // What lies between the two dims is more than one element.
                          std::int64_t between = 1;
                          for (std::size_t e = std::min(d, right); e < std::max(d, right); ++e)
                            between *= local[e];
                          if (d != right && between > 1)
                            all.emplace_back(1, layout.dims()[d].letter);
                        }
                        return all;
                      },
                  .written = [](Program& program, std::size_t i,
                                const std::string& dim) { program.ops[i].dim = dim[0]; },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          const Sharded& t = here.arg(0);
                          const std::size_t dim = *t.layout().find(here.parameter[0]);
                          value = relabelled_result(
                              t, all_gather_moves(t.torus(), t.local(), dim, here.op.axes), value);
                        };
                      }});
  rows.push_back(
      {.name = "split-and-concat-exchanged",
       .fault_class = "M5",
       .what = "all_to_all splits the dim that it should join",
       .parameters =
           [](const Place& place) {
             Strings none;
             if (place.is_weight() || place.op().kind != OpKind::all_to_all ||
                 place.torus.size(place.op().axes) == 1 || place.site.program == "hand_over")
               return none;
             const std::string& from = place.op().args[0];
             const std::int64_t extent =
                 place.local(from)[*place.type_of(from).layout.find(place.op().dim)];
             return extent % place.torus.size(place.op().axes) == 0 ? Strings{"-"} : none;
           },
       .written = [](Program& program, std::size_t i,
                     const std::string&) { std::swap(program.ops[i].dim, program.ops[i].to); },
       .result =
           [] {
             return [](const Here& here, Sharded& value) {
               const Sharded& t = here.arg(0);
               const auto dim = [&](char letter) { return *t.layout().find(letter); };
               value =
                   relabelled_result(t,
                                     all_to_all_moves(t.torus(), t.local(), dim(here.op.to),
                                                      dim(here.op.dim), here.op.axes, here.op.as),
                                     value);
             };
           }});
  return rows;
}

/// The last step of a cache's hand-over.
bool ends_hand_over(const Place& place) {
  return place.site.program == "hand_over" &&
         std::find(place.program.outputs.begin(), place.program.outputs.end(),
                   place.op().results[0].name) != place.program.outputs.end();
}

std::vector<Operator> of_hand_overs() {
  std::vector<Operator> rows;
  rows.push_back({.name = "hand-over-block-missing",
                  .fault_class = "M15",
                  .what = "one chip's block of the caches has not arrived: it holds zeros",
                  .cases = "hand-over",
                  .parameters = where(ends_hand_over),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      const Sharded from = value;
                      on_numbers(from, value, [&](const auto&, const auto& to) {
                        for (auto& v : to(from.torus().chips() - 1)) v = {};
                      });
                    };
                  }});
  rows.push_back({.name = "hand-over-layer-off",
                  .fault_class = "M15",
                  .what = "a layer is handed the caches of the layer before",
                  .cases = "hand-over",
                  .parameters = where([](const Place& place) {
                    return ends_hand_over(place) && place.source_case().model.layers > 1;
                  }),
                  .result = [] { return stale(Before::layer, false); }});
  rows.push_back({.name = "hand-over-slot-off",
                  .fault_class = "M15",
                  .what = "slots are handed over one too late",
                  .cases = "hand-over",
                  .parameters = where([](const Place& place) {
                    return ends_hand_over(place) && place.source_case().prompt > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      const Shape& local = value.local();
                      const std::int64_t M = local[1];
                      const std::int64_t inner = element_count(local) / local[0] / M;
                      shuffle(value, [&](std::int64_t i) {
                        const std::int64_t m = i / inner % M;
                        return i + (std::max<std::int64_t>(m - 1, 0) - m) * inner;
                      });
                    };
                  }});
  rows.push_back({.name = "hand-over-heads-reversed",
                  .fault_class = "M15",
                  .what = "a chip's heads arrive in the opposite order",
                  .cases = "hand-over",
                  .parameters = where([](const Place& place) {
                    return ends_hand_over(place) && place.local(place.op().results[0].name)[2] > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      const Shape& local = value.local();
                      const std::int64_t K = local[2], Q = local[3];
                      shuffle(value, [&](std::int64_t i) {
                        const std::int64_t k = i / Q % K;
                        return i + (K - 1 - 2 * k) * Q;
                      });
                    };
                  }});
  rows.push_back({.name = "hand-over-layout-transposed",
                  .fault_class = "M15",
                  .what = "slots and heads are read in the opposite order (HND for NHD)",
                  .cases = "hand-over",
                  .parameters = where([](const Place& place) {
                    const Shape local = ends_hand_over(place)
                                            ? place.local(place.op().results[0].name)
                                            : Shape{1, 1, 1, 1};
                    return local[1] > 1 && local[2] > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      const Shape& local = value.local();
                      const std::int64_t M = local[1], K = local[2], Q = local[3];
                      shuffle(value, [&](std::int64_t i) {
                        const std::int64_t c = i % Q, place = i / Q % (M * K), row = i / Q / M / K;
                        return (row * M * K + place % M * K + place / M) * Q + c;
                      });
                    };
                  }});
  return rows;
}

}  // namespace

std::vector<Operator> operators_of_values() {
  std::vector<Operator> rows;
  for (auto&& part : {of_local_numbers(), of_padding(), of_scales(), of_stale_buffers(),
                      of_replicas(), of_dims(), of_hand_overs()})
    for (const Operator& one : part) rows.push_back(one);
  return rows;
}

}  // namespace shardproof::faults
