// Faults of buffers: stale ones, replicas that differ, blocks joined along another dim.
#include <algorithm>
#include <bit>

#include "engine/collectives/transfer.h"
#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/detail/stale.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

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
/// The head and the sampling end the prompt alone.
bool runs_in_each_pass(const Place& place) {
  return place.site.phase == "decode" ||
         (place.site.program != "head" && place.site.program != "sample");
}
/// Some layer and the one after it have the step; in the hand-over all have.
bool runs_in_next_layer(const Place& place) {
  const std::int64_t layers = place.source_case().model.layers;
  if (place.site.program == kHandOverProgram) return layers > 1;
  for (std::int64_t l = 1; l < layers; ++l)
    if (place.in_layer(l - 1) && place.in_layer(l)) return true;
  return false;
}
/// A weight is the same in each pass.
bool varies(const Place& place) { return place.op().results[0].role.kind != Role::Kind::weight; }

// M13.
std::vector<Operator> of_stale_buffers() {
  std::vector<Operator> rows;
  rows.push_back({.name = "stale-pass",
                  .fault_class = "M13",
                  .what = "a collective's buffer still holds the previous pass",
                  .parameters = steps_where([](const Place& place) {
                    return is_buffer(place) && runs_again(place) && varies(place) &&
                           runs_in_each_pass(place);
                  }),
                  .result = [] { return stale(Before::pass, false); }});
  rows.push_back({.name = "stale-layer",
                  .fault_class = "M13",
                  .what = "a collective's buffer still holds the previous layer: of a weight, a "
                          "prefetch that came too early",
                  .parameters = steps_where([](const Place& place) {
                    return is_buffer(place) && place.program.of_layer() &&
                           runs_in_next_layer(place);
                  }),
                  .result = [] { return stale(Before::layer, false); }});
  rows.push_back({.name = "half-arrived",
                  .fault_class = "M13",
                  .what = "on one chip half of a collective's buffer still holds the previous pass",
                  .parameters = steps_where([](const Place& place) {
                    return is_buffer(place) && runs_again(place) && varies(place) &&
                           runs_in_each_pass(place);
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
  rows.push_back(
      {.name = "bit-of-one-copy",
       .fault_class = "M14",
       .what = "one bit of one element differs in one chip's copy",
       .parameters =
           [](const Place& place) {
             if (place.is_weight() || !has_copies(place) || place.op().kind == OpKind::append)
               return Strings{};
             return place.type_of(place.op().results[0].name).integer ? Strings{"bit-0"}
                                                                      : Strings{"bit-0", "bit-22"};
           },
       .result = [] { return flip; }});
  rows.push_back({.name = "token-of-one-chip",
                  .fault_class = "M14",
                  .what = "one chip samples another token than the others",
                  .parameters = steps_where([](const Place& place) {
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

}  // namespace

std::vector<Operator> operators_of_buffers() {
  std::vector<Operator> rows;
  for (auto&& part : {of_stale_buffers(), of_replicas(), of_dims()})
    for (const Operator& one : part) rows.push_back(one);
  return rows;
}

}  // namespace shardproof::faults
