#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "weights/base/error.h"

namespace shardproof {

struct PictureOptions {
  std::string title;               ///< the heading; the program's name if empty
  std::vector<std::string> notes;  ///< lines below it
  bool paper = false;              ///< drop (K−1)/K, as the paper does
  std::optional<int> chip;         ///< the example chip; else example_chip()
};

/// Most chips of a torus that a picture shows: more would be too small to read.
inline constexpr int kMostChipsInPicture = 64;

/// The chip whose blocks a picture points out: (1,0,Z-1), or the nearest there is. Its coordinates
/// differ where the torus lets them, so that blocks in another order of axes are other blocks.
int example_chip(const Torus& torus);

/// A checked program as one page: a self-contained SVG 1.1 file without scripts, fonts or links, of
/// the smallest A format that holds it with 6 point text. It has the torus, then every input and
/// every step in order: the statement in the paper's notation, the global tensor cut into blocks
/// with the chips that hold each (copies '*', summands '+'), and the index ranges that the example
/// chip holds; and for a collective both its operand's and its result's blocks, the chips that
/// talk, what one chip sends, symbolically and in numbers, and of a loop which chunks the chips of
/// the example chip's ring use, or add to, in each round.
/// Throws Error("picture_c1", ...) on a torus of more than kMostChipsInPicture chips,
/// Error("picture_c2", ...) on a program too long for A0.
std::string picture(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const ModelConfig& config,
                    const PictureOptions& options = {});

}  // namespace shardproof
