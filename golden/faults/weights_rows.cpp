// Faults of what chips hold of a weight: another shard, another order, another layer's.
#include <algorithm>
#include <memory>

#include "golden/faults/detail/edits.h"
#include "golden/faults/detail/numbers.h"
#include "golden/faults/operator.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;
using Wanted = std::function<bool(const Place&)>;

WeightKind kind_of(const Place& place) { return place.weight().kind; }
bool is_matrix(const Place& place) { return kind_of(place) == WeightKind::matrix; }
bool is_scale(const Place& place) { return kind_of(place) == WeightKind::scale; }
bool is_vector(const Place& place) {
  return kind_of(place) == WeightKind::gain || kind_of(place) == WeightKind::bias;
}

/// The dims of a weight that are cut along several chips.
Strings sharded_dims(const Place& place, const Wanted& wanted, int least = 2) {
  Strings all;
  if (!place.is_weight() || !wanted(place)) return all;
  for (const Layout::Dim& dim : place.declared().layout.dims())
    if (place.torus.size(dim.axes) >= least) all.emplace_back(1, dim.letter);
  return all;
}

/// Each chip takes, along a dim, the block order(own, n) in place of its own.
template <class Order>
WeightEdit with_blocks(char letter, Order order) {
  return [letter, order](const Case&, int, Sharded& placed) {
    if (!placed.layout().find(letter)) return;
    const Axes axes = placed.layout().axes(letter);
    const int n = placed.torus().size(axes);
    take(placed, [&](int chip) {
      const int own = placed.torus().block(chip, axes);
      return placed.torus().group(chip, axes)[static_cast<std::size_t>(order(own, n))];
    });
  };
}

/// A row of blocks in another order, for the weights that are wanted.
template <class Order>
Operator blocks(std::string_view name, std::string_view fault_class, std::string_view what,
                const Wanted& wanted, Order order, int least = 2) {
  Operator row{.name = name, .fault_class = fault_class, .what = what};
  if (fault_class == "M12") row.cases = "int8";
  row.parameters = [wanted, least](const Place& place) {
    return sharded_dims(place, wanted, least);
  };
  row.weight = [order](const std::string& dim) { return with_blocks(dim[0], order); };
  return row;
}

/// A row that a dim's axes are stored in another order, for the weights that are wanted.
Operator other_order(std::string_view name, std::string_view fault_class, std::string_view what,
                     const Wanted& wanted) {
  Operator row{.name = name, .fault_class = fault_class, .what = what};
  if (fault_class == "M12") row.cases = "int8";
  row.parameters = [wanted](const Place& place) {
    Strings all;
    for (const std::string& dim : sharded_dims(place, wanted, 4))
      if (wide(place.torus, place.declared().layout.axes(dim[0])).size() > 1) all.push_back(dim);
    return all;
  };
  row.written = [](Program& program, std::size_t i, const std::string& dim) {
    Layout& layout = program.inputs[i].layout;
    const std::size_t at = *layout.find(dim[0]);
    layout = layout.with_axes(at, reversed(layout.dims()[at].axes));
  };
  row.weight = [](const std::string& dim) -> WeightEdit {
    return [letter = dim[0]](const Case&, int, Sharded& placed) {
      if (!placed.layout().find(letter)) return;
      const Axes declared = placed.layout().axes(letter), stored = reversed(declared);
      take(placed, [&](int chip) {
        const auto place = static_cast<std::size_t>(placed.torus().block(chip, stored));
        return placed.torus().group(chip, declared)[place];
      });
    };
  };
  return row;
}

/// The dims of a weight of which a chip has at least `least` rows.
Strings dims_with_rows(const Place& place, const Wanted& wanted, std::int64_t least) {
  Strings all;
  if (!place.is_weight() || !wanted(place)) return all;
  const Shape local = place.local(place.declared().name);
  for (std::size_t d = 0; d < local.size(); ++d)
    if (local[d] >= least) all.emplace_back(1, place.declared().layout.dims()[d].letter);
  return all;
}

void transpose(Sharded& placed) {
  const Shape& local = placed.local();
  const std::int64_t n = local[local.size() - 1];
  shuffle(placed, [&](std::int64_t i) { return i / (n * n) * n * n + i % n * n + i / n % n; });
}

bool is_square(const Place& place) {
  if (!place.is_weight() || !is_matrix(place)) return false;
  const Shape local = place.local(place.declared().name);
  return local.size() == 2 && local[0] == local[1] && local[0] > 1;
}

void set_all_to_one(Sharded& placed) {
  const Sharded from = placed;
  on_numbers(from, placed, [&](const auto&, const auto& to) {
    for (int chip = 0; chip < from.torus().chips(); ++chip)
      for (auto& v : to(chip)) set_one(from, v);
  });
}

std::vector<Operator> of_matrices() {
  std::vector<Operator> rows{
      blocks("next-shard", "M6", "each chip loads the shard after its own", is_matrix,
             [](int own, int n) { return (own + 1) % n; }),
      blocks("shard-0-for-all", "M6", "every chip loads the first shard", is_matrix,
             [](int, int) { return 0; }),
      blocks(
          "shard-size-doubled", "M6", "the offset of a shard is computed with twice its size",
          is_matrix, [](int own, int n) { return 2 * own % n; }, 3),
      blocks(
          "tail-clamped", "M6",
          "the last shard's offset is clamped, so that it is the one "
          "before it",
          is_matrix, [](int own, int n) { return std::min(own, n - 2); }, 3),
      other_order("stored-in-other-order", "M6",
                  "the weight is stored with its axes in the opposite order", is_matrix),
      blocks("vector-shard-0", "M6", "every chip loads the first shard of a gain or a bias",
             is_vector, [](int, int) { return 0; })};
  rows.back().cases = "family";
  rows.push_back(
      {.name = "interleaved",
       .fault_class = "M6",
       .what = "rows that are stored interleaved are read as contiguous",
       .parameters = [](const Place& place) { return dims_with_rows(place, is_matrix, 3); },
       .weight = [](const std::string& dim) -> WeightEdit {
         return [letter = dim[0]](const Case&, int, Sharded& placed) {
           order_rows(placed, letter, [](std::int64_t r, std::int64_t n) {
             const std::int64_t half = (n + 1) / 2;
             return r % 2 == 0 ? r / 2 : half + r / 2;
           });
         };
       }});
  rows.push_back(
      {.name = "one-row-off",
       .fault_class = "M6",
       .what = "a shard is cut one row too late",
       .parameters = [](const Place& place) { return dims_with_rows(place, is_matrix, 2); },
       .weight = [](const std::string& dim) -> WeightEdit {
         return [letter = dim[0]](const Case&, int, Sharded& placed) {
           order_rows(placed, letter,
                      [](std::int64_t r, std::int64_t n) { return std::min(r + 1, n - 1); });
         };
       }});
  rows.push_back(
      {.name = "shard-transposed",
       .fault_class = "M6",
       .what = "a square shard is transposed",
       .parameters = [](const Place& place) { return is_square(place) ? Strings{"-"} : Strings{}; },
       .weight = [](const std::string&) -> WeightEdit {
         return [](const Case&, int, Sharded& placed) { transpose(placed); };
       }});
  rows.push_back({.name = "weight-of-other-layer",
                  .fault_class = "M6",
                  .what = "layer 1 loads what belongs to layer 0",
                  .parameters =
                      [](const Place& place) {
                        return place.is_weight() && is_matrix(place) && place.weight().per_layer &&
                                       place.source_case().model.layers > 1 && place.in_layer(0) &&
                                       place.in_layer(1)
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .weight = [](const std::string&) -> WeightEdit {
                    auto first = std::make_shared<std::map<std::string, Sharded>>();
                    return [first](const Case&, int layer, Sharded& placed) {
                      const std::string layout = placed.layout().to_string();
                      if (layer == 0) first->insert_or_assign(layout, placed);
                      if (const auto known = first->find(layout);
                          layer == 1 && known != first->end())
                        placed = known->second;
                    };
                  }});
  rows.push_back({.name = "one-chip-loads-next",
                  .fault_class = "M14",
                  .what = "one chip alone loads the shard after its own",
                  .parameters = [](const Place& place) { return sharded_dims(place, is_matrix); },
                  .weight = [](const std::string& dim) -> WeightEdit {
                    return [letter = dim[0]](const Case&, int, Sharded& placed) {
                      if (!placed.layout().find(letter)) return;
                      const Axes axes = placed.layout().axes(letter);
                      const int last = placed.torus().chips() - 1;
                      take(placed, [&](int chip) {
                        if (chip != last) return chip;
                        return placed.torus().group(chip, axes)[0];
                      });
                    };
                  }});
  return rows;
}

std::vector<Operator> of_placed_scales() {
  std::vector<Operator> rows{
      blocks("scale-of-chip-0", "M12", "every chip uses the first shard's scales", is_scale,
             [](int, int) { return 0; }),
      blocks("scale-group-shifted", "M12", "the index of the scales' block is one off", is_scale,
             [](int own, int n) { return (own + 1) % n; }),
      other_order("scale-in-other-order", "M12",
                  "scales are stored with their axes in the opposite order", is_scale)};
  rows.push_back(
      {.name = "scale-channels-reversed",
       .fault_class = "M12",
       .what = "the scales of a shard are read in the opposite order",
       .cases = "int8",
       .parameters = [](const Place& place) { return dims_with_rows(place, is_scale, 2); },
       .weight = [](const std::string& dim) -> WeightEdit {
         return [letter = dim[0]](const Case&, int, Sharded& placed) {
           order_rows(placed, letter, [](std::int64_t r, std::int64_t n) { return n - 1 - r; });
         };
       }});
  rows.push_back({.name = "int8-drops-norm-scale",
                  .fault_class = "M12",
                  .what = "layers with int8 weights leave out the norm's learned scale",
                  .cases = "int8",
                  .parameters =
                      [](const Place& place) {
                        return place.is_weight() && kind_of(place) == WeightKind::gain &&
                                       place.weight().per_layer
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .weight = [](const std::string&) -> WeightEdit {
                    return [](const Case&, int, Sharded& placed) { set_all_to_one(placed); };
                  }});
  rows.push_back({.name = "swish-factor-missing",
                  .fault_class = "M11",
                  .what = "the last channels of the gate lack swish's factor 1/2 that the others "
                          "have folded in",
                  .cases = "base2",
                  .parameters =
                      [](const Place& place) {
                        return place.is_weight() && place.site.value == "w_gate" &&
                                       place.declared().layout.find('F')
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .weight = [](const std::string&) -> WeightEdit {
                    return [](const Case&, int, Sharded& placed) {
                      const Axes axes = placed.layout().axes('F');
                      const int last = placed.torus().size(axes) - 1;
                      Sharded doubled = placed;
                      multiply(doubled, 2);
                      const Sharded right = placed;
                      on_numbers(doubled, placed, [&](const auto& chips, const auto& to) {
                        for (int chip = 0; chip < right.torus().chips(); ++chip) {
                          if (right.torus().block(chip, axes) != last) continue;
                          const auto out = to(chip);
                          for (std::size_t i = 0; i < out.size(); ++i)
                            out[i] = chips[static_cast<std::size_t>(chip)][i];
                        }
                      });
                    };
                  }});
  rows.push_back({.name = "padded-heads-not-zero",
                  .fault_class = "M11",
                  .what = "the rows of W_O of padded heads hold ones in place of zeros",
                  .cases = "padded",
                  .parameters =
                      [](const Place& place) {
                        return place.is_weight() && is_matrix(place) &&
                                       place.weight().dims.starts_with('H') &&
                                       place.source_case().pad_heads > 0
                                   ? Strings{"-"}
                                   : Strings{};
                      },
                  .weight = [](const std::string&) -> WeightEdit {
                    return [](const Case& c, int, Sharded& placed) {
                      const std::size_t dim = *placed.layout().find('H');
                      const Extents3 e = around(placed.local(), dim);
                      const Axes axes = placed.layout().dims()[dim].axes;
                      const Sharded from = placed;
                      on_numbers(from, placed, [&](const auto&, const auto& to) {
                        for (int chip = 0; chip < from.torus().chips(); ++chip) {
                          const auto out = to(chip);
                          const std::int64_t first = from.torus().block(chip, axes) * e.own;
                          for (std::size_t i = 0; i < out.size(); ++i) {
                            const std::int64_t h =
                                first + static_cast<std::int64_t>(i) / e.inner % e.own;
                            if (h >= c.model.H) set_one(from, out[i]);
                          }
                        }
                      });
                    };
                  }});
  return rows;
}

/// The tables of RoPE are weights, too.
std::vector<Operator> of_tables() {
  const auto is_table = [](const Place& place) {
    return place.is_weight() && kind_of(place) == WeightKind::rope_table;
  };
  std::vector<Operator> rows;
  rows.push_back(
      {.name = "frequencies-shifted",
       .fault_class = "M9",
       .what = "the table of angles is read one frequency off",
       .parameters =
           [is_table](const Place& place) { return is_table(place) ? Strings{"-"} : Strings{}; },
       .weight = [](const std::string&) -> WeightEdit {
         return [](const Case&, int, Sharded& placed) {
           order_rows(placed, placed.layout().dims()[1].letter,
                      [](std::int64_t r, std::int64_t n) { return (r + 1) % n; });
         };
       }});
  rows.push_back(
      {.name = "table-one-row-off",
       .fault_class = "M9",
       .what = "the table of angles begins at position 1",
       .parameters =
           [is_table](const Place& place) { return is_table(place) ? Strings{"-"} : Strings{}; },
       .weight = [](const std::string&) -> WeightEdit {
         return [](const Case&, int, Sharded& placed) {
           order_rows(placed, placed.layout().dims()[0].letter,
                      [](std::int64_t r, std::int64_t n) { return std::min(r + 1, n - 1); });
         };
       }});
  return rows;
}

}  // namespace

std::vector<Operator> operators_of_weights() {
  std::vector<Operator> rows = of_matrices();
  for (auto&& part : {of_placed_scales(), of_tables()})
    for (const Operator& one : part) rows.push_back(one);
  return rows;
}

}  // namespace shardproof::faults
