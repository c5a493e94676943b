// Faults of the hand-over of caches from prefill to decode: of its collectives, and of what
// arrives.
#include <algorithm>

#include "golden/faults/detail/moves_edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/detail/stale.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

/// Rows of collectives are those of any program, by other names.
std::vector<Operator> of_collectives() {
  return {row_of_moves("hand-over-relabelled", "M15",
                       "the caches are handed over without the moves that their layouts ask for",
                       kCollectives, {}, dropped, write_dropped),
          row_of_moves("hand-over-blocks-reversed", "M15",
                       "the caches' blocks are handed over in the opposite order", kInOrder, {},
                       blocks_reversed),
          row_of_moves("hand-over-axes-reversed", "M15",
                       "batch order X-major on one side of the hand-over, Z-major on the other",
                       {OpKind::all_gather, OpKind::all_to_all}, other_orders, axes_reversed,
                       write_axes_reversed)};
}

/// The last step of a cache's hand-over.
bool ends_hand_over(const Place& place) {
  return place.site.program == "hand_over" &&
         std::find(place.program.outputs.begin(), place.program.outputs.end(),
                   place.op().results[0].name) != place.program.outputs.end();
}

/// How many of a dim a chip has of what the step returns; 0 of a dim that it lacks.
std::int64_t extent(const Place& place, char letter) {
  const ValueDecl& made = place.op().results[0];
  const auto dim = made.layout.find(letter);
  return dim ? place.local(made.name)[*dim] : 0;
}

/// A dim's axes in the opposite order: another layout, in which chips hold each other's blocks.
Layout with_reversed(const Layout& layout, char letter) {
  const std::size_t dim = *layout.find(letter);
  return layout.with_axes(dim, reversed(layout.dims()[dim].axes));
}

std::vector<Operator> of_arrived_caches() {
  std::vector<Operator> rows;
  rows.push_back(
      {.name = "hand-over-to-other-layout",
       .fault_class = "M15",
       .what =
           "the caches arrive with a dim's axes in the opposite order, as another decode has it",
       .cases = "hand-over",
       .parameters =
           [](const Place& place) {
             Strings all;
             if (!ends_hand_over(place)) return all;
             for (const Layout::Dim& dim : place.op().results[0].layout.dims())
               if (wide(place.torus, dim.axes).size() > 1) all.emplace_back(1, dim.letter);
             return all;
           },
       .written =
           [](Program& program, std::size_t i, const std::string& dim) {
             Op permuted;
             permuted.kind = OpKind::permute_axes;
             permuted.dim = dim[0];
             permuted.axes = program.ops[i].results[0].layout.axes(dim[0]);
             permuted.as = reversed(permuted.axes);
             add_after(program, i, permuted);
             Layout& layout = program.ops[i + 1].results[0].layout;
             layout = with_reversed(layout, dim[0]);
           },
       .result =
           [] {
             return [](const Here& here, Sharded& value) {
               const Axes declared = value.layout().axes(here.parameter[0]);
               take(value, [&](int chip) {
                 const auto place =
                     static_cast<std::size_t>(value.torus().block(chip, reversed(declared)));
                 return value.torus().group(chip, declared)[place];
               });
             };
           }});
  rows.push_back({.name = "hand-over-block-missing",
                  .fault_class = "M15",
                  .what = "one chip's block of the caches has not arrived: it holds zeros",
                  .cases = "hand-over",
                  .parameters = steps_where(ends_hand_over),
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
                  .what = "a layer is handed the caches of the previous layer",
                  .cases = "hand-over",
                  .parameters = steps_where([](const Place& place) {
                    return ends_hand_over(place) && place.source_case().model.layers > 1;
                  }),
                  .result = [] { return stale(Before::layer, false); }});
  rows.push_back({.name = "hand-over-slot-off",
                  .fault_class = "M15",
                  .what = "slots are handed over one too late",
                  .cases = "hand-over",
                  .parameters = steps_where([](const Place& place) {
                    return ends_hand_over(place) && place.source_case().prompt > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      order_rows(value, 'M', [](std::int64_t m, std::int64_t) {
                        return std::max<std::int64_t>(m - 1, 0);
                      });
                    };
                  }});
  rows.push_back({.name = "hand-over-heads-reversed",
                  .fault_class = "M15",
                  .what = "a chip's heads arrive in the opposite order",
                  .cases = "hand-over",
                  .parameters = steps_where([](const Place& place) {
                    return ends_hand_over(place) && extent(place, 'K') > 1;
                  }),
                  .result = [] {
                    return [](const Here&, Sharded& value) {
                      order_rows(value, 'K',
                                 [](std::int64_t k, std::int64_t K) { return K - 1 - k; });
                    };
                  }});
  rows.push_back({.name = "hand-over-layout-transposed",
                  .fault_class = "M15",
                  .what = "slots and heads are read in the opposite order (HND for NHD)",
                  .cases = "hand-over",
                  .parameters = steps_where([](const Place& place) {
                    return ends_hand_over(place) &&
                           place.op().results[0].layout.letters() == "BMKQ" &&
                           extent(place, 'M') > 1 && extent(place, 'K') > 1;
                  }),
                  .written =
                      [](Program& program, std::size_t i, const std::string&) {
                        Layout& layout = program.ops[i].results[0].layout;
                        std::vector<Layout::Dim> dims = layout.dims();
                        std::swap(dims[1], dims[2]);
                        layout = Layout(std::move(dims), {});
                      },
                  .result =
                      [] {
                        return [](const Here&, Sharded& value) {
                          const Shape& local = value.local();
                          const std::int64_t M = local[1], K = local[2], Q = local[3];
                          shuffle(value, [&](std::int64_t i) {
                            const std::int64_t c = i % Q, place = i / Q % (M * K),
                                               row = i / Q / M / K;
                            return (row * M * K + place % M * K + place / M) * Q + c;
                          });
                        };
                      }});
  return rows;
}

}  // namespace

std::vector<Operator> operators_of_hand_overs() {
  std::vector<Operator> rows = of_collectives();
  for (Operator& one : of_arrived_caches()) rows.push_back(std::move(one));
  return rows;
}

}  // namespace shardproof::faults
