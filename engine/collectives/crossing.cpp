#include "engine/collectives/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

/// Maps each block of a tensor, numbered over all dims, to the chips of a torus that hold it.
class Holders {
 public:
  Holders(const Torus& torus, const Layout& layout) {
    std::size_t blocks = 1;
    for (const Layout::Dim& dim : layout.dims())
      blocks *= static_cast<std::size_t>(torus.size(dim.axes));
    chips_.resize(blocks);
    turns_.resize(blocks, 0);
    for (int chip = 0; chip < torus.chips(); ++chip) {
      std::size_t number = 0;
      for (const Layout::Dim& dim : layout.dims())
        number = number * static_cast<std::size_t>(torus.size(dim.axes)) +
                 static_cast<std::size_t>(torus.block(chip, dim.axes));
      chips_[number].push_back(chip);
    }
  }

  /// The holder whose turn it is to send this block.
  int next(std::int64_t block) {
    const auto number = static_cast<std::size_t>(block);
    return chips_[number][turns_[number]++ % chips_[number].size()];
  }

 private:
  std::vector<std::vector<int>> chips_;
  std::vector<std::size_t> turns_;
};

/// How one dim is cut on the source and on the target.
struct Cut {
  std::int64_t blocks_there;
  std::int64_t units_there, units_here;  // units per block
};

void require_crosses(const Layout& from, const Layout& to) {
  const auto refuse = [&](std::string_view why) {
    throw Error("crossing_c1", fmt::format("no tensor goes from {} to {} of another torus: {}",
                                           from.to_string(), to.to_string(), why));
  };
  if (from.letters() != to.letters())
    refuse(fmt::format("the dims differ; legal: {} in this order, with any axes", from.letters()));
  if (from.is_partial() || to.is_partial())
    refuse("sums that are not complete stay on their torus; legal: no partialsum");
}

}  // namespace

Moves crossing_moves(const Torus& source, const Layout& from, const Torus& target, const Layout& to,
                     const Shape& shape) {
  require_crosses(from, to);
  const Shape there = local_shape(from, shape, source), here = local_shape(to, shape, target);
  std::vector<Cut> cuts;
  Shape unit;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t a = source.size(from.dims()[d].axes), b = target.size(to.dims()[d].axes);
    const std::int64_t units = std::lcm(a, b);
    cuts.push_back({a, units / a, units / b});
    unit.push_back(shape[d] / units);
  }
  Holders holders(source, from);
  Moves moves{there, here, unit,
              PerChip<std::vector<Piece>>(static_cast<std::size_t>(target.chips()))};
  for (int chip = 0; chip < target.chips(); ++chip) {
    std::vector<Piece>& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    std::map<std::int64_t, int> senders;  // sender of each block that this chip pulls from
    Shape index(shape.size(), 0);         // index of a unit in the chip's own block
    for (bool more = true; more;) {
      std::int64_t block = 0;
      Piece piece{0, 0, 0};
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const Cut& cut = cuts[d];
        const std::int64_t place =
            target.block(chip, to.dims()[d].axes) * cut.units_here + index[d];
        block = block * cut.blocks_there + place / cut.units_there;
        piece.from = piece.from * there[d] + place % cut.units_there * unit[d];
        piece.to = piece.to * here[d] + index[d] * unit[d];
      }
      const auto [sender, is_first] = senders.try_emplace(block, 0);
      if (is_first) sender->second = holders.next(block);
      piece.from_chip = sender->second;
      pieces.push_back(piece);
      more = false;
      for (std::size_t d = shape.size(); !more && d-- > 0;) {
        more = ++index[d] < cuts[d].units_here;
        if (!more) index[d] = 0;
      }
    }
  }
  return moves;
}

std::int64_t pulled(const Moves& crossing) {
  std::int64_t pieces = 0;
  for (std::size_t chip = 0; chip < crossing.pieces.size(); ++chip)
    pieces += std::ssize(std::as_const(crossing.pieces)[chip]);
  return pieces * element_count(crossing.block);
}

std::int64_t sent(const Moves& crossing, int chip) {
  std::int64_t pieces = 0;
  for (const std::vector<Piece>& of_chip : std::as_const(crossing.pieces))
    pieces += std::count_if(of_chip.begin(), of_chip.end(),
                            [&](const Piece& piece) { return piece.from_chip == chip; });
  return pieces * element_count(crossing.block);
}

}  // namespace shardproof
