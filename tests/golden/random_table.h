#pragma once

#include <fmt/format.h>

#include <string>

#include "engine/layouts/table.h"
#include "tests/engine/random_layout.h"

namespace shardproof {

inline std::string subscripted(char letter, const Axes& axes) {
  return Layout({{letter, axes}}, {}).to_string();
}

/// A table with its axes anywhere, most often one that can be lowered: an axis cuts the stream's
/// rows, or E of the weights, or their F and H, or nothing; the steps on the way have it anywhere
/// else. Rows are the batch, or with `positions` as often L. One in eight uses an axis for rows and
/// weights alike, and must be refused.
inline std::string draw_table(const std::string& name, bool positions = false) {
  const char row = positions && draw_int(0, 1) == 0 ? 'L' : 'B';
  std::vector<Axes> roles = draw_bins(4);
  if (draw_int(0, 7) == 0) roles[3] = roles[3].with(roles[1]);
  const Axes &rows = roles[1], &e = roles[2], &wide = roles[3];
  const auto layout = [&](const std::string& letters, std::string free) {
    if (free[0] == 'B') free[0] = row;
    Layout made = Layout::parse(letters);
    const std::vector<Axes> bins = draw_bins(static_cast<int>(free.size()) + 1);
    for (std::size_t i = 0; i < free.size(); ++i)
      made = made.with_axes(*made.find(free[i]), bins[i + 1]);
    return made.to_string();
  };
  const auto sometimes = [](const std::string& text) {
    return draw_int(0, 2) == 0 ? text : std::string();
  };
  const std::string stream =
      (row == 'B' ? subscripted('B', rows) + "L" : "B" + subscripted('L', rows)) +
      subscripted('E', draw_int(0, 3) == 0 ? e : shuffled(e));
  const std::string used =
      fmt::format("{} {} {}", subscripted('E', shuffled(e)), subscripted('F', shuffled(wide)),
                  subscripted('H', shuffled(wide)));
  const std::vector<Axes> rest = draw_bins(3);
  std::string text = fmt::format("layouts {}\n", name);
  if (draw_int(0, 2) == 0)
    text += fmt::format("in : {0}\nnorm : {1} -> {2}\n", layout("BLE", "BE"), layout("BLE", "BE"),
                        stream);
  else
    text += fmt::format("in : {} -> {}{}\n", layout("BLE", "BE"),
                        sometimes(layout("BLE", "BE") + " -> "), stream);
  text += fmt::format("weights : {}{}\n",
                      sometimes(fmt::format("{} {} {} -> ", subscripted('E', rest[1]),
                                            subscripted('F', rest[2]), subscripted('H', rest[2]))),
                      used);
  text +=
      fmt::format("hidden : {}{}\n", layout("BLF", "BF"), sometimes(" -> " + layout("BLF", "BF")));
  const Layout attend = Layout::parse(layout("BLHQ", "BH"));
  text += fmt::format("attend : {}\n", attend.to_string());
  // Of shared prefixes the first axes of the batch, and the heads said or left out.
  Axes first;
  for (const Axis axis : attend.axes('B')) {
    if (draw_int(0, 1) == 0) break;
    first = first.with(axis);
  }
  const Axes heads = draw_int(0, 1) == 0 ? attend.axes('H') : Axes();
  text += sometimes(fmt::format(
      "prefix : {}\n", Layout({{'N', first}, {'T', {}}, {'K', heads}, {'Q', {}}}, {}).to_string()));
  text += sometimes(fmt::format("q : {}\n", layout("BLHQ", "BHQ")));
  text += sometimes(fmt::format("k : {}\n", layout("BLKQ", "BKQ")));
  text += sometimes(fmt::format("attn : {}\n", layout("BLHQ", "BHQ")));
  text += sometimes(fmt::format("block_out : {}\n", layout("BLE", "BE")));
  return text;
}

}  // namespace shardproof
