// Faults of the collectives of a pass's steps.
#include <algorithm>
#include <utility>

#include "golden/faults/detail/moves_edits.h"

namespace shardproof::faults {
namespace {

using Strings = std::vector<std::string>;

// Axes of parameters: "xy->x".
std::pair<Axes, Axes> two_axes(const std::string& parameter) {
  const auto arrow = parameter.find("->");
  return {Axes::parse(parameter.substr(0, arrow)), Axes::parse(parameter.substr(arrow + 2))};
}

/// Each axis of a group with several chips in place of which another one, of any size, stands.
Strings other_axes(const Place& place) {
  Strings all;
  for (const Axis from : wide(place.torus, place.op().axes))
    for (const Axis to : all_axes())
      if (!place.op().axes.has(to)) all.push_back({to_char(from), '-', '>', to_char(to)});
  return all;
}
Op with_other_axis(Op op, const std::string& parameter) {
  const auto [from, to] = two_axes(parameter);
  Axes changed;
  for (const Axis axis : op.axes) changed = changed.with(from.has(axis) ? *to.begin() : axis);
  op.axes = changed;
  Axes as;
  for (const Axis axis : op.as) as = as.with(from.has(axis) ? *to.begin() : axis);
  op.as = as;
  return op;
}

/// Proper parts of a group of several axes: the axes that are still reduced over.
Strings fewer_axes(const Place& place) {
  Strings all;
  const Axes axes = wide(place.torus, place.op().axes);
  if (axes.size() < 2) return all;
  for (const Axis gone : axes) all.push_back(axes.without(Axes().with(gone)).to_string());
  return all;
}

std::optional<Moves> over_fewer(const MovesAt& at, const std::string& parameter) {
  const Axes gone = at.op.axes.without(Axes::parse(parameter));
  return keep_parts(at.right, [&](std::size_t, int chip, const Piece& piece) {
    return std::all_of(gone.begin(), gone.end(), [&](Axis axis) {
      return at.torus.coordinate(piece.from_chip, axis) == at.torus.coordinate(chip, axis);
    });
  });
}

void write_fewer(Program& program, std::size_t i, const std::string& parameter) {
  program.ops[i].axes = Axes::parse(parameter);
}

bool of_statistic(const Place& place) {
  return place.op().results[0].role.kind == Role::Kind::stat && place.site.program != "sample";
}
/// "-" at statistics of norms, or at all but those.
std::function<Strings(const Place&)> at_statistics(bool wanted) {
  return [wanted](const Place& place) {
    return of_statistic(place) == wanted ? Strings{"-"} : Strings{};
  };
}

}  // namespace

std::vector<Operator> operators_of_moves() {
  std::vector<Operator> rows{
      row_of_moves("drop-collective", "M1",
                   "the collective is missing: a chip's own block or part stands "
                   "for the whole",
                   kCollectives, at_statistics(false), dropped, write_dropped),
      row_of_moves("reduce-over-fewer-axes", "M1", "of two axes only one is reduced over",
                   kReductions, fewer_axes, over_fewer, write_fewer),
      row_of_moves("first-block-only", "M1", "of a gathered list the first block is taken for all",
                   {OpKind::all_gather}, {},
                   [](const MovesAt& at, const std::string&) {
                     return reordered(
                         at, [](std::size_t, std::size_t, std::size_t) { return std::size_t{0}; });
                   }),
      row_of_moves(
          "lose-a-part", "M1", "the sum leaves out one chip's part", kReductions,
          [](const Place&) {
            return Strings{"first", "last"};
          },
          [](const MovesAt& at, const std::string& which) {
            const auto n = static_cast<std::size_t>(at.size());
            return std::optional(keep_parts(at.right, [&](std::size_t j, int, const Piece&) {
              return j != (which == "first" ? 0 : n - 1);
            }));
          }),
      row_of_moves("half-the-group", "M1",
                   "the group is built by a wrong division: its halves sum apart", kReductions, {},
                   [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                     if (at.size() < 4) return std::nullopt;
                     const auto half = static_cast<std::size_t>(at.size()) / 2;
                     return keep_parts(at.right, [&](std::size_t j, int chip, const Piece&) {
                       return (j < half) == (own_place(at, chip) < half);
                     });
                   }),
      row_of_moves(
          "odd-ring-stops-early", "M1",
          "a ring that does two blocks a round stops after floor(X/2) rounds: of an odd group one "
          "part is left out",
          kReductions, {},
          [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
            const auto n = static_cast<std::size_t>(at.size());
            if (n < 3 || n % 2 == 0) return std::nullopt;
            return keep_parts(at.right, [&](std::size_t j, int chip, const Piece&) {
              return j != (own_place(at, chip) + 1) % n;
            });
          }),

      row_of_moves(
          "other-axis", "M3", "one mesh axis in place of another", kCollectives, other_axes,
          [](const MovesAt& at, const std::string& parameter) {
            return as_other(at, with_other_axis(at.op, parameter));
          },
          [](Program& program, std::size_t i, const std::string& parameter) {
            program.ops[i] = with_other_axis(program.ops[i], parameter);
          }),
      row_of_moves("group-of-neighbours", "M3",
                   "groups of neighbouring ranks, where the axis asks for a "
                   "stride",
                   kCollectives, {},
                   [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                     if (at.op.kind == OpKind::permute_axes) return std::nullopt;
                     Moves moves = at.right;
                     const int n = at.size();
                     for (int chip = 0; chip < at.torus.chips(); ++chip) {
                       auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
                       for (std::size_t j = 0; j < pieces.size(); ++j)
                         pieces[j].from_chip = chip / n * n + static_cast<int>(j);
                     }
                     return moves;
                   }),
      row_of_moves(
          "world-group", "M3", "the sum over all chips in place of the group's", kReductions,
          [](const Place& place) {
            return place.torus.chips() == place.torus.size(place.op().axes) ? Strings{}
                                                                            : Strings{"-"};
          },
          [](const MovesAt& at, const std::string&) {
            Moves moves = at.right;
            for (std::size_t chip = 0; chip < moves.pieces.size(); ++chip) {
              std::vector<Piece> all;
              const Piece own = at.right.pieces[chip].front();
              for (int from = 0; from < at.torus.chips(); ++from)
                all.push_back({from, own.from, own.to});
              moves.pieces[chip] = std::move(all);
            }
            return std::optional(moves);
          },
          [](Program& program, std::size_t i, const std::string&) {
            program.ops[i].axes = all_axes();
          }),

      row_of_moves("axes-reversed", "M5",
                   "the group is enumerated with its axes in the opposite order",
                   {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all}, other_orders,
                   axes_reversed, write_axes_reversed),
      row_of_moves("blocks-reversed", "M5", "chunks in the opposite order", kInOrder, {},
                   blocks_reversed),
      row_of_moves(
          "ring-index", "M5", "the chunk's index in the ring is one off", kInOrder,
          [](const Place& place) {  // in a ring of two both are one
            return place.torus.size(place.op().axes) > 2 ? Strings{"+1", "-1"} : Strings{"+1"};
          },
          [](const MovesAt& at, const std::string& by) {
            return reordered(at, [&](std::size_t j, std::size_t, std::size_t n) {
              return by == "+1" ? j + 1 : j + n - 1;
            });
          }),
      row_of_moves(
          "ring-sign", "M5",
          "the sign of the chunk index in the ring is wrong, which only rings of three and more "
          "show",
          kInOrder,
          [](const Place& place) {
            return place.torus.size(place.op().axes) < 3 ? Strings{} : Strings{"-"};
          },
          [](const MovesAt& at, const std::string&) {
            return reordered(at, [&](std::size_t j, std::size_t mine, std::size_t n) {
              return reduces(at.op) ? n - mine : 2 * mine + n - j;
            });
          }),
      row_of_moves("as-they-arrive", "M5", "chunks are put down in the order in which they arrive",
                   {OpKind::all_gather, OpKind::all_to_all}, {},
                   [](const MovesAt& at, const std::string&) {
                     return reordered(
                         at, [](std::size_t j, std::size_t mine, std::size_t) { return mine + j; });
                   }),
      row_of_moves("one-round-short", "M5",
                   "the ring ends a round early: the last chunk is the chip's own",
                   {OpKind::all_gather, OpKind::all_to_all}, {},
                   [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                     if (at.size() < 3) return std::nullopt;  // a ring of two has one round
                     return reordered(at, [](std::size_t j, std::size_t mine, std::size_t n) {
                       return j == (mine + 1) % n ? mine : j;
                     });
                   }),
      row_of_moves("zigzag", "M5",
                   "chunks in zigzag order (first, last, second, ...) read as contiguous", kInOrder,
                   {},
                   [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                     if (at.size() < 3) return std::nullopt;
                     return reordered(at, [](std::size_t j, std::size_t, std::size_t n) {
                       return j % 2 == 0 ? j / 2 : n - 1 - j / 2;
                     });
                   }),
      row_of_moves(
          "two-stage-all-to-all", "M5",
          "two all_to_alls, one axis after the others, in place of one over all: the blocks' order "
          "is another",
          {OpKind::all_to_all}, other_orders,
          [](const MovesAt& at, const std::string&) {
            Op op = at.op;
            const Axis last = op.as.begin()[op.as.size() - 1];
            op.as = Axes().with(last).with(op.as.without(Axes().with(last)));
            return as_other(at, op);
          },
          [](Program& program, std::size_t i, const std::string&) {
            Op& op = program.ops[i];
            const Axis last = op.as.begin()[op.as.size() - 1];
            op.as = Axes().with(last).with(op.as.without(Axes().with(last)));
          }),
      row_of_moves("permuted-back", "M5", "the order of axes is changed in the opposite sense",
                   {OpKind::permute_axes}, {}, axes_reversed, write_axes_reversed),
      row_of_moves("wrong-block-sliced", "M5", "a chip keeps the block of the next chip",
                   {OpKind::slice}, {},
                   [](const MovesAt& at, const std::string&) -> std::optional<Moves> {
                     const std::size_t n = static_cast<std::size_t>(at.size());
                     if (n == 1) return std::nullopt;
                     Moves moves = at.right;
                     for (int chip = 0; chip < at.torus.chips(); ++chip) {
                       const std::vector<int> group = at.group(chip);
                       const auto next =
                           static_cast<std::size_t>(group[(own_place(at, chip) + 1) % n]);
                       moves.pieces[static_cast<std::size_t>(chip)][0].from =
                           at.right.pieces[next][0].from;
                     }
                     return moves;
                   }),

      row_of_moves("statistic-of-own-shard", "M7",
                   "a norm's statistic is not reduced: each chip has its "
                   "own shard's",
                   {OpKind::all_reduce}, at_statistics(true), dropped, write_dropped),
      row_of_moves(
          "slice-before-reduce", "M8",
          "each chip's own block is cut out before the sum, so that different rows are added",
          {OpKind::reduce_scatter}, {},
          [](const MovesAt& at, const std::string&) {
            Moves moves = at.right;
            for (auto& pieces : moves.pieces)
              for (Piece& piece : pieces)
                piece.from = at.right.pieces[static_cast<std::size_t>(piece.from_chip)][0].from;
            return std::optional(moves);
          },
          [](Program& program, std::size_t i, const std::string&) {
            Op sliced = program.ops[i];
            sliced.kind = OpKind::slice;
            sliced.results[0].name += "_own";
            sliced.results[0].layout = program.declared(sliced.args[0]).layout;
            program.ops[i].kind = OpKind::all_reduce;
            program.ops[i].args[0] = sliced.results[0].name;
            program.ops.insert(program.ops.begin() + static_cast<std::ptrdiff_t>(i), sliced);
          })};
  for (Operator& one : rows)
    if (one.name == "other-axis") one.cases = "cube";
  return rows;
}

}  // namespace shardproof::faults
