#include "tools/drawing/picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/drawing/glyphs.h"
#include "tools/drawing/page.h"
#include "tools/drawing/svg.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

// Points. A column has three fields: statement or blocks, a glyph, and a note on one chip.
constexpr double kPad = 4;
constexpr double kBlocks = 34, kBlocksWidth = 290;
constexpr double kMap = 338, kMapWidth = 104;  // of a collective: who talks
constexpr double kNote = 450;
constexpr double kRowGlyph = 288, kRowGlyphWidth = 106, kRowNote = 402;  // of a compact row
constexpr double kStatementSize = 7, kNoteSize = 6;
constexpr double kNoteLine = 7.4, kStatementLine = 8.6;

/// Lines of at most `width` points, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, double width, double size) {
  const auto letters = static_cast<std::size_t>(width / (size * Svg::kAdvance));
  std::vector<std::string> lines;
  while (text.size() > letters) {
    std::size_t at = text.rfind(' ', letters);
    if (at == std::string_view::npos || at == 0) at = letters;
    lines.emplace_back(text.substr(0, at));
    text.remove_prefix(at + (text[at] == ' ' ? 1 : 0));
  }
  lines.emplace_back(text);
  return lines;
}

std::string number(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

/// The part of a layer that a value belongs to, by what it is said to be; "" if that says nothing.
std::string_view section(const Meaning& meaning) {
  if (meaning.kind == Meaning::Kind::weight) {
    const WeightRow* const weight = weight_row(meaning.name);
    return weight == nullptr ? "" : to_string(weight->section);
  }
  const ValueRow* const value = value_row(meaning);
  return value == nullptr ? "" : to_string(value->section);
}

/// "H_zy": the dims of a layout that are cut, as labels name them.
std::vector<std::string> cut_dims(const Layout& layout, const Torus& torus) {
  std::vector<std::string> cut;
  for (const Layout::Dim& dim : layout.dims())
    if (torus.size(dim.axes) > 1)
      cut.push_back(fmt::format("{}_{}", dim.letter, dim.axes.to_string()));
  return cut;
}

/// What a dim letter stands for.
std::string_view word(char letter) {
  constexpr std::pair<char, std::string_view> kWords[] = {
      {'B', "batch"},      {'L', "positions"},  {'M', "cached"},      {'E', "d_model"},
      {'F', "d_ff"},       {'H', "heads"},      {'K', "kv heads"},    {'Q', "d_head"},
      {'V', "vocabulary"}, {'C', "candidates"}, {'S', "outer heads"}, {'R', "inner heads"},
      {'P', "RoPE rows"},  {'J', "RoPE pairs"}};
  for (const auto& [known, meaning] : kWords)
    if (known == letter) return meaning;
  return "";
}

class Picture {
 public:
  Picture(const Program& program, const std::map<std::string, Type>& types, const Torus& torus,
          const Numerics& numerics, const PictureOptions& options)
      : program_(program),
        types_(types),
        torus_(torus),
        options_(options),
        chip_(options.chip.value_or(example_chip(torus))),
        glyphs_(torus_, chip_),
        ledger_(count(program, types, torus, numerics)) {
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      if (is_collective(program_.ops[i].kind)) {
        ++collectives_;
        elements_ += sent(i);
        bytes_ += sent(i) * ledger_.steps[i].wire_bytes;
      }
  }

  std::string draw() {
    std::vector<Card> cards{header()};
    std::string_view part = "";
    const auto add = [&](std::string_view title, Card card) {
      if (!title.empty() && title != part) {
        card = titled(title, card);
        part = title;
      }
      cards.push_back(std::move(card));
    };
    for (const Result& input : program_.inputs) add("inputs, as they rest", value(input, "input "));
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      const bool stays = i > 0 && only_moves(op);
      add(stays ? "" : section(op.results[0].meaning),
          is_collective(op.kind) ? collective(op, i) : local(op));
    }
    return page(cards, heading());
  }

 private:
  /// Whether a step only moves or cuts an activation: it belongs where it is used, not where its
  /// value is named.
  bool only_moves(const Op& op) const {
    const Meaning& meaning = op.results[0].meaning;
    return meaning.kind != Meaning::Kind::weight && op.args.size() == 1 &&
           program_.declared(op.args[0]).meaning == meaning;
  }
  const std::string& heading() const {
    return options_.title.empty() ? program_.name : options_.title;
  }
  double sent(std::size_t step) const {
    return elements_per_chip(ledger_.steps[step], torus_.chips(), options_.paper);
  }
  std::string local_text(const Type& type) const {
    return fmt::format("{}", fmt::join(local_shape(type.layout, type.shape, torus_), "x"));
  }

  static Card titled(std::string_view title, const Card& card) {
    constexpr double kHeight = 14;
    Svg svg;
    svg.text(0, kHeight - 4, title, {8, "start", "#000", true});
    svg.line(0, kHeight - 1.5, kColumn, kHeight - 1.5, "stroke=\"#000\" stroke-width=\"0.8\"");
    svg.append_at(0, kHeight, card.elements);
    return {card.height + kHeight, svg.take()};
  }

  /// Writes lines down from `y`, the top of the first; returns the bottom.
  static double lines(Svg& svg, double x, double y, const std::vector<std::string>& lines,
                      double size, double step, bool hang = false) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      svg.text(x + (hang && i > 0 ? 12 : 0), y + size, lines[i], {size});
      y += step;
    }
    return y;
  }

  /// One value in one row: its statement, blocks, and what the example chip holds.
  Card value(const Result& result, std::string_view before, std::string_view call = "") const {
    const Type& type = types_.at(result.name);
    Svg svg;
    svg.open("value-" + result.name, "value");
    const std::string statement =
        fmt::format("{}{} : {}{}", before, result.name, result.layout.to_string(), call);
    double bottom =
        lines(svg, kPad, 1.5, wrapped(statement, kRowGlyph - 2 * kPad - 12, kStatementSize),
              kStatementSize, kStatementLine, true);
    const int rows = glyphs_.rows(type.layout);
    const double row = rows <= 6 ? 7 : std::max(32.0 / rows, 2.0);
    glyphs_.blocks(svg, kRowGlyph, 2, kRowGlyphWidth, row, type.layout);
    bottom = std::max(bottom, 2 + rows * row);
    const std::string note =
        fmt::format("{} ({}) {}", glyphs_.held(type), local_text(type), result.meaning.to_string());
    bottom =
        std::max(bottom, lines(svg, kRowNote, 1.8, wrapped(note, kColumn - kRowNote, kNoteSize),
                               kNoteSize, kNoteLine));
    bottom += 1;
    svg.line(0, bottom, kColumn, bottom, "stroke=\"#ccc\" stroke-width=\"0.4\"");
    svg.close();
    return {bottom, svg.take()};
  }

  Card local(const Op& op) const {
    if (op.results.size() == 1) return value(op.results[0], "", " = " + op.to_string());
    Svg svg;
    double y = 0;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const bool last = i + 1 == op.results.size();
      const Card card = value(op.results[i], "", last ? " = " + op.to_string() : ",");
      svg.append_at(0, y, card.elements);
      y += card.height;
    }
    return {y, svg.take()};
  }

  /// Blocks of one side of a collective, with the dims that are cut beside or, of a grid, above.
  /// Returns the height.
  double side(Svg& svg, double x, double y, double w, const Layout& layout, bool grid) const {
    const std::vector<std::string> cut = cut_dims(layout, torus_);
    if (!grid) {
      svg.text(kBlocks - 3, y + 6.8, cut.empty() ? "whole" : cut.front(), {kNoteSize, "end"});
      glyphs_.blocks(svg, x, y, w, 9, layout);
      return 9;
    }
    std::string caption = cut.empty() ? "whole" : cut.front();
    if (cut.size() > 1) {
      caption += " down, ";
      for (std::size_t i = 1; i < cut.size(); ++i) caption += cut[i] + " ";
      caption += "across";
    }
    svg.text(x, y + kNoteSize - 1, caption, {kNoteSize});
    const int rows = glyphs_.rows(layout);
    const double row = rows <= 7 ? 7.4 : std::max(44.0 / rows, 2.4);
    glyphs_.blocks(svg, x, y + 7, w, row, layout);
    return 7 + row * rows;
  }

  std::string groups_text(const Op& op) const {
    const int size = torus_.size(op.axes);
    const int groups = torus_.chips() / size;
    return fmt::format("{} group{} of {}, over {}{}", groups, groups == 1 ? "" : "s", size,
                       op.axes.to_string(), size == 1 ? ": nothing moves" : "");
  }

  /// Where the example chip's shard goes and whose it gets.
  std::string partners(const Op& op) const {
    int to = chip_, from = chip_;
    for (int other : torus_.group(chip_, op.axes)) {
      if (torus_.block(other, op.as) == torus_.block(chip_, op.axes)) to = other;
      if (torus_.block(other, op.axes) == torus_.block(chip_, op.as)) from = other;
    }
    return fmt::format("sends to {}, gets from {}", torus_.name(to), torus_.name(from));
  }

  Card collective(const Op& op, std::size_t step) const {
    const Result& result = op.results[0];
    const Type& after = types_.at(result.name);
    const Type& before = types_.at(op.args[0]);
    const StepCost& cost = ledger_.steps[step];
    Svg svg;
    svg.open("value-" + result.name, "value");

    const std::string statement =
        fmt::format("{} : {} = {}", result.name, result.layout.to_string(), op.to_string());
    const double share = bytes_ > 0 ? 100 * sent(step) * cost.wire_bytes / bytes_ : 0;
    const std::string sends =
        fmt::format("sends {} = {} elements, {} bytes ({:.0f} %)", formula(cost, options_.paper),
                    number(sent(step)), number(sent(step) * cost.wire_bytes), share);
    double y = lines(svg, kPad, 2, wrapped(statement, kColumn - 3 * kPad - 12, kStatementSize),
                     kStatementSize, kStatementLine, true);
    const bool beside =
        y < 2 + 1.5 * kStatementLine &&
        Svg::width(statement, kStatementSize) + Svg::width(sends, kNoteSize) < kColumn - 4 * kPad;
    if (!beside) y += kNoteLine;
    svg.text(kColumn - kPad, y - 2, sends, {kNoteSize, "end"});
    y += 1;

    double bottom = y;
    const bool grid = glyphs_.is_grid(before.layout) || glyphs_.is_grid(after.layout);
    svg.open("", "operand");
    const double half = 0.46 * kBlocksWidth;
    bottom = std::max(bottom,
                      y + side(svg, kBlocks, y, grid ? half : kBlocksWidth, before.layout, grid));
    svg.close();
    if (grid) {
      svg.text(kBlocks + kBlocksWidth / 2, y + 13, "->", {kNoteSize, "middle"});
      bottom = std::max(bottom,
                        y + side(svg, kBlocks + kBlocksWidth - half, y, half, after.layout, grid));
    } else {
      bottom += 3 + side(svg, kBlocks, bottom + 3, kBlocksWidth, after.layout, grid);
    }
    bottom = std::max(bottom, y + glyphs_.group(svg, kMap, y, kMapWidth, op.axes));

    double note = y - 1;
    const auto say = [&](std::string_view text) {
      note = lines(svg, kNote, note, wrapped(text, kColumn - kNote - 1, kNoteSize), kNoteSize,
                   kNoteLine);
    };
    say(groups_text(op));
    if (op.kind == OpKind::permute_axes) say(partners(op));
    svg.open("", "held-before");
    say("had " + glyphs_.held(before));
    svg.close();
    svg.open("", "held");
    say("has " + glyphs_.held(after));
    svg.close();
    say(fmt::format("({}) {}", local_text(after), result.meaning.to_string()));
    bottom = std::max(bottom, note) + 3;
    svg.close();

    Svg card;
    card.rect(0, 0, kColumn, bottom - 1, "fill=\"#f3f3f3\"");
    card.rect(0, 0, 1.5, bottom - 1, "fill=\"#0072b2\"");
    card.append(svg.take());
    return {bottom, card.take()};
  }

  /// "B batch=24, E d_model=96": the extents of every dim letter, in order of appearance.
  std::string extents() const {
    std::vector<std::pair<char, std::vector<std::int64_t>>> seen;
    const auto see = [&](const Result& result) {
      const Type& type = types_.at(result.name);
      for (std::size_t i = 0; i < type.layout.rank(); ++i) {
        const char letter = type.layout.dims()[i].letter;
        auto at = std::find_if(seen.begin(), seen.end(),
                               [&](const auto& entry) { return entry.first == letter; });
        if (at == seen.end()) at = seen.insert(seen.end(), {letter, {}});
        if (std::find(at->second.begin(), at->second.end(), type.shape[i]) == at->second.end())
          at->second.push_back(type.shape[i]);
      }
    };
    for (const Result& input : program_.inputs) see(input);
    for (const Op& op : program_.ops)
      for (const Result& result : op.results) see(result);
    std::string text;
    for (const auto& [letter, values] : seen)
      text += fmt::format("{}{} {}={}", text.empty() ? "" : ", ", letter, word(letter),
                          fmt::join(values, ","));
    return text;
  }

  /// A sample cell of a legend line: the blocks of one layout cut to one.
  void sample(Svg& svg, double x, double y, const std::string& label, bool hatched, bool outlined) {
    svg.rect(x, y, 14, 7.4, "fill=\"#d6d6d6\" stroke=\"#555\" stroke-width=\"0.4\"");
    if (hatched) svg.rect(x, y, 14, 7.4, "fill=\"url(#summand)\"");
    if (outlined) svg.rect(x, y, 14, 7.4, "fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"");
    svg.text(x + 7, y + 5.9, label, {6, "middle"});
  }

  Card header() {
    Svg svg;
    double y = 0;
    for (const std::string& line : wrapped(heading(), kColumn, 13)) {
      svg.text(0, y + 12, line, {13, "start", "#000", true});
      y += 16;
    }
    std::vector<std::string> notes = options_.notes;
    notes.push_back(extents());
    notes.push_back(
        fmt::format("each chip sends {} elements, {} bytes in {} collectives; {} FLOPs a chip",
                    number(elements_), number(bytes_), collectives_,
                    number(static_cast<double>(ledger_.flops()) / torus_.chips())));
    for (const std::string& note : notes)
      y = lines(svg, 0, y, wrapped(note, kColumn - 12, kStatementSize), kStatementSize,
                kStatementLine, true);
    y += 5;

    constexpr double kTorus = 262;
    const double map = glyphs_.legend(svg, 0, y, kTorus);
    const double x = kTorus + 12;
    double row = y;
    const auto entry = [&](std::string_view text) {
      const double bottom =
          lines(svg, x + 20, row, wrapped(text, kColumn - x - 20, kNoteSize), kNoteSize, kNoteLine);
      row = std::max(bottom, row + 8.6) + 1;
    };
    sample(svg, x, row, "102", false, false);
    entry("a block on chip (1,0,2) alone; hue is z, paleness y, as left");
    sample(svg, x, row, "*02", false, false);
    entry("the same block copied on every x of (x,0,2)");
    sample(svg, x, row, "+02", true, false);
    entry("hatched: summands on every x of (x,0,2), not yet added");
    sample(svg, x, row, "", false, true);
    entry(fmt::format("the example chip {}; index ranges are what it holds", torus_.name(chip_)));
    svg.rect(x, row, 7, 7.4, "fill=\"#000\"");
    svg.rect(x + 7, row, 7, 7.4, "fill=\"#0072b2\"");
    entry("who talks: the example chip and its group, numbered in block order");
    const Axes order = Axes::parse("zyx");
    lines(svg, x, row,
          wrapped(fmt::format("F_zyx: chip (x,y,z) holds block (z*Y+y)*X+x, so {} holds {}",
                              torus_.name(chip_), torus_.block(chip_, order)),
                  kColumn - x, kNoteSize),
          kNoteSize, kNoteLine);
    row += kNoteLine;
    return {std::max(y + map, row) + 6, svg.take()};
  }

  const Program& program_;
  const std::map<std::string, Type>& types_;
  const Torus& torus_;
  const PictureOptions& options_;
  int chip_;
  Glyphs glyphs_;
  Ledger ledger_;
  int collectives_ = 0;
  double elements_ = 0, bytes_ = 0;
};

}  // namespace

int example_chip(const Torus& torus) {
  const int x = std::min(1, torus.size(Axis::x) - 1);
  const int z = torus.size(Axis::z) - 1;
  return x * torus.size(Axis::y) * torus.size(Axis::z) + z;
}

std::string picture(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const PictureOptions& options) {
  if (torus.chips() > kMostChipsInPicture)
    throw Error("picture_c1",
                fmt::format("torus {} has {} chips; a picture shows at most {}, so draw a smaller "
                            "torus: the layouts are the same",
                            torus.to_string(), torus.chips(), kMostChipsInPicture));
  return Picture(program, types, torus, numerics, options).draw();
}

}  // namespace shardproof
