#include "tools/report/chip_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

using dump::Row;
using dump::WrongPart;

int rank_of(const Comparison& of, const Torus& torus, int chip) {
  return of.claim.mesh.rank(torus, chip);
}

std::string error_text(const Row& row, const WrongPart& part) {
  return fmt::format("<span class=\"wrong\">✗ {:.1e}</span>",
                     bounds::relative(part.off, row.extent.scale));
}

constexpr const char* kRight = "<span class=\"right\">✓</span>";
constexpr const char* kMissing = "<span class=\"none\">·</span>";

/// Returns "F 2 of 4, H 0 of 2": which block of each dim.
std::string blocks_text(const std::vector<std::pair<Layout::Dim, int>>& blocks,
                        const Torus& torus) {
  std::string out;
  for (const auto& [dim, block] : blocks)
    out += fmt::format("{}{} {} of {}", out.empty() ? "" : ", ", dim.letter, block,
                       torus.size(dim.axes));
  return out;
}

}  // namespace

std::string mesh_grid(const Comparison& of, const Row& row) {
  const dump::DumpedValue& dumped = of.dumped(row);
  if (dumped.whole) return "";
  const Torus& torus = dumped.torus;
  std::string out = "<div class=\"panels\" id=\"mesh\">\n";
  const int X = torus.size(Axis::x), Y = torus.size(Axis::y), Z = torus.size(Axis::z);
  for (int z = 0; z < Z; ++z) {
    out += fmt::format("<table class=\"grid\">\n<tr><th>z={}</th>", z);
    for (int y = 0; y < Y; ++y) out += fmt::format("<th>y={}</th>", y);
    out += "</tr>\n";
    for (int x = 0; x < X; ++x) {
      out += fmt::format("<tr><th>x={}</th>", x);
      for (int y = 0; y < Y; ++y) {
        const int chip = (x * Y + y) * Z + z;
        const auto part = row.wrong_parts.find(chip);
        const bool wrong = part != row.wrong_parts.end();
        const dump::Numbers& shard = dumped.shards[static_cast<std::size_t>(chip)];
        out += fmt::format("<td title=\"chip {}, rank {}: {} of {} elements wrong\">{}{}</td>",
                           escaped(torus.name(chip)), rank_of(of, torus, chip),
                           wrong ? part->second.wrong : 0, shard.size(),
                           wrong           ? "<span class=\"wrong\">✗</span>"
                           : shard.empty() ? kMissing
                                           : kRight,
                           fmt::format(" {}", rank_of(of, torus, chip)));
      }
      out += "</tr>\n";
    }
    out += "</table>\n";
  }
  return out + "</div>\n<p class=\"none\">Numbers are ranks; ✗ holds wrong elements.</p>\n";
}

std::string block_grid(const Comparison& of, const Row& row) {
  const dump::DumpedValue& dumped = of.dumped(row);
  const Torus& torus = dumped.torus;
  std::vector<Layout::Dim> cut;
  for (const Layout::Dim& dim : dumped.layout.dims())
    if (torus.size(dim.axes) > 1) cut.push_back(dim);
  if (cut.empty()) return "";
  const Layout::Dim last = cut.back();
  cut.pop_back();
  const int columns = torus.size(last.axes);
  std::map<std::vector<int>, std::vector<WrongPart>> rows;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    std::vector<int> at;
    for (const Layout::Dim& dim : cut) at.push_back(torus.block(chip, dim.axes));
    auto& cells = rows[at];
    cells.resize(static_cast<std::size_t>(columns));
    const auto part = row.wrong_parts.find(chip);
    if (part == row.wrong_parts.end()) continue;
    WrongPart& cell = cells[static_cast<std::size_t>(torus.block(chip, last.axes))];
    cell.wrong += part->second.wrong;
    cell.off = std::max(cell.off, part->second.off);
  }
  std::string out = "<div class=\"wide\"><table class=\"grid\" id=\"blocks\">\n<tr><th></th>";
  for (int block = 0; block < columns; ++block)
    out += fmt::format("<th>{} {}</th>", last.letter, block);
  out += "</tr>\n";
  for (const auto& [at, cells] : rows) {
    std::vector<std::pair<Layout::Dim, int>> blocks;
    for (std::size_t d = 0; d < cut.size(); ++d) blocks.emplace_back(cut[d], at[d]);
    out += fmt::format("<tr><th>{}</th>", escaped(blocks_text(blocks, torus)));
    for (const WrongPart& cell : cells)
      out += fmt::format("<td>{}</td>", cell.wrong > 0 ? error_text(row, cell) : kRight);
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace shardproof::tools
