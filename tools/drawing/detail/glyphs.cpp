#include "tools/drawing/detail/glyphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace shardproof {
namespace {

constexpr int kEvery = -1;
constexpr int kSum = -2;
constexpr Axis kAxes[] = {Axis::x, Axis::y, Axis::z};
constexpr double kLetters = 6;  // font size of labels, in points

/// Light hues that are distinct for the colour-blind and legible under black text (Paul Tol,
/// "light").
constexpr std::array<std::array<int, 3>, 8> kHues{{{0x77, 0xaa, 0xdd},
                                                   {0xee, 0x88, 0x66},
                                                   {0xee, 0xdd, 0x88},
                                                   {0x44, 0xbb, 0x99},
                                                   {0xff, 0xaa, 0xbb},
                                                   {0xbb, 0xcc, 0x33},
                                                   {0x99, 0xdd, 0xff},
                                                   {0xaa, 0xaa, 0x00}}};
constexpr std::array<int, 3> kNoHue{0xbb, 0xbb, 0xbb};

bool fits(std::string_view text, double width) { return Svg::width(text, kLetters) + 0.8 <= width; }

}  // namespace

struct Glyphs::Place {
  std::array<int, 3> at{kEvery, kEvery, kEvery};
  int& operator[](Axis a) { return at[static_cast<std::size_t>(a)]; }
  int operator[](Axis a) const { return at[static_cast<std::size_t>(a)]; }
};

Glyphs::Place Glyphs::place(const Layout& layout, const std::vector<int>& blocks) const {
  Place place;
  for (Axis a : kAxes)
    if (torus_.size(a) == 1) place[a] = 0;
  for (Axis a : layout.partial())
    if (torus_.size(a) > 1) place[a] = kSum;
  for (std::size_t i = 0; i < layout.rank(); ++i) {
    const Axes& axes = layout.dims()[i].axes;
    int rest = blocks[i];
    for (const Axis* a = axes.end(); a != axes.begin();) {
      --a;
      place[*a] = rest % torus_.size(*a);
      rest /= torus_.size(*a);
    }
  }
  return place;
}

std::string Glyphs::text(const Place& place) const {
  std::string text;
  const bool wide =
      std::any_of(std::begin(kAxes), std::end(kAxes), [&](Axis a) { return torus_.size(a) > 10; });
  for (Axis a : kAxes) {
    if (wide && !text.empty()) text += ",";
    text += place[a] == kEvery ? "*" : place[a] == kSum ? "+" : std::to_string(place[a]);
  }
  return text;
}

/// Colour of a place: z selects the hue, y the paleness.
std::string Glyphs::colour(const Place& place) const {
  const int z = place[Axis::z];
  const int y = place[Axis::y];
  const auto& hue = z < 0 ? kNoHue : kHues[static_cast<std::size_t>(z) % kHues.size()];
  const int Y = torus_.size(Axis::y);
  const double pale = y < 0 ? 0.3 : Y == 1 ? 0.0 : 0.65 * y / (Y - 1);
  const auto mix = [&](int c) { return static_cast<int>(c + pale * (255 - c)); };
  return fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", mix(hue[0]), mix(hue[1]), mix(hue[2]));
}

std::string Glyphs::label(const Layout& layout, const std::vector<int>& blocks) const {
  return text(place(layout, blocks));
}

std::string Glyphs::held(const Type& type) const {
  std::string text;
  const Shape local = local_shape(type.layout, type.shape, torus_);
  Axes used = type.layout.used();
  for (std::size_t i = 0; i < type.layout.rank(); ++i) {
    if (local[i] == type.shape[i]) continue;
    const Layout::Dim& dim = type.layout.dims()[i];
    const std::int64_t begin = torus_.block(chip_, dim.axes) * local[i];
    text +=
        fmt::format("{}{}[{}:{}]", text.empty() ? "" : " ", dim.letter, begin, begin + local[i]);
  }
  if (text.empty()) text = "all";
  const int partial_sums = torus_.size(type.layout.partial());
  if (partial_sums > 1) text += fmt::format("; {} partial sums", partial_sums);
  const int copies = torus_.chips() / torus_.size(used);
  if (copies > 1) text += fmt::format("; {} copies", copies);
  return text;
}

bool Glyphs::is_grid(const Layout& layout) const { return rows(layout) > 1; }

int Glyphs::rows(const Layout& layout) const {
  int first = 1;
  for (const Layout::Dim& dim : layout.dims()) {
    if (torus_.size(dim.axes) == 1) continue;
    if (first > 1) return first;
    first = torus_.size(dim.axes);
  }
  return 1;
}

void Glyphs::blocks(Svg& svg, double x, double y, double w, double row_height,
                    const Layout& layout) const {
  int total = 1;
  for (const Layout::Dim& dim : layout.dims()) total *= torus_.size(dim.axes);
  const int rows = this->rows(layout);
  const int columns = total / rows;
  const double cell = w / columns;
  const bool partial = torus_.size(layout.partial()) > 1;

  // If blocks are too small for labels, a bar labels runs of blocks by their major axis.
  const Layout::Dim* cut = nullptr;
  for (const Layout::Dim& dim : layout.dims())
    if (torus_.size(dim.axes) > 1) cut = &dim;

  std::map<std::string, std::string> paths;  // by colour; neighbours of one colour are one box
  std::vector<std::string> names;
  int mine = 0;
  int run_begin = 0;
  std::string run_colour;
  const auto end_run = [&](int end) {
    const int row = run_begin / columns;
    if (end > run_begin)
      paths[run_colour] += Svg::box(x + cell * (run_begin % columns), y + row_height * row,
                                    cell * (end - run_begin), row_height);
    run_begin = end;
  };
  for (int i = 0; i < total; ++i) {
    std::vector<int> blocks(layout.rank());
    int rest = i;
    bool held = true;
    for (std::size_t d = layout.rank(); d-- > 0;) {
      const Axes& axes = layout.dims()[d].axes;
      blocks[d] = rest % torus_.size(axes);
      rest /= torus_.size(axes);
      held = held && blocks[d] == torus_.block(chip_, axes);
    }
    if (held) mine = i;
    const Place place = this->place(layout, blocks);
    const std::string colour = this->colour(place);
    if (i % columns == 0 || colour != run_colour) end_run(i);
    run_colour = colour;
    names.push_back(text(place));
  }
  end_run(total);
  for (const auto& [colour, data] : paths) svg.path(data, colour);
  if (partial) svg.rect(x, y, w, rows * row_height, "fill=\"url(#partial)\"");

  std::string grid = Svg::box(x, y, w, rows * row_height);
  for (int c = 1; c < columns; ++c)
    grid += Svg::stroke(x + c * cell, y, x + c * cell, y + rows * row_height);
  for (int r = 1; r < rows; ++r)
    grid += Svg::stroke(x, y + r * row_height, x + w, y + r * row_height);
  svg.path(grid, "fill=\"none\" stroke=\"#555\" stroke-width=\"0.3\"");
  const double mine_x = x + cell * (mine % columns);
  const int mine_row = mine / columns;
  svg.rect(mine_x, y + row_height * mine_row, cell, row_height,
           "fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"");

  if (row_height < kLetters) return;
  svg.open_middle();
  const double base = row_height / 2 + 0.36 * kLetters;
  if (fits(names.front(), cell)) {
    for (int i = 0; i < total; ++i) {
      const int row = i / columns;
      svg.text(x + cell * (i % columns + 0.5), y + row_height * row + base,
               names[static_cast<std::size_t>(i)], {kLetters, ""});
    }
  } else if (rows == 1 && cut) {
    const Axis major = *cut->axes.begin();
    const double run = w / torus_.size(major);
    for (int i = 0; i < torus_.size(major); ++i) {
      const std::string name = fmt::format("{}={}", to_char(major), i);
      const double half = Svg::width(name, kLetters) / 2 + 1;
      const auto is_free = [&](double at) {  // not under the example's outline
        return at + half < mine_x || at - half > mine_x + cell;
      };
      const double left = x + run * i + half + 0.5, right = x + run * (i + 1) - half - 0.5;
      if (2 * half + 1 > run) continue;  // it would reach into the next run
      if (is_free(left)) {
        svg.text(left, y + base, name, {kLetters, ""});
      } else if (is_free(right)) {
        svg.text(right, y + base, name, {kLetters, ""});
      }
    }
  }
  svg.close();
}

struct Glyphs::Map {
  double w, h;         ///< size of one chip
  double plane, step;  ///< gap between planes; width of a plane and gap
  double x(int x, int z) const { return step * z + w * x; }
};

Glyphs::Map Glyphs::map(double w, double h, double widest, double highest) const {
  const int X = torus_.size(Axis::x), Y = torus_.size(Axis::y), Z = torus_.size(Axis::z);
  Map map{};
  map.plane = std::min(5.0, 0.2 * w / Z);
  map.w = std::min(widest, (w - map.plane * (Z - 1)) / (X * Z));
  map.h = std::min(highest, h / Y);
  map.step = map.w * X + map.plane;
  return map;
}

double Glyphs::group(Svg& svg, double x, double y, double w, const Axes& axes) const {
  const Map m = map(w, 40, 10, 8);
  const std::vector<int> members = torus_.group(chip_, axes);
  const auto left = [&](int chip) {
    return x + m.x(torus_.coordinate(chip, Axis::x), torus_.coordinate(chip, Axis::z));
  };
  const auto top = [&](int chip) { return y + m.h * torus_.coordinate(chip, Axis::y); };
  const double gap = std::min({0.6, m.w / 8, m.h / 8});
  const double inner_w = m.w - 2 * gap, inner_h = m.h - 2 * gap;
  std::string others;
  for (int chip = 0; chip < torus_.chips(); ++chip)
    if (std::find(members.begin(), members.end(), chip) == members.end())
      others += Svg::box(left(chip) + gap, top(chip) + gap, inner_w, inner_h);
  svg.path(others, "fill=\"#fff\" stroke=\"#999\" stroke-width=\"0.4\"");
  svg.open("", "group",
           fmt::format("the group of {} over {}", torus_.name(chip_), axes.to_string()));
  std::string links;
  for (std::size_t i = 1; i < members.size(); ++i)
    links += Svg::stroke(left(members[i - 1]) + m.w / 2, top(members[i - 1]) + m.h / 2,
                         left(members[i]) + m.w / 2, top(members[i]) + m.h / 2);
  // A group of all chips needs no links.
  if (!others.empty()) svg.path(links, "stroke=\"#0072b2\" stroke-width=\"0.9\"");
  for (int member : members)
    svg.rect(left(member) + gap, top(member) + gap, inner_w, inner_h,
             member == chip_ ? "fill=\"#000\"" : "fill=\"#0072b2\"", torus_.name(member));
  svg.close();
  if (fits(std::to_string(members.size() - 1), m.w) && m.h >= kLetters)
    for (std::size_t i = 0; i < members.size(); ++i)
      svg.text(left(members[i]) + m.w / 2, top(members[i]) + m.h / 2 + 0.36 * kLetters,
               std::to_string(i), {kLetters, "middle", "#fff"});
  return m.h * torus_.size(Axis::y);
}

double Glyphs::legend(Svg& svg, double x, double y, double w) const {
  const int X = torus_.size(Axis::x), Y = torus_.size(Axis::y), Z = torus_.size(Axis::z);
  constexpr double kTop = 16, kLeft = 14;
  const Map m = map(w - kLeft, 80, 24, 13);
  const double x0 = x + kLeft, y0 = y + kTop;
  if (fits(fmt::format("z={}", Z - 1), m.step)) {
    for (int z = 0; z < Z; ++z)
      svg.text(x0 + m.x(0, z), y + 6, fmt::format("z={}", z), {kLetters, "start", "#000", true});
  } else {
    svg.text(x0, y + 6, fmt::format("z=0 to {}, left to right", Z - 1));
  }
  svg.text(x0, y + kTop - 2.5, X == 1 ? "x=0" : fmt::format("x=0..{} across", X - 1));
  if (m.h >= kLetters)
    for (int r = 0; r < Y; ++r)
      svg.text(x, y0 + m.h * r + m.h / 2 + 2.2, fmt::format("{}{}", Y > 10 ? "" : "y=", r));
  else
    svg.text(x, y0 + 6, "y");
  for (int chip = 0; chip < torus_.chips(); ++chip) {
    Place place;
    for (Axis a : kAxes) place[a] = torus_.coordinate(chip, a);
    const double cx = x0 + m.x(place[Axis::x], place[Axis::z]);
    const double cy = y0 + m.h * place[Axis::y];
    svg.rect(cx, cy, m.w, m.h, colour(place) + " stroke=\"#555\" stroke-width=\"0.4\"",
             torus_.name(chip));
    if (fits(text(place), m.w) && m.h >= kLetters)
      svg.text(cx + m.w / 2, cy + m.h / 2 + 0.36 * kLetters, text(place), {kLetters, "middle"});
    if (chip == chip_)
      svg.rect(cx, cy, m.w, m.h, "fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"");
  }
  return kTop + m.h * Y;
}

}  // namespace shardproof
