// Faults of values: local numbers for global ones, padding, scales.
#include <algorithm>

#include "engine/ops/local_ops.h"
#include "engine/ops/sampling.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/detail/wrong_ops.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;
std::function<Strings(const Place&)> at(OpKind kind) {
  return steps_where([kind](const Place& place) { return place.op().kind == kind; });
}

std::vector<Operator> of_local_numbers() {
  std::vector<Operator> rows;
  rows.push_back(
      {.name = "norm-by-local-extent",
       .fault_class = "M7",
       .what = "the norm divides by the extent of the chip's own block of E",
       .parameters = steps_where([](const Place& place) {
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
       .parameters = steps_where([](const Place& place) {
         return place.op().kind == OpKind::divide_by && place.torus.chips() > 1;
       }),
       .result = [] { return [](const Here&, Sharded& value) { multiply(value, 2); }; }});
  rows.push_back(
      {.name = "argmax-without-offset",
       .fault_class = "M7",
       .what = "a chip's best id is not shifted by where its block of the vocabulary begins",
       .parameters = steps_where([](const Place& place) {
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
                  .parameters = steps_where([](const Place& place) {
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

std::vector<Operator> of_padding() {
  std::vector<Operator> rows;
  rows.push_back({.name = "lookup-without-mask",
                  .fault_class = "M11",
                  .what = "ids of other chips' blocks are clamped in place of masked",
                  .parameters = steps_where([](const Place& place) {
                    return place.op().kind == OpKind::embed_lookup &&
                           place.torus.size(place.type_of(place.op().args[1]).layout.axes('V')) > 1;
                  }),
                  .result = [] {
                    return [](const Here& here, Sharded& value) {
                      look_up_unmasked(here.arg(0), here.arg(1), value);
                    };
                  }});
  rows.push_back(
      {.name = "padded-ids-not-masked",
       .fault_class = "M11",
       .what = "a block's padded ids take part in the argmax, with a logit above all others",
       .cases = "padded",
       .parameters = steps_where([](const Place& place) {
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

}  // namespace

std::vector<Operator> operators_of_values() {
  std::vector<Operator> rows;
  for (auto&& part : {of_local_numbers(), of_padding(), of_scales()})
    for (const Operator& one : part) rows.push_back(one);
  return rows;
}

}  // namespace shardproof::faults
