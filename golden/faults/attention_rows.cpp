// Faults of positions, masks, caches and heads.
#include <algorithm>

#include "engine/ops/local_ops.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/detail/wrong_ops.h"
#include "golden/faults/operator.h"
#include "weights/base/bf16.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

bool is_rope(OpKind kind) { return kind == OpKind::rope || kind == OpKind::rope_interleaved; }
RopePairs pairs_of(OpKind kind) {
  return kind == OpKind::rope ? RopePairs::half_split : RopePairs::interleaved;
}

std::function<Strings(const Place&)> at(std::function<bool(OpKind)> kind, Strings parameters) {
  return [kind = std::move(kind), parameters = std::move(parameters)](const Place& place) {
    return !place.is_weight() && kind(place.op().kind) ? parameters : Strings{};
  };
}

/// Positions changed by f(position, row and token of the chip's shard); kept in [0, most].
template <class F>
Sharded moved(Sharded positions, std::int32_t most, F&& f) {
  for (int chip = 0; chip < positions.torus().chips(); ++chip) {
    const auto all = positions.i32_of(chip);
    const Buffer<std::int32_t> right(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = std::clamp(f(right, i, positions.local()[1]), 0, most);
  }
  return positions;
}

/// Wrong positions of a pass: "+1", "-1"; "from-0": counted from the pass's first token; "row-0":
/// those of the batch's first row.
Sharded wrong_positions(const Sharded& positions, const std::string& how, std::int32_t most) {
  return moved(positions, most,
               [&](const Buffer<std::int32_t>& right, std::size_t i, std::int64_t L) {
                 const auto tokens = static_cast<std::size_t>(L);
                 if (how == "+1") return right[i] + 1;
                 if (how == "-1") return right[i] - 1;
                 if (how == "from-0") return right[i] - right[i / tokens * tokens];
                 return right[i % tokens];
               });
}

/// RoPE again, with other positions, tables or pairs.
void rotate(const Here& here, Sharded& value, RopePairs pairs, const Sharded& positions,
            const Sharded& cos, const Sharded& sin) {
  value = rope(pairs, here.arg(0), positions, cos, sin, calling_thread());
}

Sharded in_bf16(Sharded table) {
  if (!table.holds_field())
    for (int chip = 0; chip < table.torus().chips(); ++chip)
      for (float& v : table.f32_of(chip)) v = round_to_bf16(v);
  return table;
}

/// Attention again, over other operands: the results of one step, computed at the first.
ResultEdit attention(std::function<Attention(const Here&)> compute) {
  auto made = std::make_shared<std::optional<Attention>>();
  return [compute = std::move(compute), made](const Here& here, Sharded& value) {
    if (here.declared.name == here.op.results[0].name) *made = compute(here);
    Attention& a = **made;
    const std::vector<Sharded*> all{&a.score, &a.max, &a.exp, &a.denom, &a.attn};
    for (std::size_t r = 0; r < all.size(); ++r)
      if (here.op.results[r].name == here.declared.name) value = *all[r];
  };
}

Attention attend_at(const Here& here, const Sharded& q, const Sharded& k, const Sharded& v,
                    const Sharded& positions) {
  return attend(q, k, v, positions, calling_thread(), here.source_case.numerics.regime,
                here.op.args.size() > 4 ? &here.arg(4) : nullptr, nullptr,
                here.source_case.model.softmax);
}

bool full_rows(const Place& place) { return !place.source_case().lengths.given(); }

/// Attention over one cache, of rows without padding, for which it can be computed again.
std::function<Strings(const Place&)> at_attention(Strings parameters) {
  return [parameters = std::move(parameters)](const Place& place) {
    return !place.is_weight() && place.op().kind == OpKind::attend && full_rows(place) ? parameters
                                                                                       : Strings{};
  };
}

/// A chip has several kv heads, and several query heads of each.
Strings several_kv_heads(const Place& place) {
  if (place.is_weight() || place.op().kind != OpKind::attend || !full_rows(place)) return {};
  const std::int64_t K = place.local(place.op().args[1])[2];
  const std::int64_t H = place.local(place.op().args[0])[2];
  return K > 1 && H > K ? Strings{"-"} : Strings{};
}

std::vector<Operator> of_positions() {
  std::vector<Operator> rows;
  rows.push_back({.name = "rope-position",
                  .fault_class = "M9",
                  .what = "RoPE's position is one off, or counted from the pass's first token",
                  .parameters =
                      [](const Place& place) {
                        if (place.is_weight() || !is_rope(place.op().kind)) return Strings{};
                        const bool later = place.site.phase == "decode" ||
                                           place.source_case().chunk < place.source_case().prompt;
                        return later ? Strings{"+1", "-1", "from-0"} : Strings{"+1", "-1"};
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          const Sharded& cos = here.arg(2);
                          const auto most = static_cast<std::int32_t>(cos.shape()[0] - 1);
                          rotate(here, value, pairs_of(here.op.kind),
                                 wrong_positions(here.arg(1), here.parameter, most), cos,
                                 here.arg(3));
                        };
                      }});
  rows.push_back({.name = "rope-position-of-row-0",
                  .fault_class = "M9",
                  .what = "every row is rotated at the first row's positions",
                  .cases = "ragged",
                  .parameters =
                      [](const Place& place) {
                        return !place.is_weight() && is_rope(place.op().kind) &&
                                       place.site.phase == "decode" && !full_rows(place) &&
                                       place.local(place.op().args[1])[0] > 1
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          const Sharded& cos = here.arg(2);
                          const auto most = static_cast<std::int32_t>(cos.shape()[0] - 1);
                          rotate(here, value, pairs_of(here.op.kind),
                                 wrong_positions(here.arg(1), "row-0", most), cos, here.arg(3));
                        };
                      }});
  rows.push_back({.name = "rope-pairs",
                  .fault_class = "M9",
                  .what = "interleaved pairs of channels in place of halves, or the reverse",
                  .parameters = at(is_rope, {"-"}),
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        OpKind& kind = program.ops[i].kind;
                        kind = kind == OpKind::rope ? OpKind::rope_interleaved : OpKind::rope;
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          rotate(here, value,
                                 here.op.kind == OpKind::rope ? RopePairs::interleaved
                                                              : RopePairs::half_split,
                                 here.arg(1), here.arg(2), here.arg(3));
                        };
                      }});
  rows.push_back({.name = "rope-tables-exchanged",
                  .fault_class = "M9",
                  .what = "cosine and sine are exchanged",
                  .parameters = at(is_rope, {"-"}),
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        std::swap(program.ops[i].args[2], program.ops[i].args[3]);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          rotate(here, value, pairs_of(here.op.kind), here.arg(1), here.arg(3),
                                 here.arg(2));
                        };
                      }});
  rows.push_back({.name = "rope-tables-in-bf16",
                  .fault_class = "M9",
                  .what = "cosines and sines are rounded to bf16",
                  .parameters = at(is_rope, {"-"}),
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      rotate(here, value, pairs_of(here.op.kind), here.arg(1), in_bf16(here.arg(2)),
                             in_bf16(here.arg(3)));
                    };
                  }});
  rows.push_back({.name = "mask",
                  .fault_class = "M9",
                  .what = "the causal mask is one off, missing, or aligned to the upper left",
                  .parameters =
                      [](const Place& place) {
                        if (at_attention({"-"})(place).empty()) return Strings{};
                        const bool decode = place.site.phase == "decode";
                        const Case& c = place.source_case();
                        Strings all{"-1"};
                        // A decode step's one query sees every slot there is; a pass over several
                        // does not.
                        if (!decode && place.type_of(place.op().args[0]).shape[1] > 1) {
                          all.emplace_back("+1");
                          all.emplace_back("none");
                        }
                        if (decode || c.chunk < c.prompt) all.emplace_back("from-0");
                        return all;
                      },
                  .result =
                      [] {
                        return attention([](const Here& here) {
                          const Sharded& k = here.arg(1);
                          const auto most = static_cast<std::int32_t>(k.shape()[1] - 1);
                          Sharded positions =
                              here.parameter == "none"
                                  ? moved(here.arg(3), most,
                                          [&](const Buffer<std::int32_t>&, std::size_t,
                                              std::int64_t) { return most; })
                                  : wrong_positions(here.arg(3), here.parameter, most);
                          return attend_at(here, here.arg(0), k, here.arg(2), positions);
                        });
                      }});
  return rows;
}

/// Appending again, of other rows or at other slots.
void append_again(const Here& here, Sharded& value, const Sharded& rows, const Sharded& positions) {
  value = append(here.arg(0), rows, positions, calling_thread(), here.source_case.model.cache,
                 nullptr, 0, here.op.zeros);
  zero_unwritten(value);
}

std::vector<Operator> of_caches() {
  const auto is_append = [](OpKind kind) { return kind == OpKind::append; };
  const auto at_append = [is_append](Strings parameters) {
    return [is_append, parameters](const Place& place) {
      return !place.is_weight() && is_append(place.op().kind) && full_rows(place) &&
                     !place.source_case().prefix.given()
                 ? parameters
                 : Strings{};
    };
  };
  std::vector<Operator> rows;
  rows.push_back({.name = "slot",
                  .fault_class = "M10",
                  .what = "new keys or values are written one slot off, or from slot 0 on",
                  .parameters =
                      [at_append](const Place& place) {
                        if (place.is_weight()) return Strings{};
                        const Case& c = place.source_case();
                        // In decode the new slot is the last: one further is clamped to it.
                        if (place.site.phase == "decode") return at_append({"-1", "from-0"})(place);
                        return at_append(c.chunk < c.prompt ? Strings{"+1", "-1", "from-0"}
                                                            : Strings{"+1", "-1"})(place);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          const auto last = static_cast<std::int32_t>(value.shape()[1] - 1);
                          // One slot too far leaves the cache's end, as a ring buffer's: it is
                          // clamped.
                          append_again(here, value, here.arg(1),
                                       wrong_positions(here.arg(2), here.parameter, last));
                        };
                      }});
  rows.push_back({.name = "append-skipped",
                  .fault_class = "M10",
                  .what = "new keys or values are not written: their slots hold zeros",
                  .parameters = at_append({"-"}),
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      Sharded nothing = here.arg(1);
                      multiply(nothing, 0);
                      append_again(here, value, nothing, here.arg(2));
                    };
                  }});
  rows.push_back({.name = "append-of-other-row",
                  .fault_class = "M10",
                  .what = "a row's keys or values are written to the next row of the batch",
                  .parameters =
                      [at_append](const Place& place) {
                        const Strings all = at_append({"-"})(place);
                        if (all.empty() || place.local(place.op().args[1])[0] < 2) return Strings{};
                        return all;
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          Sharded rows_of_others = here.arg(1);
                          const std::int64_t B = rows_of_others.local()[0];
                          const std::int64_t size = element_count(rows_of_others.local()) / B;
                          shuffle(rows_of_others, [&](std::int64_t i) {
                            return (i / size + B - 1) % B * size + i % size;
                          });
                          append_again(here, value, rows_of_others, here.arg(2));
                        };
                      }});
  rows.push_back({.name = "cache-in-bf16",
                  .fault_class = "M10",
                  .what = "the cache keeps bf16 where f32 is declared",
                  .parameters =
                      [at_append](const Place& place) {
                        return place.source_case().model.cache ? Strings{}
                                                               : at_append({"-"})(place);
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          if (here.in_field()) return;
                          value = append(here.arg(0), here.arg(1), here.arg(2), calling_thread(),
                                         NumberFormat::bf16, nullptr, 0, here.op.zeros);
                        };
                      }});
  rows.push_back(
      {.name = "cache-scale",
       .fault_class = "M12",
       .what = "the cache is read with another scale than it was written with",
       .parameters = at_append({"1/2"}),
       .result = [] { return [](const Here&, Sharded& value) { multiply(value, 1, 2); }; }});
  rows.push_back({.name = "padding-cached",
                  .fault_class = "M11",
                  .what = "tokens after a row's end are written to the cache",
                  .cases = "ragged",
                  .parameters =
                      [](const Place& place) {
                        return !place.is_weight() && place.op().kind == OpKind::append &&
                                       !place.source_case().prefix.given() && !full_rows(place) &&
                                       place.site.phase == "prefill"
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .result =
                      [] {
                        return [](const Here& here, Sharded& value) {
                          append_again(here, value, here.arg(1), here.arg(2));
                        };
                      }});
  return rows;
}

std::vector<Operator> of_heads() {
  std::vector<Operator> rows;
  rows.push_back({.name = "kv-heads-tiled",
                  .fault_class = "M6",
                  .what = "query head h reads key/value head h mod K in place of h div G",
                  .parameters = several_kv_heads,
                  .result = [] {
                    return attention([](const Here& here) {
                      const Sharded& q = here.arg(0);
                      return attend_at(here, q, with_tiled_heads(q, here.arg(1)),
                                       with_tiled_heads(q, here.arg(2)), here.arg(3));
                    });
                  }});
  rows.push_back(
      {.name = "prefix-of-local-row",
       .fault_class = "M5",
       .what = "a replicated cache of prefixes is mapped to local rows: every chip reads the first "
               "prefix",
       .cases = "prefix",
       .parameters =
           [](const Place& place) {
             if (place.is_weight() || place.op().kind != OpKind::attend_prefix) return Strings{};
             const std::int64_t B = place.local(place.op().args[0])[0];
             const Type& prefix = place.type_of(place.op().args[3]);
             const bool whole = place.local(place.op().args[3])[0] == prefix.shape[0];
             // Rows of one chip that are all of one prefix: the local row 0's is the first.
             return whole && prefix.shape[0] > 1 && B == 1 ? Strings{"-"} : Strings{};
           },
       .result =
           [] {
             return attention([](const Here& here) {
               const auto first_of_all = [](Sharded cache) {
                 const std::int64_t size = element_count(cache.local()) / cache.local()[0];
                 shuffle(cache, [&](std::int64_t i) { return i % size; });
                 return cache;
               };
               const Sharded k = first_of_all(here.arg(3)), v = first_of_all(here.arg(4));
               return attend_prefix(here.arg(0), here.arg(1), here.arg(2), {k, v}, here.arg(5),
                                    calling_thread(), here.source_case.numerics.regime, nullptr,
                                    nullptr, here.source_case.model.softmax);
             });
           }});
  return rows;
}

}  // namespace

std::vector<Operator> operators_of_attention() {
  std::vector<Operator> rows;
  for (auto&& part : {of_positions(), of_caches(), of_heads()})
    for (const Operator& one : part) rows.push_back(one);
  return rows;
}

}  // namespace shardproof::faults
