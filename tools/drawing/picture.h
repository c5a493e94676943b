#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "weights/base/error.h"

namespace shardproof {

struct PictureOptions {
  std::string title;               ///< heading; the program's name if empty
  std::vector<std::string> notes;  ///< lines below the heading
  bool paper = false;              ///< drop (K−1)/K, as the paper does
  std::optional<int> chip;         ///< example chip; default example_chip()
};

/// Maximum number of chips in a picture: more would be too small to read.
inline constexpr int kMostChipsInPicture = 64;

/// Returns the chip whose blocks a picture highlights: (1,0,Z-1), or the nearest there is. Its
/// coordinates differ where the torus allows, so that blocks in another order of axes are distinct.
int example_chip(const Torus& torus);

/// Draws a checked program as one page: a self-contained SVG 1.1 file without scripts, fonts or
/// links, of the smallest A format that holds it with 6 point text. It shows the torus, then every
/// input and every step in order: the statement in the paper's notation, the global tensor cut into
/// blocks with the chips that hold each (replicas '*', partial sums '+'), and the index ranges of
/// the example chip; for a collective also the blocks of operand and result, the communicating
/// chips, what one chip sends, symbolically and in numbers, and for a loop the chunks that the
/// chips of the example's ring use, or add to, in each round. Throws Error("picture_c1", ...) on a
/// torus of more than kMostChipsInPicture chips, Error("picture_c2", ...) on a program too long for
/// A0.
std::string picture(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const ModelConfig& config,
                    const PictureOptions& options = {});

}  // namespace shardproof
