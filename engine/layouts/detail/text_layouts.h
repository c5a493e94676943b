#pragma once

#include <string>
#include <string_view>

#include "engine/layouts/table.h"
#include "engine/layouts/writer.h"
#include "weights/base/error.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// The layouts of a text's values, from a table: of a value by its letters, of a weight by the line
/// `weights` or its own. Throws what text_programs() throws.
class TextLayouts {
 public:
  /// The arguments must outlive it.
  TextLayouts(const LayoutTable& table, const TextModel& model, const Extents& extents,
              const Torus& torus);

  /// Returns whether values with these letters have the layout of attention: those of heads and of
  /// caches.
  bool in_attention(std::string_view letters) const;
  /// Returns the layout in which a value with these letters is complete.
  Layout home(std::string_view letters) const;
  /// Returns the layout of the prefixes' caches beside that of the rows' own: N has the longest
  /// prefix that divides it of the axes in the table's line `prefix`, none without one.
  Layout of_prefixes(const Layout& cache) const;
  /// Returns the layouts of a matrix of a layer, from its resident layout to the one it is used in.
  LayoutLine matrix(const TextWeight& weight) const;
  /// Returns the table's line of a value of the text; null if it has none.
  const LayoutLine* line(const std::string& value) const;
  /// Returns the axes that the letters of `of` have in a layout, none for its other letters.
  static Layout restricted(const Layout& layout, std::string_view letters);
  /// Returns the axes of H that K has: the longest prefix that divides its extent.
  Axes shared(const Axes& axes, char letter) const;

  const Layout& residual() const { return residual_; }
  Error refused(std::string_view label, const Line& line, const std::string& why) const;

 private:
  void require_roles() const;
  bool declares(std::string_view name) const;

  const LayoutTable& table_;
  const TextModel& model_;
  const Extents& extents_;
  const Torus& torus_;
  std::string heads_;  ///< the letters of heads: H, K, and those that H is seen as
  Layout residual_, attend_;
};

}  // namespace shardproof
