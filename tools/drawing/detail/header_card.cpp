#include "tools/drawing/detail/header_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/drawing/detail/lettering.h"
#include "tools/drawing/svg.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

/// Returns " d_model", the meaning of a dim letter; those of a text's model are its own.
std::string meaning(char letter, const TextModel* text) {
  if (const TextDim* const dim = text == nullptr ? nullptr : text->text().dim(letter))
    return dim->words.empty() ? "" : " " + dim->words;
  constexpr std::pair<char, std::string_view> kWords[] = {
      {'B', "batch"},      {'L', "positions"},  {'M', "cached"},      {'E', "d_model"},
      {'F', "d_ff"},       {'H', "heads"},      {'K', "kv heads"},    {'Q', "d_head"},
      {'V', "vocabulary"}, {'C', "candidates"}, {'S', "outer heads"}, {'R', "inner heads"},
      {'W', "words"},      {'P', "RoPE rows"},  {'J', "RoPE pairs"}};
  for (const auto& [known, role] : kWords)
    if (known == letter) return " " + std::string(role);
  return "";
}

/// Returns the extents of all dim letters, in order of appearance: "B batch=24, E d_model=96".
std::string extents(const Scene& scene) {
  std::vector<std::pair<char, std::vector<std::int64_t>>> seen;
  const auto see = [&](const ValueDecl& result) {
    const Type& type = scene.types.at(result.name);
    for (std::size_t i = 0; i < type.layout.rank(); ++i) {
      const char letter = type.layout.dims()[i].letter;
      auto at = std::find_if(seen.begin(), seen.end(),
                             [&](const auto& entry) { return entry.first == letter; });
      if (at == seen.end()) at = seen.insert(seen.end(), {letter, {}});
      if (std::find(at->second.begin(), at->second.end(), type.shape[i]) == at->second.end())
        at->second.push_back(type.shape[i]);
    }
  };
  for (const ValueDecl& input : scene.program.inputs) see(input);
  for (const Op& op : scene.program.ops)
    for (const ValueDecl& result : op.results) see(result);
  const auto* const of_text = static_cast<const TextModel*>(scene.program.rows.get());
  std::string text;
  for (const auto& [letter, values] : seen)
    text += fmt::format("{}{}{}={}", text.empty() ? "" : ", ", letter, meaning(letter, of_text),
                        fmt::join(values, ","));
  return text;
}

/// Draws a sample block of a legend line.
void sample(Svg& svg, double x, double y, const std::string& label, bool hatched, bool outlined) {
  svg.rect(x, y, 14, 7.4, "fill=\"#d6d6d6\" stroke=\"#555\" stroke-width=\"0.4\"");
  if (hatched) svg.rect(x, y, 14, 7.4, "fill=\"url(#partial)\"");
  if (outlined) svg.rect(x, y, 14, 7.4, "fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"");
  svg.text(x + 7, y + 5.9, label, {6, "middle"});
}

}  // namespace

Card header_card(const Scene& scene) {
  Svg svg;
  double y = 0;
  for (const std::string& line : wrapped(scene.heading(), kColumn, 13)) {
    svg.text(0, y + 12, line, {13, "start", "#000", true});
    y += 16;
  }
  std::vector<std::string> notes = scene.options.notes;
  notes.push_back(extents(scene));
  notes.push_back(
      fmt::format("each chip sends {} elements, {} bytes in {} collectives; {} FLOPs a chip",
                  number_text(scene.elements), number_text(scene.bytes), scene.collectives,
                  number_text(static_cast<double>(scene.ledger.flops()) / scene.torus.chips())));
  for (const std::string& note : notes)
    y = write_lines(svg, 0, y, wrapped(note, kColumn - 12, kStatementSize), kStatementSize,
                    kStatementLine, true);
  y += 5;

  constexpr double kTorus = 262;
  const double map = scene.glyphs.legend(svg, 0, y, kTorus);
  const double x = kTorus + 12;
  double row = y;
  const auto entry = [&](std::string_view text) {
    const double bottom = write_lines(svg, x + 20, row, wrapped(text, kColumn - x - 20, kNoteSize),
                                      kNoteSize, kNoteLine);
    row = std::max(bottom, row + 8.6) + 1;
  };
  sample(svg, x, row, "102", false, false);
  entry("a block on chip (1,0,2) alone; hue is z, paleness y, as left");
  sample(svg, x, row, "*02", false, false);
  entry("the same block copied on every x of (x,0,2)");
  sample(svg, x, row, "+02", true, false);
  entry("hatched: partial sums on every x of (x,0,2), not yet added");
  sample(svg, x, row, "", false, true);
  entry(fmt::format("the example chip {}; index ranges are what it holds",
                    scene.torus.name(scene.chip)));
  svg.rect(x, row, 7, 7.4, "fill=\"#000\"");
  svg.rect(x + 7, row, 7, 7.4, "fill=\"#0072b2\"");
  entry("who talks: the example chip and its group, numbered in block order");
  const Axes order = Axes::parse("zyx");
  write_lines(
      svg, x, row,
      wrapped(fmt::format("F_zyx: chip (x,y,z) holds block (z*Y+y)*X+x, so {} holds {}",
                          scene.torus.name(scene.chip), scene.torus.block(scene.chip, order)),
              kColumn - x, kNoteSize),
      kNoteSize, kNoteLine);
  row += kNoteLine;
  return {std::max(y + map, row) + 6, svg.take()};
}

}  // namespace shardproof
