#include "tools/drawing/detail/value_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tools/drawing/detail/lettering.h"
#include "tools/drawing/svg.h"

namespace shardproof {
namespace {

// Layout in points. A row has three fields: statement, glyph, and a note on one chip.
constexpr double kPad = 4;
constexpr double kRowGlyph = 288, kRowGlyphWidth = 106, kRowNote = 402;

}  // namespace

Card value_card(const Scene& scene, const ValueDecl& result, std::string_view before,
                std::string_view call) {
  const Type& type = scene.types.at(result.name);
  Svg svg;
  svg.open("value-" + result.name, "value");
  const std::string statement =
      fmt::format("{}{} : {}{}", before, result.name, result.layout.to_string(), call);
  double bottom =
      write_lines(svg, kPad, 1.5, wrapped(statement, kRowGlyph - 2 * kPad - 12, kStatementSize),
                  kStatementSize, kStatementLine, true);
  const int rows = scene.glyphs.rows(type.layout);
  const double row = rows <= 6 ? 7 : std::max(32.0 / rows, 2.0);
  scene.glyphs.blocks(svg, kRowGlyph, 2, kRowGlyphWidth, row, type.layout);
  bottom = std::max(bottom, 2 + rows * row);
  const std::string note = fmt::format("{} ({}) {}", scene.glyphs.held(type),
                                       scene.local_text(type), result.role.to_string());
  bottom =
      std::max(bottom, write_lines(svg, kRowNote, 1.8, wrapped(note, kColumn - kRowNote, kNoteSize),
                                   kNoteSize, kNoteLine));
  bottom += 1;
  svg.line(0, bottom, kColumn, bottom, "stroke=\"#ccc\" stroke-width=\"0.4\"");
  svg.close();
  return {bottom, svg.take()};
}

Card local_card(const Scene& scene, const Op& op) {
  if (op.results.size() == 1) return value_card(scene, op.results[0], "", " = " + op.to_string());
  Svg svg;
  double y = 0;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    const bool last = i + 1 == op.results.size();
    const Card card = value_card(scene, op.results[i], "", last ? " = " + op.to_string() : ",");
    svg.append_at(0, y, card.elements);
    y += card.height;
  }
  return {y, svg.take()};
}

}  // namespace shardproof
