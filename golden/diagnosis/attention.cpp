// Positions, masks, and the order of heads and channels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "golden/diagnosis/families.h"
#include "golden/diagnosis/what_if.h"
#include "weights/registry.h"

namespace shardproof::diagnosis {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Attention {
 public:
  Attention(const Question& q, Search& search)
      : q_(q), search_(search), pass_(q.replay().pass(q.place().pass)) {}

  void run() {
    const std::string& n = q_.name();
    if (!q_.raw()) channels();
    if (n == "q_rot" || n == "k_rot") positions();
    if (n == "score" || n == "max" || n == "exp" || n == "denom" || n == "attn") masks();
    if (n == "score" || n == "attn") groups(), prefixes();
    heads();
  }

 private:
  std::string id(std::string_view name) const {
    return checkpoint_id(q_.place().pass, q_.place().layer, name);
  }
  void change(std::string_view fault, std::string detail, int parameters,
              const Question::Change& c) {
    consider_change(q_, search_,
                    {.fault = fault,
                     .detail = std::move(detail),
                     .axes = "",
                     .parameters = parameters,
                     .at = {}},
                    c);
  }
  /// The pass with its rows at other positions.
  template <class Start>
  std::optional<PassPlan> moved(std::int64_t least, std::int64_t end, Start&& start) const {
    PassPlan other = pass_;
    for (PassRows& rows : other.rows) {
      rows.start = start(rows.start);
      if (rows.start < least || rows.start + other.L > end) return std::nullopt;
    }
    if (other == pass_) return std::nullopt;
    return other;
  }

  void positions() {
    const std::int64_t end = q_.weight("rope_cos")->shape[0];
    const auto position = [&](std::string detail, int parameters, auto&& start) {
      if (const std::optional<PassPlan> other = moved(0, end, start))
        change("position off", std::move(detail), parameters, {.pass = other});
    };
    for (int k = 1; k <= 8; ++k)
      for (const int by : {k, -k})
        position(fmt::format("position {:+}", by), 10 * k + (by < 0 ? 1 : 0),
                 [by](std::int64_t s) { return s + by; });
    position("positions from 0 on in each pass", 1, [](std::int64_t) { return 0; });
    position("positions of the first row in all rows", 2,
             [this](std::int64_t) { return pass_.rows[0].start; });
    if (const std::int64_t P = pass_.prefix.length; P > 0)
      position("positions are counted from the end of the prefix on", 2,
               [P](std::int64_t s) { return s - P; });
    position("the positions before the pass are counted twice", 100,
             [](std::int64_t s) { return 2 * s; });
    const Tensor& cosines = *q_.weight("rope_cos");
    const Tensor& sines = *q_.weight("rope_sin");
    const auto tables = [&](std::string detail, int parameters, auto row, float sign) {
      Tensor c = cosines, s = sines;
      const auto J = at(c.shape[1]);
      for (std::size_t i = 0; i < c.data.size(); ++i) {
        const std::size_t from = row(i / J) * J + i % J;
        c.data[i] = cosines.data[from], s.data[i] = sign * sines.data[from];
      }
      change("position off", std::move(detail), parameters,
             {.weights = q_.weights_with({{"rope_cos", c}, {"rope_sin", s}})});
    };
    tables(
        "not rotated", 3, [](std::size_t) { return std::size_t{0}; }, 1.0F);
    tables(
        "rotated the other way", 4, [](std::size_t p) { return p; }, -1.0F);
    ModelConfig model = q_.config();
    model.rope = model.rope == Rope::half ? Rope::interleaved : Rope::half;
    change("position off", fmt::format("rope pairs: rotated in {} pairs", to_string(model.rope)), 5,
           {.weights = q_.weights_with({}, model)});
    model = q_.config();
    const std::string operand = q_.operands()[0];
    search_.consider({.fault = "position off",
                      .detail = "not rotated",
                      .axes = "",
                      .parameters = 3,
                      .at = q_.logical(q_.replay().value(operand))});
    // Rotated once more.
    try {
      change("position off", "rotated twice", 6, {.values = {{operand, q_.expected()}}});
    } catch (const Error& e) {
      if (e.label() != "bounds_c1") throw;
    }
  }

  void masks() {
    // The positions are those of ALiBi, too.
    if (q_.name() == "score" && q_.config().rope == Rope::alibi) return;
    const std::int64_t M = pass_.prefix.length + pass_.cached + pass_.L;
    const auto mask = [&](std::string detail, int parameters, auto&& start) {
      if (const std::optional<PassPlan> other = moved(0, 2 * M + 2, start))
        change("mask", std::move(detail), parameters, {.pass = other});
    };
    mask("each query also sees the key behind its own", 1, [](std::int64_t s) { return s + 1; });
    mask("a query does not see its own key", 1, [](std::int64_t s) { return s - 1; });
    mask("no mask: each query sees all keys", 2, [M](std::int64_t) { return M; });
    mask("positions of the pass from 0 on: the mask's upper left in place of its lower right", 3,
         [](std::int64_t) { return 0; });
    own_key_masked();
  }

  /// A pass from position 0 on whose first query sees no key: of the others at least.
  void own_key_masked() {
    if (q_.name() != "score" && q_.name() != "exp") return;
    if (std::none_of(pass_.rows.begin(), pass_.rows.end(),
                     [](const PassRows& r) { return r.start == 0; }))
      return;
    bounds::Carried y = q_.expected();
    const std::size_t L = at(y.shape[1]), H = at(y.shape[2]), M = at(y.shape[3]);
    for (std::size_t n = 0; n < y.size() / M; ++n) {
      const std::size_t own = at(q_.replay().position(pass_, n / H / L, n / H % L));
      if (own < M) y.center[n * M + own] = y.radius[n * M + own] = 0.0;
    }
    search_.consider({.fault = "mask",
                      .detail = "a query does not see its own key",
                      .axes = "",
                      .parameters = 1,
                      .at = q_.logical(std::move(y))});
  }

  /// Rows of B that read other prefixes than ⌊b·N/B⌋.
  void prefixes() {
    const PassPlan* const filled = q_.replay().prefix_of(pass_);
    const std::int64_t B = pass_.batch(), N = pass_.prefix.rows;
    if (filled == nullptr || N == 1) return;
    prefix_of_rows("all rows read prefix 0", 0, [](std::int64_t) { return 0; });
    prefix_of_rows("row b reads prefix b mod N, not ⌊b·N/B⌋", 1,
                   [N](std::int64_t b) { return b % N; });
    // Rows that are counted from a chip's first one on.
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
    bounds::Carried y = q_.expected();
    const std::size_t row = y.size() / at(B);
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t by = (prefix(b) - pass_.prefix.of_row(b, B) + N) % N;
      if (by == 0) continue;
      const bounds::Carried& from = of_prefixes_further(by);
      for (std::size_t i = at(b) * row; i < at(b + 1) * row; ++i)
        y.set(i, {from.center[i], from.radius[i], 0.0});
    }
    search_.consider({.fault = "another layer's or pass's value",
                      .detail = std::move(detail),
                      .axes = "",
                      .parameters = parameters,
                      .at = q_.logical(std::move(y))});
  }
  /// The value with the prefixes' rows moved: prefix r is the one that belongs at r + by.
  const bounds::Carried& of_prefixes_further(std::int64_t by) {
    if (const auto known = prefixes_.find(by); known != prefixes_.end()) return known->second;
    const std::string id = checkpoint_id(q_.replay().prefix_of(pass_)->name, q_.place().layer,
                                         q_.name() == "score" ? "k_cache" : "v_cache");
    const bounds::Carried& cache = q_.replay().value(id);
    bounds::Carried moved = cache;
    const std::size_t N = at(cache.shape[0]), row = cache.size() / N;
    for (std::size_t i = 0; i < cache.size(); ++i) {
      const std::size_t from = (i / row + at(by)) % N * row + i % row;
      moved.set(i, {cache.center[from], cache.radius[from], 0.0});
    }
    return prefixes_[by] = q_.under({.values = {{id, std::move(moved)}}});
  }

  /// Query heads that read other kv heads than h·K/H.
  void groups() {
    const std::int64_t H = q_.config().H, K = q_.config().K;
    if (K == 1 || K == H) return;
    reading("query head h reads kv head h mod K, not h·K/H", 0,
            [K](std::int64_t h) { return h % K; });
    // The same with the heads that a chip has, of its own kv heads.
    std::set<std::int64_t> sizes;
    for (const Axes& set : q_.sets()) sizes.insert(q_.torus().size(set));
    for (const std::int64_t chips : sizes)
      for (std::int64_t cuts = 1; cuts <= chips && cuts <= K; ++cuts)
        if (H % chips == 0 && K % cuts == 0 && chips % cuts == 0)
          reading(fmt::format("of {} query heads on a chip, head h reads kv head h mod {} of {}",
                              H / chips, K / cuts, K / cuts),
                  static_cast<int>(chips), [H, K, chips, cuts](std::int64_t h) {
                    const std::int64_t local = K / cuts;
                    return h * K / H / local * local + h % (H / chips) % local;
                  });
  }
  template <class Kv>
  void reading(std::string detail, int parameters, Kv&& kv) {
    const std::int64_t H = q_.config().H, K = q_.config().K;
    bounds::Carried y = q_.expected();
    std::size_t inner = 1;
    for (std::size_t d = 3; d < y.shape.size(); ++d) inner *= at(y.shape[d]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto h = static_cast<std::int64_t>(i / inner) % H;
      const std::int64_t by = (kv(h) - h * K / H + K) % K;
      if (by == 0) continue;
      const bounds::Carried& from = of_kv_heads_further(by);
      y.set(i, {from.center[i], from.radius[i], 0.0});
    }
    search_.consider({.fault = "head order",
                      .detail = std::move(detail),
                      .axes = "",
                      .parameters = parameters,
                      .at = q_.logical(std::move(y))});
  }
  /// The value with the caches' heads moved: kv head k is the one that belongs at k + by.
  const bounds::Carried& of_kv_heads_further(std::int64_t by) {
    if (const auto known = further_.find(by); known != further_.end()) return known->second;
    const std::size_t K = at(q_.config().K), Q = at(q_.config().Q);
    Question::Change c;
    for (const std::string& operand : q_.operands()) {
      if (!operand.ends_with("_cache")) continue;
      const bounds::Carried& cache = q_.replay().value(operand);
      bounds::Carried moved = cache;
      for (std::size_t i = 0; i < cache.size(); ++i) {
        const std::size_t k = i / Q % K, from = i - k * Q + (k + at(by)) % K * Q;
        moved.set(i, {cache.center[from], cache.radius[from], 0.0});
      }
      c.values.emplace_back(operand, std::move(moved));
    }
    return further_[by] = q_.under(c);
  }

  /// Channels in the other convention of pairs.
  void channels() {
    const std::string& n = q_.name();
    if (!rotates(q_.config()) ||
        (n != "q" && n != "k" && n != "q_rot" && n != "k_rot" && n != "k_cache"))
      return;
    const auto Q = at(q_.config().Q), J = at(q_.weight("rope_cos")->shape[1]);
    const bool half = q_.config().rope == Rope::half;
    // Where the model has what a writer of the other convention keeps in channel c.
    const auto from = [Q, J, half](std::size_t g) {
      const std::size_t c = g % Q;
      if (c >= 2 * J) return g;
      return g - c + (half ? c / 2 + (c % 2) * J : (c < J ? 2 * c : 2 * (c - J) + 1));
    };
    if (n == "q" || n == "k") {
      // A convention where the rotation is right in it.
      const std::string turned = id(n + "_rot");
      if (q_.replay().dumped(turned) && q_.replay().dumped(q_.id())) {
        const auto back = [&](const bounds::Carried& x) {
          bounds::Carried y = x;
          for (std::size_t g = 0; g < x.size(); ++g)
            y.set(from(g), {x.center[g], x.radius[g], 0.0});
          return y;
        };
        bounds::Replay other(q_.replay().weights(), q_.replay());
        other.assume(q_.id(), back(q_.replay().value(q_.id())));
        const bounds::Carried right = other.expected(turned);
        bounds::Carried expected = right;
        for (std::size_t g = 0; g < right.size(); ++g)
          expected.set(g, {right.center[from(g)], right.radius[from(g)], 0.0});
        if (!holds(q_, turned, expected)) return;
      }
    } else {
      const std::vector<std::string> operands = q_.operands();
      if (std::any_of(operands.begin(), operands.end(),
                      [&](const std::string& o) { return q_.replay().dumped(o); }))
        return;  // its operands are right as the model has them
    }
    consider_places(q_, search_,
                    {.fault = "convention",
                     .detail = fmt::format("declare rope_pairs={}", half ? "interleaved" : "half"),
                     .axes = "",
                     .at = {}},
                    from);
  }

  /// Each head holds what belongs to another one.
  void heads() {
    const std::size_t d = q_.layout().letters().find_first_of("HK");
    if (d == std::string::npos || q_.shape()[d] == 1) return;
    const std::size_t count = at(q_.shape()[d]);
    std::size_t inner = 1;
    for (std::size_t e = d + 1; e < q_.rank(); ++e) inner *= at(q_.shape()[e]);
    std::vector<std::vector<std::pair<int, std::size_t>>> of(count);
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements(); ++i)
        of[q_.global(chip, i) / inner % count].emplace_back(chip, i);
    std::vector<std::size_t> held;
    for (std::size_t h = 0; h < count; ++h) {
      std::optional<std::size_t> found;
      // Its own first: heads may be equal.
      for (std::size_t k = 0; k < count && !found; ++k) {
        const std::size_t other = (h + k) % count;
        const bool all = std::all_of(of[h].begin(), of[h].end(), [&](const auto& e) {
          const std::size_t g = q_.global(e.first, e.second);
          return q_.fits(e.first, e.second, q_.expected_at(g + other * inner - h * inner),
                         std::nullopt);
        });
        if (all) found = other;
      }
      if (!found) return;
      held.push_back(*found);
    }
    // A head that is there twice is another chip's, or read of another kv head.
    if (std::set<std::size_t>(held.begin(), held.end()).size() != count) return;
    const bool declared = q_.layout().dims()[d].letter == 'H' && right_in(held);
    consider_places(q_, search_,
                    {.fault = declared ? "convention" : "head order",
                     .detail = declared ? fmt::format("declare heads={}", fmt::join(held, ","))
                                        : fmt::format("heads hold {}", fmt::join(held, ",")),
                     .axes = "",
                     .parameters = 1,
                     .at = {}},
                    [held, inner, count](std::size_t g) {
                      const std::size_t h = g / inner % count;
                      return g + held[h] * inner - h * inner;
                    });
  }

  /// Whether the output is right with heads in this order.
  bool right_in(const std::vector<std::size_t>& held) const {
    if (q_.raw()) return false;
    // An operand with heads is right as the model has them.
    for (const std::string& operand : q_.operands())
      if (q_.replay().dumped(operand) &&
          value_row(q_.replay().place_of(operand).name)->dims.find('H') != std::string_view::npos)
        return false;
    const std::string output = id(q_.config().block == Block::serial ? "attn_out" : "block_out");
    if (!q_.replay().dumped(id("attn")) || !q_.replay().dumped(output)) return false;
    const bounds::Carried& attn = q_.replay().value(id("attn"));
    bounds::Carried ours = attn;
    const auto Q = at(q_.config().Q), H = held.size();
    for (std::size_t g = 0; g < attn.size(); ++g) {
      const std::size_t h = g / Q % H;
      ours.center[g + held[h] * Q - h * Q] = attn.center[g];
    }
    return follows(q_, output, {{id("attn"), ours}});
  }

  const Question& q_;
  Search& search_;
  const PassPlan& pass_;
  std::map<std::int64_t, bounds::Carried> further_, prefixes_;
};

}  // namespace

void try_attention(const Question& q, Search& search) { Attention(q, search).run(); }

}  // namespace shardproof::diagnosis
