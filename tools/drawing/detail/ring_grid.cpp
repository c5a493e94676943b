#include "tools/drawing/detail/ring_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/program/loop_text.h"
#include "tools/drawing/detail/lettering.h"
#include "tools/drawing/detail/page.h"

namespace shardproof {
namespace {

// Layout in points.
constexpr double kPad = 4;
constexpr double kLeft = 34, kWidth = kColumn - kPad - kLeft;  // of the cells, beside names
constexpr double kRow = 8.4;
constexpr double kBase = kRow / 2 + 0.36 * kNoteSize;  // baseline of letters in a row
constexpr double kCaption = 200;                       // least width of a caption beside a grid
constexpr std::size_t kMostRounds = 16;

/// Chunks that a chip works on in one round.
struct Cell {
  std::string text;
  bool own = false;  ///< contains the example chip's chunk, or half of it
};

struct Drawn {
  const Scene& scene;
  Svg& svg;
  const Op& op;
  std::vector<int> chips;  ///< chips of the ring, in order
  std::int64_t K, mine;    ///< size of the ring; the example chip's index
  bool reduces;
};

/// Returns whether a chunk, or its sum, travels from each chip to its predecessor.
bool goes_down(const Drawn& of, std::int64_t chip, const RingChunk& one) {
  if (one.part != ChunkPart::whole) return one.part == ChunkPart::second_half;
  if (!of.reduces) return false;  // gathered chunks are already in order
  const std::vector<std::int64_t> down =
      scattered_sum(of.op.loop, of.K, one.chunk, one.part).second;
  return std::find(down.begin(), down.end(), chip) != down.end();
}

/// Returns the cell of each round.
std::vector<Cell> cells(const Drawn& of, std::int64_t chip) {
  const auto before = [&](const RingChunk& a, const RingChunk& b) {
    return a.round != b.round ? a.round < b.round
                              : !goes_down(of, chip, a) && goes_down(of, chip, b);
  };
  std::vector<RingChunk> chunks;
  // Avoids std::stable_sort, whose libstdc++ 12 implementation calls a function that clang 19 warns
  // is deprecated.
  for (const RingChunk& one : of.reduces ? scattered_chunks(of.op.loop, of.K, chip)
                                         : gathered_chunks(of.op.loop, of.K, chip))
    chunks.insert(std::upper_bound(chunks.begin(), chunks.end(), one, before), one);
  std::vector<Cell> rounds;
  for (const RingChunk& one : chunks) {
    rounds.resize(static_cast<std::size_t>(one.round) + 1);
    Cell& cell = rounds.back();
    cell.text += fmt::format("{}{}{}", cell.text.empty() ? "" : " ", one.chunk,
                             one.part == ChunkPart::first_half    ? "a"
                             : one.part == ChunkPart::second_half ? "b"
                                                                  : "");
    cell.own = cell.own || one.chunk == of.mine;
  }
  return rounds;
}

double room(std::string_view text) { return Svg::width(text, kNoteSize) + 3; }

double widest(const std::vector<Cell>& row) {
  double w = 0;
  for (const Cell& cell : row) w = std::max(w, room(cell.text));
  return w;
}

/// Writes a row of texts, preceded by its name.
void write_row(Svg& svg, const char* kind, double y, double w, std::string_view name,
               const std::vector<std::string>& texts) {
  svg.open("", kind);
  svg.text(kLeft - 3, y + kBase, name, {kNoteSize, "end"});
  for (std::size_t i = 0; i < texts.size(); ++i)
    svg.text(kLeft + w * (static_cast<double>(i) + 0.5), y + kBase, texts[i], {kNoteSize, ""});
  svg.close();
}

void draw_row(Svg& svg, const char* kind, double y, double w, std::string_view name,
              const std::vector<Cell>& row) {
  std::string others, own;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < row.size(); ++i) {
    (row[i].own ? own : others) += Svg::box(kLeft + w * static_cast<double>(i), y, w, kRow);
    texts.push_back(row[i].text);
  }
  const auto boxes = [&](const std::string& data, const char* fill) {
    svg.path(data, fmt::format("fill=\"{}\" stroke=\"#555\" stroke-width=\"0.3\"", fill));
  };
  boxes(others, "#fff");
  boxes(own, "#bcd9ea");
  write_row(svg, kind, y, w, name, texts);
}

void outline(Svg& svg, double x, double y, double w, double h) {
  svg.rect(x, y, w, h, "fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"");
}

/// Draws every chip of the ring. Returns the bottom.
double draw_ring(const Drawn& of, const std::vector<std::vector<Cell>>& columns, double y,
                 double w) {
  std::vector<std::string> names, numbers;
  for (std::size_t i = 0; i < of.chips.size(); ++i) {
    names.push_back(of.scene.torus.name(of.chips[i]));
    numbers.push_back(std::to_string(i));
  }
  write_row(of.svg, "ring-chips", y, w, "chip", names);
  write_row(of.svg, "ring-numbers", y + kRow, w, "number", numbers);
  const double top = y + 2 * kRow;
  const std::size_t rounds = columns.front().size();
  for (std::size_t r = 0; r < rounds; ++r) {
    std::vector<Cell> row;
    for (const std::vector<Cell>& column : columns) row.push_back(column[r]);
    draw_row(of.svg, "ring-round", top + kRow * static_cast<double>(r), w,
             r == 0 ? "round 0" : std::to_string(r), row);
  }
  const double height = kRow * static_cast<double>(rounds);
  outline(of.svg, kLeft + w * static_cast<double>(of.mine), top, w, height);
  return top + height;
}

/// Draws the example chip only, in as many lines as its rounds need. Returns the bottom.
double draw_chip(const Drawn& of, const std::vector<Cell>& rounds, double y) {
  const double w = std::max(widest(rounds), room(std::to_string(rounds.size())));
  const auto most = static_cast<std::size_t>(kWidth / w);
  for (std::size_t first = 0; first < rounds.size(); first += most) {
    const std::size_t last = std::min(first + most, rounds.size());
    std::vector<std::string> numbers;
    for (std::size_t r = first; r < last; ++r) numbers.push_back(std::to_string(r));
    write_row(of.svg, "ring-rounds", y, w, "round", numbers);
    const auto at = [&](std::size_t r) { return rounds.begin() + static_cast<std::ptrdiff_t>(r); };
    draw_row(of.svg, "ring-chunks", y + kRow, w, first == 0 ? "chunks" : "", {at(first), at(last)});
    outline(of.svg, kLeft, y + kRow, w * static_cast<double>(last - first), kRow);
    y += 2 * kRow + 1;
  }
  return y - 1;
}

/// Returns the extent of a chunk in the looped dim.
std::int64_t chunk_indices(const Drawn& of) {
  const Type& type =
      of.scene.types.at(of.reduces ? of.op.results.front().name : of.op.args.front());
  const Shape local = local_shape(type.layout, type.shape, of.scene.torus);
  for (std::size_t i = 0; i < type.layout.rank(); ++i)
    if (type.layout.dims()[i].letter == of.op.dim) return local[i];
  return 0;
}

std::string caption(const Drawn& of, bool whole) {
  const bool halves = of.op.loop == Loop::both_half && of.K > 1;
  const bool ways = halves || (of.op.loop == Loop::both_full && of.K > 2);
  std::string text =
      of.reduces
          ? "The chunks to whose sums a chip adds its partial; the sum of chunk c ends on chip "
            "number c"
          : "The chunks that a chip uses; chunk c is that of chip number c";
  if (of.reduces && of.op.loop == Loop::both_full && ways) text += ", where its two sums are added";
  text += ". Round 0 is before anything has moved.";
  if (halves) {
    const std::int64_t n = chunk_indices(of);
    text += fmt::format(" a, b: of a chunk's {} indices of {} the first {}, and the other {}.", n,
                        of.op.dim, first_half(n), n - first_half(n));
  }
  if (ways)
    text += " Of two in a cell the first goes to the next chip, the second to the one before.";
  if (!whole)
    text += fmt::format(
        " The ring is too large to be drawn as a whole: this is chip {}, number {}. On chip {}+k "
        "every chunk's number is k more, modulo {}.",
        of.scene.torus.name(of.scene.chip), of.mine, of.mine, of.K);
  return text + fmt::format(" Shaded: chunk {}.", of.mine);
}

}  // namespace

double ring_grid(const Scene& scene, Svg& svg, const Op& op, double y) {
  Drawn of{scene, svg, op, scene.torus.group(scene.chip, op.axes), 0, 0, op_row(op.kind).reduces};
  of.K = static_cast<std::int64_t>(of.chips.size());
  of.mine = scene.torus.block(scene.chip, op.axes);
  const std::vector<Cell> example = cells(of, of.mine);

  std::vector<std::vector<Cell>> columns;
  double w = 0;
  if (example.size() <= kMostRounds)
    for (std::int64_t chip = 0; chip < of.K; ++chip) {
      columns.push_back(cells(of, chip));
      w = std::max({w, widest(columns.back()),
                    room(scene.torus.name(of.chips[static_cast<std::size_t>(chip)]))});
    }
  const double width = w * static_cast<double>(of.K);
  const bool whole = !columns.empty() && width <= kWidth;

  svg.open("", "ring");
  y = write_lines(svg, kPad, y,
                  wrapped(loop_text(op, scene.torus), kColumn - 2 * kPad - 12, kNoteSize),
                  kNoteSize, kNoteLine, true);
  y += 1.5;
  svg.open_middle();
  double bottom = whole ? draw_ring(of, columns, y, w) : draw_chip(of, example, y);
  svg.close();
  svg.open("", "ring-caption");
  const bool beside = whole && kWidth - width - 8 >= kCaption;
  const double left = beside ? kLeft + width + 8 : kLeft;
  bottom =
      std::max(bottom, write_lines(svg, left, beside ? y : bottom + 1.5,
                                   wrapped(caption(of, whole), kColumn - kPad - left, kNoteSize),
                                   kNoteSize, kNoteLine));
  svg.close();
  svg.close();
  return bottom;
}

}  // namespace shardproof
