#include "golden/corpus/detail/collective_samples.h"

#include <fmt/format.h>

#include "golden/corpus/detail/stacked.h"

namespace shardproof::corpus {
namespace {

class Samples {
 public:
  std::vector<CollectiveSample> all() {
    const std::vector<Axes> lists = ordered_axes();
    for (const Axes& moved : lists) {
      if (moved.empty()) continue;
      for (const Axes& rest : lists) {
        if (rest.has_any(moved)) continue;
        const Axes whole = rest.with(moved);
        add("all_gather", one(whole, {}), one(rest, {}), moved);
        add("slice", one(rest, {}), one(whole, {}), moved);
        add("reduce_scatter", one(rest, moved), one(whole, {}), moved);
        if (moved == moved.sorted()) add("all_reduce", one(rest, moved), one(rest, {}), moved);
      }
      for (const Axes& other : lists) {  // axes of partial sums that stay
        if (other.empty() || other != other.sorted() || other.has_any(moved)) continue;
        const Axes both = moved.with(other);
        add("reduce_scatter", one({}, both), one(moved, other), moved);
        if (moved == moved.sorted()) add("all_reduce", one({}, both), one({}, other), moved);
        add("all_gather", one(moved, other), one({}, other), moved);
      }
      for (const Axes& as : lists)
        if (same_set(moved, as)) add_moves(moved, as, lists);
    }
    return samples_;
  }

 private:
  static bool same_set(const Axes& a, const Axes& b) { return a.sorted() == b.sorted(); }

  /// Returns a layout whose dim for the next op, E or B, has these axes.
  Layout one(const Axes& axes, const Axes& partial) const {
    const bool last = in_turn_ % 2 == 0;
    return {{{'B', last ? Axes() : axes}, {'E', last ? axes : Axes()}}, partial.sorted()};
  }

  void add(const std::string& op, const Layout& operand, const Layout& result, const Axes& axes) {
    const char dim = in_turn_ % 2 == 0 ? 'E' : 'B';
    samples_.push_back({operand, result, op,
                        op == "all_reduce"
                            ? fmt::format("{}(t, {})", op, axes.to_string())
                            : fmt::format("{}(t, {}, {})", op, dim, axes.to_string())});
    if (op == "all_reduce" || op == "reduce_scatter") ++in_turn_;
  }

  void add_moves(const Axes& moved, const Axes& as, const std::vector<Axes>& lists) {
    if (!(moved == as)) {
      const Layout from = one(moved, {});
      const char dim = in_turn_ % 2 == 0 ? 'E' : 'B';
      samples_.push_back(
          {from, one(as, {}), "permute_axes",
           fmt::format("permute_axes(t, {}, {}->{})", dim, moved.to_string(), as.to_string())});
      ++in_turn_;
    }
    const std::string call = moved == as ? fmt::format("all_to_all(t, B->E, {})", moved.to_string())
                                         : fmt::format("all_to_all(t, B->E, {} as {})",
                                                       moved.to_string(), as.to_string());
    for (const Axes& before : lists)    // axes that stay on B
      for (const Axes& rest : lists) {  // axes already on E
        if (before.has_any(moved) || rest.has_any(moved) || rest.has_any(before)) continue;
        if (!(moved == as) && !(before.empty() && rest.empty())) continue;
        samples_.push_back({{{{'B', before.with(moved)}, {'E', rest}}, Axes()},
                            {{{'B', before}, {'E', rest.with(as)}}, Axes()},
                            "all_to_all",
                            call});
      }
    for (const Axes& other : lists)  // axes of partial sums that stay
      if (moved == as && other.size() == 1 && !other.has_any(moved))
        samples_.push_back({{{{'B', moved}, {'E', Axes()}}, other},
                            {{{'B', Axes()}, {'E', moved}}, other},
                            "all_to_all",
                            call});
  }

  std::vector<CollectiveSample> samples_;
  int in_turn_ = 0;
};

}  // namespace

std::vector<CollectiveSample> collective_samples() { return Samples().all(); }

}  // namespace shardproof::corpus
