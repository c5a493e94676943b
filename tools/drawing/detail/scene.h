#pragma once

#include <map>
#include <string>

#include "engine/program/count.h"
#include "engine/program/typing.h"
#include "tools/drawing/detail/glyphs.h"
#include "tools/drawing/picture.h"

namespace shardproof {

/// Common input of all cards of a picture. Everything it refers to must outlive it.
struct Scene {
  Scene(const Program& of_program, const std::map<std::string, Type>& of_types,
        const Torus& on_torus, const Numerics& numerics, const ModelConfig& config,
        const PictureOptions& with_options);

  const std::string& heading() const;
  /// Returns the elements that a chip sends in one step.
  double sent(std::size_t step) const;
  /// Formats the shape on one chip: "24x1x96".
  std::string local_text(const Type& type) const;

  const Program& program;
  const std::map<std::string, Type>& types;
  const Torus& torus;
  const PictureOptions& options;
  int chip;  ///< the example chip
  Glyphs glyphs;
  Ledger ledger;
  int collectives = 0;
  double elements = 0, bytes = 0;  ///< sent by a chip in all collectives
};

}  // namespace shardproof
