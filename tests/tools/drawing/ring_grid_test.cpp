#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/program/loop_text.h"
#include "tests/tools/drawing/document.h"
#include "tools/drawing/detail/page.h"
#include "tools/drawing/picture.h"

namespace shardproof {
namespace {

constexpr Loop kLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};
const char* const kValues[] = {"xg", "yr"};  // of the all_gather and of the reduce_scatter

/// An all_gather and a reduce_scatter over `axes`, with a loop or without.
Program looped(const std::string& axes, Loop loop) {
  const bool loops = loop != Loop::none;
  const std::string ring = axes + (loops ? fmt::format(" loop {}", to_string(loop)) : "");
  return parse_program("p", fmt::format(R"(
    input x : BLE_{0} is in
    input w : EF_{0} is weight w_gate
    input v : F_{0}E is weight w_out
    xg : BLE = all_gather(x, E, {1}) is in
    h : BLF_{0} = einsum(BLE,EF->BLF; {2}xg, w) is gate
    y : BLE partialsum-{0} = einsum(BLF,FE->BLE; h, v) is block_out
    yr : BLE_{0} = reduce_scatter(y, E, {1}) is block_out
    output yr
  )",
                                        axes, ring, loops ? "loop " : ""));
}

/// Its picture, with chunks of `n` indices.
Document drawn(const std::string& axes, Loop loop, const Torus& torus, int chip,
               std::int64_t n = 3) {
  const Program program = looped(axes, loop);
  const std::int64_t E = n * torus.chips(), F = torus.chips();
  const auto types = check(program, {{"x", {2, 1, E}}, {"w", {E, F}}, {"v", {F, E}}}, torus);
  PictureOptions options;
  options.chip = chip;
  return Document(picture(program, types, torus, {}, {}, options));
}

std::vector<Xml> texts(const Xml& e) {
  std::vector<Xml> found;
  visit(e, [&](const Xml& each) {
    if (std::string_view(each.name()) == "text") found.push_back(each);
  });
  return found;
}

double number(const Xml& e, const char* key) { return std::stod(attribute(e, key)); }

using Row = std::vector<std::string>;

/// The texts of a row but for its name, one for each of `columns`: those that stand below it.
Row below(const std::vector<Xml>& columns, const Xml& row) {
  Row found(columns.size());
  std::vector<Xml> all = texts(row);
  for (std::size_t t = 1; t < all.size(); ++t)
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (number(all[t], "x") == number(columns[c], "x")) found[c] += content(all[t]);
  return found;
}

std::vector<Xml> without_name(std::vector<Xml> row) {
  row.erase(row.begin());
  return row;
}

/// What the grid of a card says, by round and number of a chip.
std::vector<Row> rounds(const Xml& card) {
  const std::vector<Xml> columns = without_name(texts(of_class(card, "ring-numbers").at(0)));
  std::vector<Row> rows;
  for (const Xml& round : of_class(card, "ring-round")) rows.push_back(below(columns, round));
  return rows;
}

std::set<std::string> parts_of(const std::string& cell) {
  std::istringstream in(cell);
  std::set<std::string> parts;
  for (std::string part; in >> part;) parts.insert(part);
  return parts;
}

/// What a chip works on, by round.
std::map<std::int64_t, std::set<std::string>> expected(const std::string& value, Loop loop,
                                                       std::int64_t K, std::int64_t chip) {
  std::map<std::int64_t, std::set<std::string>> all;
  for (const RingChunk& one :
       value == "xg" ? gathered_chunks(loop, K, chip) : scattered_chunks(loop, K, chip))
    all[one.round].insert(fmt::format("{}{}", one.chunk,
                                      one.part == ChunkPart::first_half    ? "a"
                                      : one.part == ChunkPart::second_half ? "b"
                                                                           : ""));
  return all;
}

/// The outlines of the example chip.
std::vector<Xml> outlines(const Xml& ring) {
  std::vector<Xml> found;
  visit(ring, [&](const Xml& e) {
    if (std::string_view(e.name()) == "rect") found.push_back(e);
  });
  return found;
}

bool inside(const Xml& outline, const Xml& text) {
  const double x = number(text, "x") - number(outline, "x");
  const double y = number(text, "y") - number(outline, "y");
  return x > 0 && x < number(outline, "width") && y > 0 && y < number(outline, "height");
}

/// Whether a text stands in a shaded box.
bool shaded(const Xml& ring, const Xml& text) {
  static const std::regex kBox("M([-.0-9]+) ([-.0-9]+)h([.0-9]+)v([.0-9]+)");
  bool found = false;
  visit(ring, [&](const Xml& e) {
    const std::string data = attribute(e, "d"), fill = attribute(e, "fill");
    if (data.empty() || fill == "#fff") return;
    for (std::sregex_iterator box(data.begin(), data.end(), kBox), end; box != end; ++box) {
      const double x = number(text, "x") - std::stod((*box)[1]);
      const double y = number(text, "y") - std::stod((*box)[2]);
      found = found || (x > 0 && x < std::stod((*box)[3]) && y > 0 && y < std::stod((*box)[4]));
    }
  });
  return found;
}

/// "3a 1b" has chunk 3 and chunk 1.
bool has_chunk(const std::string& cell, std::int64_t chunk) {
  for (const std::string& part : parts_of(cell))
    if (std::stoll(part) == chunk) return true;
  return false;
}

/// "", or what of a ring stands outside its card.
std::string outside(const Xml& ring) {
  const Xml background = ring.parent().parent().child("rect");
  const double height = number(background, "height");
  std::vector<Box> boxes;
  text_boxes(ring, 0, 0, "start", boxes);
  for (const Xml& e : outlines(ring)) {
    const double x = number(e, "x"), y = number(e, "y");
    boxes.push_back({x, y, x + number(e, "width"), y + number(e, "height"), "an outline"});
  }
  for (const Box& box : boxes)
    if (box.left < 2 || box.right > kColumn || box.top < 0 || box.bottom > height)
      return fmt::format("{}: {} to {}, {} to {}", box.text, box.left, box.right, box.top,
                         box.bottom);
  return "";
}

TEST(RingGrid, SaysWhatAChipUsesOrAddsTo) {
  struct On {
    const char* torus;
    const char* axes;
  };
  for (const auto& [size, axes] :
       {On{"1x1x1", "x"}, On{"1x2x1", "z"}, On{"2x2x1", "x"}, On{"3x1x2", "x"}, On{"5x1x1", "x"},
        On{"2x1x3", "zx"}, On{"2x1x3", "xz"}, On{"16x1x1", "x"}, On{"1x4x4", "zy"}})
    for (const Loop loop : kLoops) {
      const Torus torus = Torus::parse(size);
      for (int chip = 0; chip < torus.chips(); ++chip) {
        const std::string what = fmt::format("{} {} {} {}", size, axes, to_string(loop), chip);
        const Axes over = Axes::parse(axes);
        const auto K = static_cast<std::size_t>(torus.size(over));
        const auto mine = static_cast<std::size_t>(torus.block(chip, over));
        const Document document = drawn(axes, loop, torus, chip);
        EXPECT_EQ(misplaced(document.root()), "") << what;
        ASSERT_EQ(of_class(document.root(), "ring").size(), 2U) << what;
        for (const std::string value : kValues) {
          const Xml card = by_id(document.root(), "value-" + value);
          const Xml ring = of_class(card, "ring").at(0);
          EXPECT_EQ(outside(ring), "") << what;
          const Program program = looped(axes, loop);
          const std::string order = loop_text(*program.producer(value), torus);
          EXPECT_EQ(words(ring).find(order), 0U) << words(ring);

          const std::vector<Xml> columns =
              without_name(texts(of_class(ring, "ring-numbers").at(0)));
          ASSERT_EQ(columns.size(), K) << what;
          Row numbers, names;
          for (std::size_t c = 0; c < K; ++c) {
            EXPECT_EQ(content(columns[c]), std::to_string(c)) << what;
            names.push_back(torus.name(torus.group(chip, over)[c]));
          }
          EXPECT_EQ(below(columns, of_class(ring, "ring-chips").at(0)), names) << what;

          const std::vector<Row> rows = rounds(card);
          for (std::size_t c = 0; c < K; ++c) {
            std::map<std::int64_t, std::set<std::string>> said;
            for (std::size_t r = 0; r < rows.size(); ++r)
              said[static_cast<std::int64_t>(r)] = parts_of(rows[r][c]);
            EXPECT_EQ(said, expected(value, loop, static_cast<std::int64_t>(K),
                                     static_cast<std::int64_t>(c)))
                << what << " " << value << " chip " << c;
          }

          // The outline goes round the example chip's cells and no others; its chunk is shaded.
          ASSERT_EQ(outlines(ring).size(), 1U) << what;
          const Xml outline = outlines(ring)[0];
          for (const Xml& round : of_class(ring, "ring-round")) {
            const std::vector<Xml> cells = without_name(texts(round));
            ASSERT_EQ(cells.size(), K) << what;
            for (const Xml& cell : cells) {
              EXPECT_EQ(inside(outline, cell), number(cell, "x") == number(columns[mine], "x"))
                  << what << " " << content(cell);
              EXPECT_EQ(shaded(ring, cell), has_chunk(content(cell), torus.block(chip, over)))
                  << what << " " << content(cell);
            }
          }
          EXPECT_NE(words(ring).find(fmt::format("Shaded: chunk {}.", mine)), std::string::npos);
          EXPECT_EQ(words(ring).find("too large"), std::string::npos) << what;
        }
      }
    }
}

// By hand, from paper §3.5 and the orders of docs/spec.md: another direction would be other chunks.
TEST(RingGrid, ARingOfThreeByHand) {
  const Torus torus(3, 1, 1);
  const auto said = [&](Loop loop, const char* value) {
    const Document document = drawn("x", loop, torus, 1);
    return rounds(by_id(document.root(), fmt::format("value-{}", value)));
  };
  using Rows = std::vector<Row>;
  EXPECT_EQ(said(Loop::one_way, "xg"), (Rows{{"0", "1", "2"}, {"2", "0", "1"}, {"1", "2", "0"}}));
  EXPECT_EQ(said(Loop::both_full, "xg"), (Rows{{"0", "1", "2"}, {"2 1", "0 2", "1 0"}}));
  EXPECT_EQ(said(Loop::both_half, "xg"),
            (Rows{{"0", "1", "2"}, {"2a 1b", "0a 2b", "1a 0b"}, {"1a 2b", "2a 0b", "0a 1b"}}));
  EXPECT_EQ(said(Loop::one_way, "yr"), (Rows{{"2", "0", "1"}, {"1", "2", "0"}, {"0", "1", "2"}}));
  EXPECT_EQ(said(Loop::both_full, "yr"), (Rows{{"1 2", "2 0", "0 1"}, {"0", "1", "2"}}));
  EXPECT_EQ(said(Loop::both_half, "yr"), (Rows{{"2a 1b", "0a 2b", "1a 0b"},
                                               {"1a 2b", "2a 0b", "0a 1b"},
                                               {"0a 0b", "1a 1b", "2a 2b"}}));
}

TEST(RingGrid, SaysWhichHalfIsWhich) {
  const Torus torus(3, 1, 1);
  for (const char* value : kValues) {
    const auto caption = [&](Loop loop, std::int64_t n) {
      const Document document = drawn("x", loop, torus, 1, n);
      return words(
          of_class(by_id(document.root(), fmt::format("value-{}", value)), "ring-caption").at(0));
    };
    EXPECT_NE(caption(Loop::both_half, 5)
                  .find("a chunk's 5 indices of E the first 3, and the "
                        "other 2"),
              std::string::npos)
        << caption(Loop::both_half, 5);
    EXPECT_NE(caption(Loop::both_half, 1)
                  .find("a chunk's 1 indices of E the first 1, and the "
                        "other 0"),
              std::string::npos);
    EXPECT_EQ(caption(Loop::both_full, 5).find("indices"), std::string::npos);
    EXPECT_EQ(caption(Loop::one_way, 5).find("two in a cell"), std::string::npos);
    EXPECT_NE(caption(Loop::both_full, 5).find("two in a cell"), std::string::npos);
  }
}

TEST(RingGrid, OfALargeRingTheExampleChipAlone) {
  for (const char* size : {"4x4x4", "4x3x2", "1x1x17", "64x1x1"})
    for (const Loop loop : kLoops) {
      const Torus torus = Torus::parse(size);
      const std::int64_t K = torus.chips();
      const int chip = example_chip(torus);
      const std::int64_t mine = torus.block(chip, Axes::parse("zyx"));
      const Document document = drawn("zyx", loop, torus, chip, 1);
      const std::string what = fmt::format("{} {}", size, to_string(loop));
      EXPECT_EQ(misplaced(document.root()), "") << what;
      for (const std::string value : kValues) {
        const Xml ring = of_class(by_id(document.root(), "value-" + value), "ring").at(0);
        EXPECT_EQ(outside(ring), "") << what;
        EXPECT_TRUE(of_class(ring, "ring-round").empty()) << what;
        const std::vector<Xml> numbers = of_class(ring, "ring-rounds");
        const std::vector<Xml> lines = of_class(ring, "ring-chunks");
        ASSERT_EQ(numbers.size(), lines.size()) << what;
        ASSERT_EQ(outlines(ring).size(), lines.size()) << what;
        std::map<std::int64_t, std::set<std::string>> said;
        for (std::size_t i = 0; i < lines.size(); ++i) {
          const std::vector<Xml> columns = without_name(texts(numbers[i]));
          std::vector<Xml> cells = texts(lines[i]);
          if (i == 0) cells = without_name(cells);  // the other lines have none
          ASSERT_EQ(cells.size(), columns.size()) << what;
          for (std::size_t c = 0; c < cells.size(); ++c) {
            EXPECT_EQ(number(cells[c], "x"), number(columns[c], "x")) << what;
            EXPECT_TRUE(inside(outlines(ring)[i], cells[c])) << what;
            EXPECT_EQ(shaded(ring, cells[c]), has_chunk(content(cells[c]), mine)) << what;
            said[std::stoi(content(columns[c]))] = parts_of(content(cells[c]));
          }
        }
        EXPECT_EQ(said, expected(value, loop, K, mine)) << what << " " << value;
        EXPECT_NE(words(ring).find(fmt::format("this is chip {}, number {}. On chip {}+k every "
                                               "chunk's number is k more, modulo {}.",
                                               torus.name(chip), mine, mine, K)),
                  std::string::npos)
            << words(ring);
        // As the caption says.
        std::map<std::int64_t, std::set<std::string>> further;
        for (const auto& [round, parts] : said)
          for (const std::string& part : parts) {
            std::size_t digits = 0;
            const std::int64_t chunk = (std::stoll(part, &digits) + 1) % K;
            further[round].insert(std::to_string(chunk) + part.substr(digits));
          }
        EXPECT_EQ(further, expected(value, loop, K, (mine + 1) % K)) << what << " " << value;
      }
    }
}

TEST(RingGrid, IsDrawnOfLoopsOnly) {
  const Torus torus(3, 1, 1);
  const Document none = drawn("x", Loop::none, torus, 1);
  EXPECT_TRUE(of_class(none.root(), "ring").empty());
  EXPECT_EQ(words(none.root()).find("round"), std::string::npos);
  const Document one_way = drawn("x", Loop::one_way, torus, 1);
  for (const Xml& ring : of_class(one_way.root(), "ring")) {
    const std::string card = attribute(ring.parent(), "id");
    EXPECT_TRUE(card == "value-xg" || card == "value-yr") << card;
  }
}

}  // namespace
}  // namespace shardproof
