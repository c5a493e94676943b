// The cheapest path between two layouts, held against a search of its own: every legal op sequence.
#include "engine/layouts/path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "engine/program/typing.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/text_rows.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Steps = std::vector<std::string>;

Shape all_divide(const Layout& layout) { return Shape(layout.rank(), 48); }

/// The ops of the path as text, each on a value v.
Steps text_of(const Path& path) {
  Steps text;
  for (const Move& move : path.moves) {
    Op op = move.op;
    op.args = {"v"};
    text.push_back(op.to_string());
  }
  return text;
}

TEST(Path, IsThatOfTheTable) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "paths.txt")) {
    const std::vector<std::string> ends = parts_of(row[0], "->");
    const Layout from = Layout::parse(ends.at(0)), to = Layout::parse(ends.at(1));
    Shape shape = all_divide(from);
    if (!row[2].empty()) {
      shape.clear();
      for (const std::string& extent : parts_of(row[2], " ")) shape.push_back(std::stoll(extent));
    }
    std::string said;
    const std::string refused = message_of([&] {
      said = fmt::format("{}",
                         fmt::join(text_of(cheapest_path(from, to, shape, Torus(4, 2, 3))), "\n"));
    });
    EXPECT_TRUE(matches(said + refused, lines_of(row[1]))) << row.place << ": " << said << refused;
  }
}

// ---- the same search, written for clearness: Bellman and Ford over every layout ----

/// A layout as words: the subscript of each dim, and the axes that are still partial sums.
struct Place {
  std::vector<std::string> dims;
  std::string partial;
  auto operator<=>(const Place&) const = default;
};

Place place(const Layout& layout) {
  Place at;
  for (const Layout::Dim& dim : layout.dims()) at.dims.push_back(dim.axes.to_string());
  at.partial = layout.partial().to_string();
  return at;
}

std::string sorted(std::string text) {
  std::sort(text.begin(), text.end());
  return text;
}

bool within(const std::string& some, const std::string& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](char c) { return all.find(c) != std::string::npos; });
}

std::string less(std::string all, const std::string& some) {
  std::erase_if(all, [&](char c) { return some.find(c) != std::string::npos; });
  return all;
}

const std::vector<std::string> kRuns{"x",  "y",   "z",   "xy",  "yx",  "xz",  "zx", "yz",
                                     "zy", "xyz", "xzy", "yxz", "yzx", "zxy", "zyx"};

std::int64_t power(std::int64_t base, std::size_t exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

/// Elements of one chip on 4x4x4, of 64 in each dim.
std::int64_t chips_own(const Place& at) {
  std::int64_t n = power(64, at.dims.size());
  for (const std::string& axes : at.dims) n /= power(4, axes.size());
  return n;
}

/// What all 64 chips send where each has, or gets, D elements in groups of 4 a axis: all but one
/// block of them.
std::int64_t sent(std::int64_t D, const std::string& axes) {
  return 64 * (D - D / power(4, axes.size()));
}

/// Of the 64 chips those that hold another block in the order `as` than in the order `axes`.
std::int64_t movers(const std::string& axes, const std::string& as) {
  std::int64_t moved = 0;
  for (int chip = 0; chip < 64; ++chip) {
    const std::map<char, int> at{{'x', chip / 16}, {'y', chip / 4 % 4}, {'z', chip % 4}};
    int before = 0, after = 0;
    for (char c : axes) before = 4 * before + at.at(c);
    for (char c : as) after = 4 * after + at.at(c);
    moved += before == after ? 0 : 1;
  }
  return moved;
}

struct Arc {
  Place to;
  std::int64_t price;
};

/// Every op of docs/typing.md that moves or slices, on this layout; axes in dims of `open` only.
std::vector<Arc> arcs(const Place& at, const std::vector<std::size_t>& open) {
  std::vector<Arc> all;
  std::string used = at.partial;
  for (const std::string& axes : at.dims) used += axes;
  const std::int64_t D = chips_own(at);
  const auto with = [&](std::size_t d, const std::string& axes) {
    Place to = at;
    to.dims[d] = axes;
    return to;
  };
  for (const std::string& run : kRuns) {
    const bool partial_sums = within(run, at.partial);
    if (partial_sums && run == sorted(run)) {
      Place to = at;
      to.partial = less(at.partial, run);
      all.push_back({to, 2 * sent(D, run)});  // all_reduce
    }
    for (std::size_t d : open) {
      const std::string& own = at.dims[d];
      if (partial_sums) {
        Place to = with(d, own + run);
        to.partial = less(at.partial, run);
        all.push_back({to, sent(D, run)});  // reduce_scatter
      }
      if (less(used, run) == used) all.push_back({with(d, own + run), 0});  // slice
      if (run != own && sorted(run) == sorted(own))
        all.push_back({with(d, run), D * movers(own, run)});  // permute_axes
      if (!own.ends_with(run)) continue;
      const std::string rest = own.substr(0, own.size() - run.size());
      all.push_back({with(d, rest), sent(D * power(4, run.size()), run)});  // all_gather
      for (std::size_t e : open)
        for (const std::string& as : kRuns) {
          if (e == d || sorted(as) != sorted(run)) continue;
          Place to = with(d, rest);
          to.dims[e] += as;
          all.push_back({to, sent(D, run)});  // all_to_all
        }
    }
  }
  return all;
}

/// Price and number of ops of the cheapest path from a layout to every other.
std::map<Place, std::pair<std::int64_t, int>> reachable(const Place& from,
                                                        const std::vector<std::size_t>& open,
                                                        const Shape& shape, const Torus& torus) {
  const auto divides = [&](const Place& at) {
    for (std::size_t d : open)
      if (shape[d] % torus.size(Axes::parse(at.dims[d])) != 0) return false;
    return true;
  };
  std::map<Place, std::pair<std::int64_t, int>> best{{from, {0, 0}}};
  std::set<Place> changed{from};
  while (!changed.empty()) {
    std::set<Place> next;
    for (const Place& at : changed)
      for (const Arc& arc : arcs(at, open)) {
        if (!divides(arc.to)) continue;
        const std::pair price{best.at(at).first + arc.price, best.at(at).second + 1};
        const auto [known, is_new] = best.try_emplace(arc.to, price);
        if (!is_new && known->second <= price) continue;
        known->second = price;
        next.insert(arc.to);
      }
    changed = std::move(next);
  }
  return best;
}

std::vector<std::size_t> changing(const Layout& from, const Layout& to) {
  std::vector<std::size_t> open;
  for (std::size_t d = 0; d < from.rank(); ++d)
    if (!(from.dims()[d].axes == to.dims()[d].axes)) open.push_back(d);
  return open;
}

/// A layout to go to: partial over some of the source's axes, or complete.
Layout draw_target(const Layout& from, const std::string& letters) {
  Axes kept;
  for (Axis a : from.partial())
    if (draw_int(0, 2) == 0) kept = kept.with(a);
  const Layout drawn = draw_layout(letters);
  std::vector<Layout::Dim> dims = drawn.dims();
  for (Layout::Dim& dim : dims) dim.axes = dim.axes.without(kept);
  return Layout(dims, kept);
}

/// A shape that divides as both layouts need, though perhaps no layout between them.
Shape draw_tight_shape(const Layout& from, const Layout& to, const Torus& torus) {
  Shape shape;
  for (std::size_t d = 0; d < from.rank(); ++d)
    shape.push_back(std::lcm(std::int64_t{torus.size(from.dims()[d].axes)},
                             std::int64_t{torus.size(to.dims()[d].axes)}) *
                    draw_int(1, 2));
  return shape;
}

RC_GTEST_PROP(Path, IsTheCheapestOfAllAndTheShortestOfThose, ()) {
  const Torus torus = draw_torus();
  const std::string letters = *rc::gen::element<std::string>("BE", "BLE");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_target(from, letters);
  const Shape shape = *rc::gen::arbitrary<bool>() ? draw_shape(torus, letters.size())
                                                  : draw_tight_shape(from, to, torus);
  RC_CLASSIFY(to.is_partial(), "to a partial sum");
  const auto best = reachable(place(from), changing(from, to), shape, torus);
  const auto known = best.find(place(to));
  RC_LOG() << from.to_string() << " to " << to.to_string() << " on " << torus.to_string() << "\n";
  if (known == best.end()) {
    RC_TAG("no path");
    RC_ASSERT(label_of([&] { cheapest_path(from, to, shape, torus); }) == "path_c2");
    return;
  }
  const Path path = cheapest_path(from, to, shape, torus);
  RC_CLASSIFY(path.moves.size() > 2, "more than two ops");
  for (const std::string& step : text_of(path)) RC_LOG() << step << "\n";
  RC_ASSERT(path.price == known->second.first);
  RC_ASSERT(static_cast<int>(path.moves.size()) == known->second.second);
  // And it is what it says to cost.
  std::int64_t price = 0;
  Place at = place(from);
  for (const Move& move : path.moves) {
    std::int64_t least = -1;
    for (const Arc& arc : arcs(at, changing(from, to)))
      if (arc.to == place(move.to) && (least < 0 || arc.price < least)) least = arc.price;
    RC_ASSERT(least >= 0);
    price += least;
    at = place(move.to);
  }
  RC_ASSERT(price == path.price);
}

TEST(Path, IsTheCheapestToEveryLayoutOfTwoDims) {
  const Torus torus(4, 2, 3);
  const Shape shape{24, 24};
  std::set<Layout,
           decltype([](const Layout& a, const Layout& b) { return a.to_string() < b.to_string(); })>
      layouts;
  for (const std::string& run : kRuns)
    for (std::size_t cut = 0; cut <= run.size(); ++cut) {
      layouts.insert(Layout(
          {{'B', Axes::parse(run.substr(0, cut))}, {'E', Axes::parse(run.substr(cut))}}, Axes()));
    }
  layouts.insert(Layout::parse("BE"));
  EXPECT_EQ(layouts.size(), 49U);
  for (const char* source : {"B_zyxE", "B_yE_xz", "BE_x partialsum-yz", "B_zE partialsum-x"}) {
    const Layout from = Layout::parse(source);
    for (const Layout& to : layouts) {
      const auto best = reachable(place(from), changing(from, to), shape, torus);
      const Path path = cheapest_path(from, to, shape, torus);
      EXPECT_EQ(std::pair(path.price, static_cast<int>(path.moves.size())), best.at(place(to)))
          << source << " to " << to.to_string();
    }
  }
}

/// The steps and the price of a path; none where there is none.
std::optional<std::pair<Steps, std::int64_t>> answer(const Layout& from, const Layout& to,
                                                     const Shape& shape, const Torus& torus) {
  try {
    const Path path = cheapest_path(from, to, shape, torus);
    return std::pair(text_of(path), path.price);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A thread keeps the paths that it was asked for: what it answers of them is what a thread does
// that was asked nothing before.
RC_GTEST_PROP(Path, IsTheSameAskedAgainAndByAnotherThread, ()) {
  const std::string letters = *rc::gen::element<std::string>("BE", "BLE", "BF");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_target(from, letters);
  // Of the same layouts on several tori, with shapes that divide other layouts between them.
  for (int i = 0; i < 4; ++i) {
    const Torus torus = draw_torus();
    const Shape shape = draw_tight_shape(from, to, torus);
    const auto first = answer(from, to, shape, torus);
    const auto again = answer(from, to, shape, torus);
    std::optional<std::pair<Steps, std::int64_t>> anew;
    std::thread([&] { anew = answer(from, to, shape, torus); }).join();
    RC_ASSERT(first == anew);
    RC_ASSERT(again == anew);
  }
}

RC_GTEST_PROP(Path, IsTypedOpByOpThroughLayoutsThatDivide, ()) {
  const Torus torus = draw_torus();
  const std::string letters = *rc::gen::element<std::string>("BLE", "BE", "BMKQ", "EHQ");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_target(from, letters);
  RC_CLASSIFY(from.is_partial(), "from a partial sum");
  const Shape shape = *rc::gen::arbitrary<bool>() ? draw_shape(torus, letters.size())
                                                  : draw_tight_shape(from, to, torus);
  Path path;
  try {
    path = cheapest_path(from, to, shape, torus);
  } catch (const Error& error) {
    RC_ASSERT(error.label() == "path_c2");
    RC_DISCARD("no path");
  }
  RC_CLASSIFY(path.moves.size() > 2, "more than two ops");
  Type now{.layout = from, .shape = shape, .integer = false};
  const std::vector<std::size_t> open = changing(from, to);
  for (const Move& move : path.moves) {
    Op op = move.op;
    op.args = {"v"};
    RC_LOG() << op.to_string() << "\n";
    const Type next = infer(op, {now}, torus)[0];
    RC_ASSERT(next.layout == move.to);
    local_shape(next.layout, next.shape, torus);  // throws where it does not divide
    for (std::size_t d = 0; d < from.rank(); ++d)
      if (std::find(open.begin(), open.end(), d) == open.end())
        RC_ASSERT(next.layout.dims()[d] == from.dims()[d]);
    now = next;
  }
  RC_ASSERT(now.layout == to);
  RC_ASSERT(now.shape == shape);
  std::set<Place> places{place(from)};  // never twice through one
  for (const Move& move : path.moves) RC_ASSERT(places.insert(place(move.to)).second);
}

RC_GTEST_PROP(Path, IsNeverDearerThanToGatherAllAndSlice, ()) {
  const std::string letters = *rc::gen::element<std::string>("BLE", "BMKQ");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_target(from, letters);
  const Torus torus = draw_torus();
  // Partial sums first, then the dims that change, one after the other; slices are free.
  std::int64_t price = 0;
  Place at = place(from);
  const std::string summed = less(at.partial, to.partial().to_string());
  if (!summed.empty()) price += 2 * sent(chips_own(at), summed);
  for (std::size_t d : changing(from, to)) {
    const std::string axes = at.dims[d];
    at.dims[d] = "";
    if (!axes.empty()) price += sent(chips_own(at), axes);
  }
  RC_ASSERT(cheapest_path(from, to, draw_shape(torus, letters.size()), torus).price <= price);
}

RC_GTEST_PROP(Path, DependsOnTheTorusByDivisibilityAlone, ()) {
  const std::string letters = *rc::gen::element<std::string>("BLE", "BE", "BMKQ", "BLHQ");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_target(from, letters);
  const Shape shape = all_divide(from);
  const Steps ops = text_of(cheapest_path(from, to, shape, Torus(4, 2, 3)));
  for (const Torus& torus : {Torus(2, 2, 2), Torus(3, 2, 2), Torus(1, 1, 1), Torus(2, 3, 4)})
    RC_ASSERT(text_of(cheapest_path(from, to, shape, torus)) == ops);
}

}  // namespace
}  // namespace shardproof
