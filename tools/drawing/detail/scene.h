#pragma once

#include <map>
#include <string>

#include "engine/program/count.h"
#include "engine/program/typing.h"
#include "tools/drawing/detail/glyphs.h"
#include "tools/drawing/picture.h"

namespace shardproof {

/// What every card of a picture is drawn from. All that it is made of outlives it.
struct Scene {
  Scene(const Program& of_program, const std::map<std::string, Type>& of_types,
        const Torus& on_torus, const Numerics& numerics, const ModelConfig& config,
        const PictureOptions& with_options);

  const std::string& heading() const;
  /// Elements that a chip sends in one step.
  double sent(std::size_t step) const;
  /// "24x1x96": the shape on one chip.
  std::string local_text(const Type& type) const;

  const Program& program;
  const std::map<std::string, Type>& types;
  const Torus& torus;
  const PictureOptions& options;
  int chip;  ///< the example
  Glyphs glyphs;
  Ledger ledger;
  int collectives = 0;
  double elements = 0, bytes = 0;  ///< sent by a chip in all of them
};

}  // namespace shardproof
