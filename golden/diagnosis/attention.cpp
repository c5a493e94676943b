// Faults of positions, and of the order of heads and channels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

class Attention {
 public:
  Attention(const Question& q, Search& search)
      : q_(q), search_(search), pass_(q.replay().pass(q.place().pass)) {}

  void run() {
    const std::string& n = q_.name();
    if (!q_.raw()) channels();
    if (n == "q_rot" || n == "k_rot") positions();
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
  void positions() {
    const std::int64_t end = q_.weight("rope_cos")->shape[0];
    const auto position = [&](std::string detail, int parameters, auto&& start) {
      if (const std::optional<PassPlan> other = moved(pass_, 0, end, start))
        change("position off", std::move(detail), parameters, {.pass = other});
    };
    for (const std::int64_t k : offsets())
      for (const std::int64_t by : {k, -k})
        position(fmt::format("position {:+}", by), static_cast<int>(10 * k) + (by < 0 ? 1 : 0),
                 [by](std::int64_t start) { return start + by; });
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
                      .at = q_.logical(q_.value(operand))});
    // Rotation applied twice.
    try {
      change("position off", "rotated twice", 6, {.values = {{operand, q_.expected()}}});
    } catch (const Error& e) {
      if (e.label() != "bounds_c1") throw;
    }
  }

  /// Returns candidate offsets of positions: small numbers, the lengths of pass and prefix, and the
  /// first positions of this pass and of the decode.
  std::set<std::int64_t> offsets() const {
    std::set<std::int64_t> all{1, 2, 3, 4, 5, 6, 7, 8, pass_.L, pass_.prefix.length};
    all.insert(pass_.rows[0].start);
    for (const PassPlan& pass : q_.replay().passes())
      if (pass.phase == Phase::decode) {
        all.insert(pass.rows[0].start);
        break;
      }
    all.erase(0);
    return all;
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
    bounds::Carried y = q_.expected();
    const std::size_t row = y.size() / at(B);
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t by = (prefix(b) - pass_.prefix.of_row(b, B) + N) % N;
      if (by == 0) continue;
      const bounds::Carried& from = of_prefixes_further(by);
      for (std::size_t i = at(b) * row; i < at(b + 1) * row; ++i) y.set(i, from.number(i));
    }
    search_.consider({.fault = "another layer's or pass's value",
                      .detail = std::move(detail),
                      .axes = "",
                      .parameters = parameters,
                      .at = q_.logical(std::move(y))});
  }
  /// Returns the value computed with the prefixes' rows moved: prefix r holds prefix r + by.
  const bounds::Carried& of_prefixes_further(std::int64_t by) {
    if (const auto known = prefixes_.find(by); known != prefixes_.end()) return known->second;
    const std::string id = checkpoint_id(q_.replay().prefix_of(pass_)->name, q_.place().layer,
                                         q_.name() == "score" ? "k_cache" : "v_cache");
    const bounds::Carried& cache = q_.value(id);
    bounds::Carried moved = cache;
    const std::size_t N = at(cache.shape[0]), row = cache.size() / N;
    for (std::size_t i = 0; i < cache.size(); ++i) {
      const std::size_t from = (i / row + at(by)) % N * row + i % row;
      moved.set(i, cache.number(from));
    }
    return prefixes_[by] = q_.under({.values = {{id, std::move(moved)}}});
  }

  /// Query heads that read a kv head other than h·K/H.
  void groups() {
    const std::int64_t H = q_.config().H, K = q_.config().K;
    if (K == 1 || K == H) return;
    reading("query head h reads kv head h mod K, not h·K/H", 0,
            [K](std::int64_t h) { return h % K; });
    // Heads counted within a chip, which reads its own kv heads.
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
      y.set(i, from.number(i));
    }
    search_.consider({.fault = "head order",
                      .detail = std::move(detail),
                      .axes = "",
                      .parameters = parameters,
                      .at = q_.logical(std::move(y))});
  }
  /// Returns the value computed with the caches' heads moved: kv head k holds kv head k + by.
  const bounds::Carried& of_kv_heads_further(std::int64_t by) {
    if (const auto known = further_.find(by); known != further_.end()) return known->second;
    const std::size_t K = at(q_.config().K), Q = at(q_.config().Q);
    Question::Change c;
    for (const std::string& operand : q_.operands()) {
      if (!operand.ends_with("_cache")) continue;
      const bounds::Carried& cache = q_.value(operand);
      bounds::Carried moved = cache;
      for (std::size_t i = 0; i < cache.size(); ++i) {
        const std::size_t k = i / Q % K, from = i - k * Q + (k + at(by)) % K * Q;
        moved.set(i, cache.number(from));
      }
      c.values.emplace_back(operand, std::move(moved));
    }
    return further_[by] = q_.under(c);
  }

  /// Channels in the other convention of rotary pairs.
  void channels() {
    const std::string& n = q_.name();
    if (!rotates(q_.config()) ||
        (n != "q" && n != "k" && n != "q_rot" && n != "k_rot" && n != "k_cache"))
      return;
    const auto Q = at(q_.config().Q), J = at(q_.weight("rope_cos")->shape[1]);
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
    if (n != "q" && n != "k" &&
        std::any_of(operands.begin(), operands.end(),
                    [&](const std::string& o) { return q_.replay().dumped(o); }))
      return;
    Candidate candidate{
        .fault = "convention",
        .detail = fmt::format("declare rope_pairs={}", half ? "interleaved" : "half"),
        .axes = "",
        .at = {}};
    if (!search_.wants(candidate) || !moved_alike(from)) return;
    const Places places = [&](const std::string& name, const Shape&) {
      const bool turned = name[0] == 'q' || name[0] == 'k';
      return turned ? std::optional<std::function<std::size_t(std::size_t)>>(from) : std::nullopt;
    };
    if (right_if_declared(q_, places)) consider_places(q_, search_, std::move(candidate), from);
  }

  /// Returns whether the value is right after moving element from(g) to g.
  template <class From>
  bool moved_alike(From&& from) const {
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements(); ++i)
        if (!q_.fits(chip, i, q_.expected_at(from(q_.global(chip, i))), std::nullopt)) return false;
    return true;
  }

  /// Heads in another order.
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
      // Tries the head's own place first: heads may be equal.
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
    // A head that occurs twice belongs to another chip, or was read from another kv head.
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

  /// Returns whether every value with heads is right in this order; it includes kv heads if each
  /// query head has its own.
  bool right_in(const std::vector<std::size_t>& held) const {
    if (q_.raw()) return false;
    // A dumped operand with heads is right in the model's order, so the order is not the writer's.
    for (const std::string& operand : q_.operands())
      if (q_.replay().dumped(operand) &&
          value_row(q_.replay().place_of(operand).name)->dims.find('H') != std::string_view::npos)
        return false;
    const std::string output = id(q_.config().block == Block::serial ? "attn_out" : "block_out");
    if (!q_.replay().dumped(id("attn")) || !q_.replay().dumped(output)) return false;
    const bool all = q_.config().K == q_.config().H;
    return right_if_declared(
        q_,
        [&](const std::string& name,
            const Shape& shape) -> std::optional<std::function<std::size_t(std::size_t)>> {
          const std::string_view dims = value_row(name)->dims;
          const std::size_t d = dims.find_first_of(all ? "HK" : "H");
          if (d == dims.npos) return std::nullopt;
          std::size_t inner = 1;
          for (std::size_t e = d + 1; e < shape.size(); ++e) inner *= at(shape[e]);
          return [&held, inner](std::size_t g) {
            const std::size_t h = g / inner % held.size();
            return g + held[h] * inner - h * inner;
          };
        });
  }

  const Question& q_;
  Search& search_;
  const PassPlan& pass_;
  std::map<std::int64_t, bounds::Carried> further_, prefixes_;
};

}  // namespace

void try_attention(const Question& q, Search& search) { Attention(q, search).run(); }

}  // namespace shardproof::diagnosis
