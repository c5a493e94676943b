#include "golden/trace/pair/plain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "golden/compare/reach_meter.h"
#include "golden/trace/pair/matcher.h"
#include "golden/trace/pair/plain_array.h"
#include "golden/trace/pair/plain_layouts.h"
#include "golden/trace/value/same_bits.h"
#include "weights/base/detail/index.h"

namespace shardproof::dump {
namespace {

/// What a writer may have otherwise without a model that could convert it.
constexpr const char* kConventions[] = {"heads", "rope_pairs", "score_base", "logits_base",
                                        "norm_gain"};
/// A layout is called wrong if another is nearer by no more than this chance, which is that of
/// bounds: log2.
constexpr double kChance = -41;

double distance(double a, double b) {
  if (same_bits(a, b)) return 0.0;
  const double d = std::abs(a - b);
  return std::isfinite(d) ? d : HUGE_VAL;
}

std::string word(const Attributes& attributes, std::string_view name) {
  const std::string* const text = find(attributes, name);
  return text == nullptr ? "" : *text;
}

/// Compares arrays of one name, each put together by its own layout.
class PlainPairing {
 public:
  PlainPairing(Plain& found, const Dump& a, const Dump& b, bool same)
      : found_(found), dumps_{&a, &b}, arrays_{plain_arrays(a), plain_arrays(b)}, same_(same) {}

  void run() {
    for (const char* const name : kConventions)
      if (word(dumps_[0]->attributes, name) != word(dumps_[1]->attributes, name))
        found_.differences.push_back(
            {"conventions",
             fmt::format("{} {:?} in A, {:?} in B", name, word(dumps_[0]->attributes, name),
                         word(dumps_[1]->attributes, name))});
    const std::string order_a = word(dumps_[0]->attributes, "defined_order"),
                      order_b = word(dumps_[1]->attributes, "defined_order");
    const bool exact = word(dumps_[0]->attributes, "arithmetic") == "exact" &&
                       word(dumps_[1]->attributes, "arithmetic") == "exact";
    holds_bits_ = same_ && (exact || (!order_a.empty() && order_a == order_b));
    if (same_)
      by_places();
    else
      by_names();
  }

 private:
  void by_names() {
    std::set<std::string> met;
    for (std::size_t i = 0; i < arrays_[0].size(); ++i) {
      PairRow row;
      row.title = arrays_[0][i].title;
      row.a = i;
      const auto same = std::find_if(arrays_[1].begin(), arrays_[1].end(), [&](const auto& other) {
        return other.title == row.title && other.name == arrays_[0][i].name;
      });
      const auto other =
          same != arrays_[1].end()
              ? same
              : std::find_if(arrays_[1].begin(), arrays_[1].end(),
                             [&](const auto& one) { return one.title == row.title; });
      if (other != arrays_[1].end()) {
        row.b = static_cast<std::size_t>(other - arrays_[1].begin());
        compare(row, arrays_[0][i], *other);
      }
      met.insert(row.title);
      found_.rows.push_back(std::move(row));
    }
    for (std::size_t j = 0; j < arrays_[1].size(); ++j) {
      if (met.contains(arrays_[1][j].title)) continue;
      PairRow row;
      row.title = arrays_[1][j].title;
      row.b = j;
      found_.rows.push_back(std::move(row));
    }
  }

  void find_replicas(const PlainArray& array, bool of_b) {
    if (array.replicas.empty()) return;
    const std::string text =
        fmt::format("{}: {}: {}", of_b ? "B" : "A", array.title, array.replicas);
    if (std::find(found_.findings.begin(), found_.findings.end(), text) == found_.findings.end())
      found_.findings.push_back(text);
  }

  void compare(PairRow& row, PlainArray& a, PlainArray& b) {
    row.input = a.pass.empty();
    row.coarser = row_of(a.encoding).unit >= row_of(b.encoding).unit ? a.encoding : b.encoding;
    for (const bool of_b : {false, true})
      if (const std::string& why = (of_b ? b : a).why; !why.empty()) {
        row.why = fmt::format("in {}: {}", of_b ? "B" : "A", why);
        return;
      }
    std::string letters = dims_of(a), of_b = dims_of(b);
    // Partial sums side by side, if both have as many; else their sums.
    const bool alike = letters[0] != kParts || shape_of(a)[0] == shape_of(b)[0];
    if (letters.size() != of_b.size() || !alike)
      letters = a.layout.letters(), of_b = b.layout.letters();
    const bool added = letters.find(kWords) != letters.npos && letters[0] != kParts &&
                       (a.layout.is_partial() || b.layout.is_partial());
    if (added) {
      row.why = "partial sums are words of other chips";
      return;
    }
    if (!std::is_permutation(letters.begin(), letters.end(), of_b.begin(), of_b.end())) {
      row.why = fmt::format("the dims are {} in A, {} in B", letters, of_b);
      return;
    }
    const WholeValue in_a = whole_array(*dumps_[0], a, a.layout, letters);
    const WholeValue in_b = whole_array(*dumps_[1], b, b.layout, letters);
    find_replicas(a, false);
    find_replicas(b, true);
    if (!extents_agree(row, a, b, in_a.shape, in_b.shape, letters)) return;
    row.apart = measure(in_a, in_b, row.coarser);
    const bool same = row.apart.same() && !in_a.copies_differ && !in_b.copies_differ &&
                      !in_a.computed && !in_b.computed;
    if (same) row.likeness = Likeness::same;
    if (row.apart.unequal > 0) {
      find_layout(row, a, in_a, in_b, false, letters);
      find_layout(row, b, in_b, in_a, true, letters);
    }
  }

  bool extents_agree(PairRow& row, const PlainArray& a, const PlainArray& b, const Shape& in_a,
                     const Shape& in_b, const std::string& letters) {
    for (std::size_t d = 0; d < letters.size(); ++d) {
      if (in_a[d] == in_b[d]) continue;
      if (letters[d] == 'C') {
        row.why = "blocks of the vocabulary are counted by the layout";
        row.b.reset();
        return false;
      }
      const PlainArray& longer = in_a[d] > in_b[d] ? a : b;
      if (longer.padded.find(letters[d]) != std::string::npos) continue;
      row.why = fmt::format("by its layout {} is {} in A, {} in B", letters[d], in_a[d], in_b[d]);
      if (!a.whole || !b.whole)
        found_.findings.push_back(fmt::format("{}: {}: {} in A, {} in B", row.title, row.why,
                                              a.layout.to_string(), b.layout.to_string()));
      return false;
    }
    return true;
  }

  /// Calls see(place in a, number of a, number of b) for the elements that both have: what is
  /// padded in one alone is left out.
  template <class See>
  static void each_of_both(const WholeValue& a, const WholeValue& b, See&& see) {
    const bool alike = a.shape == b.shape;
    for (std::size_t i = 0; i < a.numbers.size(); ++i) {
      auto place = static_cast<std::int64_t>(i);
      bool inside = true;
      if (!alike) {
        const Shape index = global_index(a.shape, place);
        place = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
          inside = inside && index[d] < b.shape[d];
          place = place * b.shape[d] + index[d];
        }
      }
      if (inside && a.present[i] && b.present[at(place)])
        see(static_cast<std::int64_t>(i), a.numbers[i], b.numbers[at(place)]);
    }
  }
  static Apart measure(const WholeValue& a, const WholeValue& b, NumberFormat coarser) {
    return apart(coarser, [&](const auto& see) { each_of_both(a, b, see); });
  }

  /// Finds another layout of an array that makes it the other trace's value, or so much nearer to
  /// it that chance does not explain it.
  void find_layout(const PairRow& row, PlainArray& array, const WholeValue& own,
                   const WholeValue& other, bool of_b, const std::string& letters) {
    if (array.whole) return;
    std::optional<Layout> best;
    double least = row.apart.most, least_chance = kChance;
    const std::vector<Layout> layouts = other_layouts(array.layout, array.torus);
    for (const Layout& layout : layouts) {
      PlainArray again = array;
      const WholeValue value = whole_array(*dumps_[of_b ? 1 : 0], again, layout, letters);
      // Replicas that agree under the declared layout must under the right one.
      if (value.copies_differ && array.replicas.empty()) continue;
      MovedDistances moved;
      double most = 0.0;
      each_of_both(value, other, [&](std::int64_t place, double v, double theirs) {
        const double left = distance(v, theirs);
        most = std::max(most, left);
        if (!own.present[at(place)] || same_bits(v, own.numbers[at(place)])) return;
        moved.declared.push_back(distance(own.numbers[at(place)], theirs));
        moved.other.push_back(left);
      });
      if (!(most < row.apart.most)) continue;
      // The same numbers are a fact. Else each layout that is tried has its chance.
      const double chance =
          most == 0 ? -HUGE_VAL
                    : chance_of_nearer(moved) + std::log2(static_cast<double>(layouts.size()));
      if (chance <= least_chance) least = most, least_chance = chance, best = layout;
    }
    if (!best) return;
    found_.findings.push_back(fmt::format(
        "{}: {} is declared {}; as {} it would be {}'s{}", of_b ? "B" : "A", row.title,
        array.layout.to_string(), best->to_string(), of_b ? "A" : "B",
        least == 0 ? "" : fmt::format(" up to {:.1g} of the difference", least / row.apart.most)));
  }

  // ---- rows and positions ----

  /// Returns the passes of a side with B and L, by the arrays that have both.
  static TokenPlaces places(const std::vector<PlainArray>& arrays, const Dump& dump) {
    std::map<std::int64_t, std::pair<std::string, Shape>> passes;
    for (const PlainArray& array : arrays) {
      const auto b = array.layout.find('B'), l = array.layout.find('L');
      if (array.pass.empty() || !b || !l || !array.why.empty()) continue;
      auto& [name, extents] = passes[place_of_pass(array.pass)];
      name = array.pass;
      if (extents.empty()) extents = {array.shape[*b], array.shape[*l]};
    }
    std::vector<std::pair<std::string, Shape>> all;
    for (auto& [place, pass] : passes) all.push_back(pass);
    return places_of(all, dump);
  }
  static std::vector<MatchedArray> matched(const std::vector<PlainArray>& arrays) {
    std::vector<MatchedArray> all;
    for (const PlainArray& array : arrays) {
      const bool last = array.group.starts_with("last ");
      const std::string parts(array.layout.is_partial() ? 1 : 0, kParts);
      all.push_back({array.pass, parts + (last ? array.group.substr(5) : array.group),
                     array.why.empty() ? dims_of(array) : "",
                     array.why.empty() ? shape_of(array) : Shape{},
                     without_pass(array.name, array.pass)});
    }
    return all;
  }

  void by_places() {
    const Matcher matcher(matched(arrays_[0]), places(arrays_[0], *dumps_[0]), matched(arrays_[1]),
                          places(arrays_[1], *dumps_[1]));
    std::vector<std::set<std::int64_t>> met(arrays_[1].size());
    for (std::size_t i = 0; i < arrays_[0].size(); ++i)
      matcher.each(false, i, [&](std::int64_t, const Matcher::Partner& partner) {
        met[partner.array].insert(partner.element);
      });
    for (std::size_t i = 0; i < arrays_[0].size(); ++i) add(matcher, false, i, {});
    for (std::size_t j = 0; j < arrays_[1].size(); ++j) add(matcher, true, j, met[j]);
  }

  /// Adds the row of an array, but for elements that were met before.
  void add(const Matcher& matcher, bool turned, std::size_t index,
           const std::set<std::int64_t>& met) {
    PlainArray& mine = arrays_[turned ? 1 : 0][index];
    PairRow row;
    row.title = mine.title;
    row.turned = turned;
    (turned ? row.b : row.a) = index;
    row.coarser = mine.encoding;
    row.input = mine.pass.empty();
    if (!mine.why.empty()) {
      row.why = mine.why;
      found_.rows.push_back(std::move(row));
      return;
    }
    const WholeValue own = whole_array(*dumps_[turned ? 1 : 0], mine, mine.layout, dims_of(mine));
    find_replicas(mine, turned);
    bool copies = own.copies_differ, computed = own.computed;
    std::map<std::size_t, WholeValue> others;
    const auto each = [&](const auto& see) {
      matcher.each(turned, index, [&](std::int64_t element, const Matcher::Partner& partner) {
        if (met.contains(element)) return;
        PlainArray& theirs = arrays_[turned ? 0 : 1][partner.array];
        const auto [other, is_new] = others.try_emplace(partner.array);
        if (is_new) {
          other->second =
              whole_array(*dumps_[turned ? 0 : 1], theirs, theirs.layout, dims_of(theirs));
          find_replicas(theirs, !turned);
          copies = copies || other->second.copies_differ;
          computed = computed || other->second.computed;
        }
        auto& first = turned ? row.a : row.b;
        if (!first) first = partner.array;
        if (!own.present[at(element)] || !other->second.present[at(partner.element)]) return;
        const double x = own.numbers[at(element)], y = other->second.numbers[at(partner.element)];
        see(element, turned ? y : x, turned ? x : y);
      });
    };
    matcher.each(turned, index, [&](std::int64_t, const Matcher::Partner& partner) {
      const NumberFormat theirs = arrays_[turned ? 0 : 1][partner.array].encoding;
      if (row_of(theirs).unit > row_of(row.coarser).unit) row.coarser = theirs;
    });
    row.apart = apart(row.coarser, each);
    if (turned && row.apart.elements == 0 && !met.empty()) return;  // all were met
    if (row.paired() && row.apart.elements > 0) {
      if (row.apart.same() && !copies && !computed) {
        row.likeness = Likeness::same;
      } else if (holds_bits_ && !computed) {
        row.likeness = first_.empty() ? Likeness::not_the_same : Likeness::operands;
        row.why = first_.empty() ? "both claim one defined order of sums"
                                 : first_ + ", which is earlier, is not the same";
        if (first_.empty()) first_ = row.title;
      }
    }
    found_.rows.push_back(std::move(row));
  }

  Plain& found_;
  const Dump* dumps_[2];
  std::vector<PlainArray> arrays_[2];
  bool same_, holds_bits_ = false;
  std::string first_;  // that is not the same
};

}  // namespace

std::int64_t Plain::count(Likeness likeness) const {
  return std::count_if(rows.begin(), rows.end(), [&](const PairRow& row) {
    return row.likeness == likeness && row.paired();
  });
}

std::int64_t Plain::different() const {
  return std::count_if(rows.begin(), rows.end(),
                       [](const PairRow& row) { return row.paired() && row.apart.unequal > 0; });
}

int Plain::exit_code() const {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const PairRow& row) {
    return row.likeness == Likeness::same && !row.input;
  });
  const bool all = std::all_of(rows.begin(), rows.end(), [](const PairRow& row) {
    return !row.paired() || row.likeness == Likeness::same;
  });
  return any && all && findings.empty() ? 0 : 1;
}

Plain compare_plain(const Dump& a, const Dump& b, bool same) {
  Plain found;
  PlainPairing(found, a, b, same).run();
  return found;
}

}  // namespace shardproof::dump
