// Faults of masks: the keys that a query sees.
#include <fmt/format.h>

#include <algorithm>

#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

class Masks : Family {
 public:
  Masks(const Question& q, Search& search)
      : Family(q, search), pass_(q.replay().pass(q.place().pass)) {}

  void run() {
    const std::string& n = q_.name();
    if (n != "score" && n != "max" && n != "exp" && n != "denom" && n != "attn") return;
    // With ALiBi, moving the positions would also move the biases.
    if (q_.name() == "score" && q_.config().rope == Rope::alibi) return;
    const std::int64_t M = pass_.prefix.length + pass_.cached + pass_.L;
    const auto mask = [&](std::string detail, int parameters, auto&& start) {
      const std::optional<PassPlan> other = moved(pass_, 0, 2 * M + 2, start);
      if (!other) return;
      const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
        return m < bounds::Derivation::visible(*other, b, l);
      };
      if (exponentials_agree(sees))
        try_change({"mask", std::move(detail), parameters}, {.pass = other});
    };
    mask("each query also sees the key behind its own", 1, [](std::int64_t s) { return s + 1; });
    mask("a query does not see its own key", 1, [](std::int64_t s) { return s - 1; });
    mask("no mask: each query sees all keys", 2, [M](std::int64_t) { return M; });
    mask("positions of the pass from 0 on: the mask's upper left in place of its lower right", 3,
         [](std::int64_t) { return 0; });
    own_key_masked(false);
    own_key_masked(true);
    own_key_alone();
    before_append();
  }

 private:
  std::size_t own_key(std::size_t b, std::size_t l) const {
    return at(q_.replay().position(pass_, b, l));
  }

  /// Returns whether the dump's exponentials agree with a mask: 0 where a query sees no key, and
  /// not all 0 where it sees a key that it should not.
  template <class Sees>
  bool exponentials_agree(Sees&& sees) const {
    if (q_.name() == "exp" || !q_.replay().dumped(id("exp"))) return true;
    const bounds::IntervalTensor& e = q_.replay().value(id("exp"));
    const std::vector<bool> unspoken = q_.unspoken({pass_.name, q_.place().layer, "exp"}, e.shape);
    const std::size_t L = at(e.shape[1]), H = at(e.shape[2]), M = at(e.shape[3]);
    bool more = false, there = false;
    for (std::size_t i = 0; i < e.size(); ++i) {
      if (!unspoken.empty() && unspoken[i]) continue;
      const std::size_t b = i / M / H / L, l = i / M / H % L, m = i % M;
      const bool right = m < q_.replay().visible(pass_, b, l), now = sees(b, l, m);
      if (right && !now && e.center[i] != 0.0) return false;
      if (right || !now) continue;
      more = true;
      there = there || e.center[i] != 0.0;
    }
    return !more || there;
  }

  /// Returns the expected value after f(b, l, m, i, value) for element i, key m of query (b, l).
  template <class F>
  bounds::IntervalTensor each_key(F&& f) const {
    bounds::IntervalTensor y = q_.expected();
    const std::size_t L = at(y.shape[1]), H = at(y.shape[2]), M = at(y.shape[3]);
    for (std::size_t i = 0; i < y.size(); ++i) f(i / M / H / L, i / M / H % L, i % M, i, y);
    return y;
  }
  /// Hides each query's own key in a pass from position 0. The first query then sees no key, or
  /// with `but_the_first` still its own.
  void own_key_masked(bool but_the_first) {
    if (q_.name() != "score" && q_.name() != "exp") return;
    if (std::none_of(pass_.rows.begin(), pass_.rows.end(),
                     [](const PassRows& r) { return r.start == 0; }))
      return;
    const auto hidden = [&](std::size_t b, std::size_t l, std::size_t m) {
      return m == own_key(b, l) && (m > 0 || !but_the_first);
    };
    const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
      return m < q_.replay().visible(pass_, b, l) && !hidden(b, l, m);
    };
    if (!exponentials_agree(sees)) return;
    const std::string detail = "a query does not see its own key";
    try_value({"mask", detail + (but_the_first ? ", but the first one does" : ""), 1},
              each_key([&](auto b, auto l, auto m, std::size_t i, bounds::IntervalTensor& y) {
                if (hidden(b, l, m)) y.set(i, bounds::FunctionValue{});
              }));
  }

  void own_key_alone() {
    if (q_.name() != "score" && q_.name() != "exp") return;
    const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
      return m == own_key(b, l);
    };
    if (!exponentials_agree(sees)) return;
    // The own score is then the maximum, so its exponential is 1.
    const bool one = q_.name() == "exp" && !q_.replay().dumped(id("max"));
    try_value({"mask", "a query sees its own key alone", 4},
              each_key([&](auto b, auto l, auto m, std::size_t i, bounds::IntervalTensor& y) {
                if (!sees(b, l, m)) y.set(i, bounds::FunctionValue{});
                if (sees(b, l, m) && one) y.set(i, bounds::FunctionValue{1.0, 0.0, 0.0});
              }));
  }

  /// Reads a cache before the pass's own tokens are appended: their slots hold zeros. Without
  /// exponentials that contradict it, a mask explains the same numbers.
  void before_append() {
    if (q_.name() != "score" && q_.name() != "attn") return;
    const auto sees_old = [&](std::size_t b, std::size_t, std::size_t m) {
      return m < own_key(b, 0);
    };
    if (exponentials_agree(sees_old)) return;
    const std::string cache = id(q_.name() == "score" ? "k_cache" : "v_cache");
    bounds::IntervalTensor before = q_.value(cache);
    const std::size_t M = at(before.shape[1]), width = before.size() / at(before.shape[0]) / M;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t b = i / width / M, slot = i / width % M;
      if (slot + at(pass_.prefix.length) >= own_key(b, 0)) before.set(i, bounds::FunctionValue{});
    }
    try_change({"stale slot",
                fmt::format("reads {} as it was before the pass: zeros in its new slots", cache)},
               {.values = {{cache, std::move(before)}}});
  }

  const PassPlan& pass_;
};

}  // namespace

void try_masks(const Question& q, Search& search) { Masks(q, search).run(); }

}  // namespace shardproof::diagnosis
