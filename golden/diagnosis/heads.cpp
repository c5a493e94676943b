// Faults of the order of heads and channels, and of which caches a head or a row reads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

class Heads : Trial {
 public:
  Heads(const Question& q, Search& search)
      : Trial(q, search),
        pass_(q.replay().pass(q.place().pass)),
        letters_(q.step().lines().back().letters),
        caches_(caches_of(q)) {}

  void run() {
    if (!q_.raw() && q_.step().graph().of_keys()) channels();
    if (q_.step().graph().groups() && reads_caches()) groups(), prefixes();
    heads();
  }

 private:
  /// Returns whether heads of queries meet a cache of heads of keys.
  bool reads_caches() const {
    return letters_.find_first_of("HG") != letters_.npos && !caches_.empty() &&
           std::all_of(caches_.begin(), caches_.end(),
                       [this](const std::string& id) { return q_.value(id).shape.size() == 4; });
  }
  /// Rows of B that read a prefix other than ⌊b·N/B⌋.
  void prefixes() {
    const PassPlan* const filled = q_.replay().prefix_of(pass_);
    const std::int64_t B = pass_.batch(), N = pass_.prefix.rows;
    if (filled == nullptr || N == 1) return;
    prefix_of_rows("all rows read prefix 0", 0, [](std::int64_t) { return 0; });
    prefix_of_rows("row b reads prefix b mod N, not ⌊b·N/B⌋", 1,
                   [N](std::int64_t b) { return b % N; });
    // Rows counted from the chip's first row.
    std::set<std::int64_t> blocks;
    for (const Axes& set : q_.sets()) blocks.insert(q_.torus().size(set));
    for (const std::int64_t n : blocks)
      if (const std::int64_t own = B / n; n > 1 && B % n == 0) {
        prefix_of_rows(
            fmt::format("of {} rows on a chip, row b of the chip reads prefix ⌊b·N/B⌋", own), 2,
            [=](std::int64_t b) { return b % own * N / B; });
        prefix_of_rows(
            fmt::format("of {0} rows on a chip, row b of the chip reads prefix ⌊b·N/{0}⌋", own), 3,
            [=](std::int64_t b) { return b % own * N / own; });
      }
  }
  template <class Prefix>
  void prefix_of_rows(std::string detail, int parameters, Prefix&& prefix) {
    const std::int64_t B = pass_.batch(), N = pass_.prefix.rows;
    reading({"another layer's or pass's value", std::move(detail), parameters}, Of::prefixes,
            q_.expected().size() / at(B),
            [&](std::int64_t b) { return (prefix(b) - pass_.prefix.of_row(b, B) + N) % N; });
  }

  /// Query heads that read a kv head other than h·K/H.
  void groups() {
    const std::int64_t H = q_.step().extent('H'), K = q_.step().extent('K');
    if (K == 1 || K == H) return;
    kv_of_heads("query head h reads kv head h mod K, not h·K/H", 0,
                [K](std::int64_t h) { return h % K; });
    // Heads counted within a chip, which reads its own kv heads.
    std::set<std::int64_t> sizes;
    for (const Axes& set : q_.sets()) sizes.insert(q_.torus().size(set));
    for (const std::int64_t chips : sizes)
      for (std::int64_t cuts = 1; cuts <= chips && cuts <= K; ++cuts)
        if (H % chips == 0 && K % cuts == 0 && chips % cuts == 0)
          kv_of_heads(
              fmt::format("of {} query heads on a chip, head h reads kv head h mod {} of {}",
                          H / chips, K / cuts, K / cuts),
              static_cast<int>(chips), [H, K, chips, cuts](std::int64_t h) {
                const std::int64_t local = K / cuts;
                return h * K / H / local * local + h % (H / chips) % local;
              });
  }
  template <class Kv>
  void kv_of_heads(std::string detail, int parameters, Kv&& kv) {
    const std::int64_t H = q_.step().extent('H'), K = q_.step().extent('K');
    reading({"head order", std::move(detail), parameters}, Of::heads,
            inner_of(q_.shape(), letters_.find_first_of("HG")),
            [&](std::int64_t row) { return (kv(row % H) - row % H * K / H + K) % K; });
  }

  /// What of the caches an element may be computed of in place of its own.
  enum class Of { prefixes, heads };
  /// Tries the value whose n-th `inner` elements are computed of the prefixes or kv heads by(n)
  /// further.
  template <class By>
  void reading(Candidate candidate, Of of, std::size_t inner, By&& by) {
    bounds::IntervalTensor y = q_.expected();
    for (std::size_t i = 0; i < y.size(); ++i)
      if (const std::int64_t k = by(static_cast<std::int64_t>(i / inner)); k != 0)
        y.set(i, further(of, k).number(i));
    try_value(std::move(candidate), std::move(y));
  }
  /// Returns the value computed of moved caches: prefix or kv head k holds k + by.
  const bounds::IntervalTensor& further(Of of, std::int64_t by) {
    const auto [known, fresh] = further_.try_emplace({of, by});
    if (!fresh) return known->second;
    const PassPlan* const filled = q_.replay().prefix_of(pass_);
    Replaced replaced(q_);
    for (const std::string& operand : caches_) {
      const bool heads = of == Of::heads;
      if (!heads && !operand.starts_with(filled->name + ".")) continue;
      const bounds::IntervalTensor& cache = q_.value(operand);
      bounds::IntervalTensor moved = cache;
      const std::size_t n = at(cache.shape[heads ? 2 : 0]),
                        inner = inner_of(cache.shape, heads ? 2 : 0);
      for (std::size_t i = 0; i < cache.size(); ++i) {
        const std::size_t k = i / inner % n;
        moved.set(i, cache.number(i - k * inner + (k + at(by)) % n * inner));
      }
      replaced.put(operand, std::move(moved));
    }
    return known->second = replaced.expected(q_.id());
  }

  /// Channels in the other convention of rotary pairs.
  void channels() {
    const NamedComposites& composites = q_.step().graph().composites();
    if (!is_rotated(composites, q_.name())) return;
    const Composite& rotation =
        *find_composite(composites, name_of(composites, CompositeKind::rotation));
    const auto Q = at(q_.config().Q), J = at(q_.weight(rotation.weights[0])->shape[1]);
    const bool half = q_.config().rope == Rope::half;
    // Maps channel c of a writer with the other convention to the model's channel.
    const auto from = [Q, J, half](std::size_t g) {
      const std::size_t c = g % Q;
      if (c >= 2 * J) return g;
      return g - c + (half ? c / 2 + (c % 2) * J : (c < J ? 2 * c : 2 * (c - J) + 1));
    };
    // If the operands are dumped, a rotated value follows from operands that are right in the
    // model's order, so the fault is not the convention.
    const std::vector<std::string> operands = q_.operands();
    if (find_composite(composites, q_.name())->kind != CompositeKind::product &&
        std::any_of(operands.begin(), operands.end(),
                    [&](const std::string& o) { return q_.replay().dumped(o); }))
      return;
    Candidate candidate{"convention",
                        fmt::format("declare rope_pairs={}", half ? "interleaved" : "half")};
    if (!search_.wants(candidate) || !moved_alike(from)) return;
    const Places places = [&](const std::string& name, const Shape&) {
      return is_rotated(composites, name)
                 ? std::optional<std::function<std::size_t(std::size_t)>>(from)
                 : std::nullopt;
    };
    if (right_if_declared(q_, places)) try_places(std::move(candidate), from);
  }

  /// Returns whether the value is right after moving element from(g) to g.
  template <class From>
  bool moved_alike(From&& from) const {
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements(); ++i)
        if (!q_.fits(chip, i, q_.expected_at(from(q_.global(chip, i))))) return false;
    return true;
  }

  /// Heads in another order.
  void heads() {
    const std::size_t d = q_.layout().letters().find_first_of("HK");
    if (d == std::string::npos || q_.shape()[d] == 1) return;
    if (!q_.step().graph().heads(q_.layout().letters()[d])) return;
    const std::size_t count = at(q_.shape()[d]);
    const std::size_t inner = inner_of(q_.shape(), d);
    std::vector<std::vector<std::pair<int, std::size_t>>> of(count);
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements(); ++i)
        of[q_.global(chip, i) / inner % count].emplace_back(chip, i);
    std::vector<std::size_t> held;
    for (std::size_t h = 0; h < count; ++h) {
      std::optional<std::size_t> found;
      // Tries the head's own place first: heads may be equal.
      for (std::size_t k = 0; k < count && !found; ++k) {
        const std::size_t other = (h + k) % count;
        const bool all = std::all_of(of[h].begin(), of[h].end(), [&](const auto& e) {
          const std::size_t g = q_.global(e.first, e.second);
          return q_.fits(e.first, e.second, q_.expected_at(g + other * inner - h * inner));
        });
        if (all) found = other;
      }
      if (!found) return;
      held.push_back(*found);
    }
    // A head that occurs twice belongs to another chip, or was read from another kv head.
    if (std::set<std::size_t>(held.begin(), held.end()).size() != count) return;
    const bool declared =
        q_.step().graph().of_keys() && q_.layout().dims()[d].letter == 'H' && right_in(held);
    const std::string order = fmt::format("{}", fmt::join(held, ","));
    try_places({declared ? "convention" : "head order",
                (declared ? "declare heads=" : "heads hold ") + order, 1},
               in_order(held, inner));
  }

  /// Returns the place of what an order of heads, with `inner` elements each, puts at an element.
  static std::function<std::size_t(std::size_t)> in_order(std::vector<std::size_t> held,
                                                          std::size_t inner) {
    return [held = std::move(held), inner](std::size_t g) {
      const std::size_t h = g / inner % held.size();
      return g + held[h] * inner - h * inner;
    };
  }

  /// Returns whether every value with heads is right in this order; it includes kv heads if each
  /// query head has its own.
  bool right_in(const std::vector<std::size_t>& held) const {
    if (q_.raw()) return false;
    // A dumped operand with heads is right in the model's order, so the order is not the writer's.
    for (const std::string& operand : q_.operands())
      if (q_.replay().dumped(operand) &&
          value_row(q_.replay().place_of(operand).name)->dims.find('H') != std::string_view::npos)
        return false;
    const NamedComposites& composites = q_.step().graph().composites();
    const std::string mean = name_of(composites, CompositeKind::mean);
    const auto output = std::find_if(composites.begin(), composites.end(),
                                     [&](const auto& one) { return one.second.reads(mean); });
    if (!q_.replay().dumped(id(mean)) || !q_.replay().dumped(id(output->first))) return false;
    const bool all = q_.config().K == q_.config().H;
    return right_if_declared(
        q_,
        [&](const std::string& name,
            const Shape& shape) -> std::optional<std::function<std::size_t(std::size_t)>> {
          const std::string_view dims = value_row(name)->dims;
          const std::size_t d = dims.find_first_of(all ? "HK" : "H");
          if (d == dims.npos) return std::nullopt;
          return in_order(held, inner_of(shape, d));
        });
  }

  const PassPlan& pass_;
  const std::string letters_;
  const std::vector<std::string> caches_;
  std::map<std::pair<Of, std::int64_t>, bounds::IntervalTensor> further_;
};

}  // namespace

void try_heads(const Question& q, Search& search, const Row&) { Heads(q, search).run(); }

}  // namespace shardproof::diagnosis
