#include "tools/drawing/detail/collective_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/drawing/detail/lettering.h"
#include "tools/drawing/detail/ring_grid.h"
#include "tools/drawing/svg.h"

namespace shardproof {
namespace {

// Layout in points. A column has three fields: blocks, a glyph, and a note on one chip.
constexpr double kPad = 4;
constexpr double kBlocks = 34, kBlocksWidth = 290;
constexpr double kMap = 338, kMapWidth = 104;  // communicating chips
constexpr double kNote = 450;

/// Returns the sharded dims of a layout, as labels: "H_zy".
std::vector<std::string> cut_dims(const Layout& layout, const Torus& torus) {
  std::vector<std::string> cut;
  for (const Layout::Dim& dim : layout.dims())
    if (torus.size(dim.axes) > 1)
      cut.push_back(fmt::format("{}_{}", dim.letter, dim.axes.to_string()));
  return cut;
}

/// Draws the blocks of one side of a collective, with the sharded dims beside them or, for a grid,
/// above. Returns the height.
double side(const Scene& scene, Svg& svg, double x, double y, double w, const Layout& layout,
            bool grid) {
  const std::vector<std::string> cut = cut_dims(layout, scene.torus);
  if (!grid) {
    svg.text(kBlocks - 3, y + 6.8, cut.empty() ? "whole" : cut.front(), {kNoteSize, "end"});
    scene.glyphs.blocks(svg, x, y, w, 9, layout);
    return 9;
  }
  std::string caption = cut.empty() ? "whole" : cut.front();
  if (cut.size() > 1) {
    caption += " down, ";
    for (std::size_t i = 1; i < cut.size(); ++i) caption += cut[i] + " ";
    caption += "across";
  }
  svg.text(x, y + kNoteSize - 1, caption, {kNoteSize});
  const int rows = scene.glyphs.rows(layout);
  const double row = rows <= 7 ? 7.4 : std::max(44.0 / rows, 2.4);
  scene.glyphs.blocks(svg, x, y + 7, w, row, layout);
  return 7 + row * rows;
}

std::string groups_text(const Scene& scene, const Op& op) {
  const int size = scene.torus.size(op.axes);
  const int groups = scene.torus.chips() / size;
  return fmt::format("{} group{} of {}, over {}{}", groups, groups == 1 ? "" : "s", size,
                     op.axes.to_string(), size == 1 ? ": nothing moves" : "");
}

/// Describes where the example chip's shard goes and which one it receives.
std::string partners(const Scene& scene, const Op& op) {
  int to = scene.chip, from = scene.chip;
  for (int other : scene.torus.group(scene.chip, op.axes)) {
    if (scene.torus.block(other, op.as) == scene.torus.block(scene.chip, op.axes)) to = other;
    if (scene.torus.block(other, op.axes) == scene.torus.block(scene.chip, op.as)) from = other;
  }
  return fmt::format("sends to {}, gets from {}", scene.torus.name(to), scene.torus.name(from));
}

}  // namespace

Card collective_card(const Scene& scene, const Op& op, std::size_t step) {
  const ValueDecl& result = op.results[0];
  const Type& after = scene.types.at(result.name);
  const Type& before = scene.types.at(op.args[0]);
  const StepCost& cost = scene.ledger.steps[step];
  Svg svg;
  svg.open("value-" + result.name, "value");

  const std::string statement =
      fmt::format("{} : {} = {}", result.name, result.layout.to_string(), op.to_string());
  const double share = scene.bytes > 0 ? 100 * scene.sent(step) * cost.wire_bytes / scene.bytes : 0;
  const std::string sends = fmt::format(
      "sends {} = {} elements, {} bytes ({:.0f} %)", formula(cost, scene.options.paper),
      number_text(scene.sent(step)), number_text(scene.sent(step) * cost.wire_bytes), share);
  double y = write_lines(svg, kPad, 2, wrapped(statement, kColumn - 3 * kPad - 12, kStatementSize),
                         kStatementSize, kStatementLine, true);
  const bool beside =
      y < 2 + 1.5 * kStatementLine &&
      Svg::width(statement, kStatementSize) + Svg::width(sends, kNoteSize) < kColumn - 4 * kPad;
  if (!beside) y += kNoteLine;
  svg.text(kColumn - kPad, y - 2, sends, {kNoteSize, "end"});
  y += 1;

  double bottom = y;
  const bool grid = scene.glyphs.is_grid(before.layout) || scene.glyphs.is_grid(after.layout);
  svg.open("", "operand");
  const double half = 0.46 * kBlocksWidth;
  bottom = std::max(
      bottom, y + side(scene, svg, kBlocks, y, grid ? half : kBlocksWidth, before.layout, grid));
  svg.close();
  if (grid) {
    svg.text(kBlocks + kBlocksWidth / 2, y + 13, "->", {kNoteSize, "middle"});
    bottom = std::max(
        bottom, y + side(scene, svg, kBlocks + kBlocksWidth - half, y, half, after.layout, grid));
  } else {
    bottom += 3 + side(scene, svg, kBlocks, bottom + 3, kBlocksWidth, after.layout, grid);
  }
  bottom = std::max(bottom, y + scene.glyphs.group(svg, kMap, y, kMapWidth, op.axes));

  double note = y - 1;
  const auto say = [&](std::string_view text) {
    note = write_lines(svg, kNote, note, wrapped(text, kColumn - kNote - 1, kNoteSize), kNoteSize,
                       kNoteLine);
  };
  say(groups_text(scene, op));
  if (op.kind == OpKind::permute_axes) say(partners(scene, op));
  svg.open("", "held-before");
  say("had " + scene.glyphs.held(before));
  svg.close();
  svg.open("", "held");
  say("has " + scene.glyphs.held(after));
  svg.close();
  say(fmt::format("({}) {}", scene.local_text(after), result.role.to_string()));
  bottom = std::max(bottom, note);
  if (op.loop != Loop::none) bottom = ring_grid(scene, svg, op, bottom + 2);
  bottom += 3;
  svg.close();

  Svg card;
  card.rect(0, 0, kColumn, bottom - 1, "fill=\"#f3f3f3\"");
  card.rect(0, 0, 1.5, bottom - 1, "fill=\"#0072b2\"");
  card.append(svg.take());
  return {bottom, card.take()};
}

}  // namespace shardproof
