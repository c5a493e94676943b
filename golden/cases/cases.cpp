#include "golden/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "engine/run/plan.h"
#include "golden/cases/detail/legal.h"
#include "golden/cases/strata.h"
#include "weights/storage/generator.h"
#include "weights/text/heads.h"

namespace shardproof::cases {
namespace {

/// A stream of random choices, a function of (seed, case, attempt). Choices added later use a
/// stream of their own, which leaves the rest of a case unchanged.
class Choices {
 public:
  Choices(std::uint64_t seed, std::uint64_t index, std::string_view stream = "case")
      : stream_(stream), seed_(seed), base_(index << 16) {}

  /// Uniform in [0, n).
  std::int64_t below(std::int64_t n) {
    const auto words = counter_random(seed_, stream_, base_ + next_++);
    const std::uint64_t bits = std::uint64_t{words[0]} << 32 | words[1];
    return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(n));
  }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + below(most - least + 1);
  }
  bool percent(int share) { return below(100) < share; }
  template <class T>
  T of(std::initializer_list<T> options) {
    return options.begin()[below(static_cast<std::int64_t>(options.size()))];
  }

 private:
  std::string_view stream_;
  std::uint64_t seed_, base_;
  std::uint64_t next_ = 0;
};

std::int64_t chips(const Torus& torus) { return torus.chips(); }

/// Returns a random multiple of `unit`, at most about `around`.
std::int64_t stretched(Choices& choose, std::int64_t unit, std::int64_t around) {
  return unit * choose.between(1, std::max<std::int64_t>(1, around / unit));
}

/// Returns the divisors of n except 1 and n.
std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t k = 2; k < n; ++k)
    if (n % k == 0) divisors.push_back(k);
  return divisors;
}

/// Chooses H and K of this kind. Returns false if the chosen H has no such K.
bool choose_heads(Choices& choose, strata::Heads heads, std::int64_t unit, ModelConfig& m) {
  m.H = stretched(choose, unit, 12);
  const std::vector<std::int64_t> divisors = divisors_of(m.H);
  switch (heads) {
    case strata::Heads::multiquery:
      m.K = 1;
      return true;
    case strata::Heads::multihead:
      m.K = m.H;
      return m.H > 1;
    case strata::Heads::grouped:
      if (divisors.empty()) return false;
      m.K = divisors[static_cast<std::size_t>(
          choose.below(static_cast<std::int64_t>(divisors.size())))];
      return true;
  }
  return false;
}

/// Chooses the keys of the model family that the stratum does not fix.
void choose_formulas(Choices& choose, ModelConfig& m) {
  if (choose.percent(20)) m.theta = 100.0;
  if (choose.percent(20) && m.Q >= 4) m.rotary = 0.5;
  if (choose.percent(20)) m.embed_scale = choose.of<float>({0.75F, 2.0F, 9.5F});
  if (choose.percent(30) && m.E > 1) m.norm = Norm::layernorm;  // of one channel layernorm is zero
  if (choose.percent(40)) m.ffn = choose.of({Ffn::geglu, Ffn::gelu, Ffn::gelu_erf});
  if (choose.percent(40))
    m.bias = choose.of({Bias::norm, Bias::qkv, Bias::ffn, Bias::all, Bias::all});
  if (choose.percent(50))
    m.rope =
        choose.of({Rope::interleaved, Rope::interleaved, Rope::alibi, Rope::alibi, Rope::none});
  if (!rotates(m)) m.rotary = 1.0, m.theta = 10000.0;
  m.tied = choose.percent(75);
  m.unembed_bias = choose.percent(25);
}

/// Chooses a padding of H or V: a smaller H padded to the drawn one, or a larger extent.
void choose_padding(Choices& choose, Case& c) {
  ModelConfig& m = c.model;
  if (choose.percent(20)) {
    const std::int64_t group = heads_per_group(m);
    const std::int64_t least = m.K == 1 ? 1 : 2;  // number of groups; grouped heads stay grouped
    const std::int64_t groups = m.H / group;
    if (groups > least && choose.percent(75)) {
      c.pad_heads = m.H;
      m.H = group * choose.between(least, groups - 1);
      if (m.K > 1) m.K = m.H / group;
    } else {
      c.pad_heads = m.H + std::lcm(unit(c, 'H'), group);
    }
  }
  if (choose.percent(20)) {
    const std::int64_t n = chips(c.torus);
    c.pad_vocab = m.V + n * choose.between(1, 3);
    m.V += choose.between(0, n - 1);
  }
}

/// Chooses random sampling, of logits that differ by less than one at temperature 1.
void choose_sampling(Choices& choose, Case& c) {
  Sampling& s = c.sampling;
  s.sample = Sample::random;
  if (choose.percent(60)) s.temperature = choose.of({0.7, 0.1, 0.02, 3.0});
  if (choose.percent(50)) s.top_k = choose.percent(20) ? 1 : choose.between(1, c.model.V);
  if (choose.percent(60)) s.top_p = choose.of({0.9, 0.5, 0.1, 0.999, 1e-9});
}

/// Chooses a torus of the class with at most 48 chips.
Torus choose_torus(Choices& choose, strata::TorusClass wanted) {
  if (wanted == strata::TorusClass::one_chip) return {1, 1, 1};
  if (wanted == strata::TorusClass::equal) {
    const int size = choose.of<int>({2, 2, 3});
    return {size, size, size};
  }
  const bool ones = wanted == strata::TorusClass::axis_of_1;
  const auto axis = [&] {
    return ones ? choose.of<int>({1, 1, 2, 2, 3, 3, 4, 5, 7}) : choose.of<int>({2, 2, 3, 3, 4, 5});
  };
  for (;;) {
    // Separate statements: the compiler chooses the evaluation order of arguments, and a seed must
    // give the same cases everywhere.
    const int z = axis(), y = axis(), x = axis();
    const Torus torus(x, y, z);
    if (chips(torus) <= 48 && strata::class_of(torus) == wanted) return torus;
  }
}

/// Chooses rows that are shorter than the prompt, drawn or listed.
RowLengths choose_lengths(Choices& choose, const Case& c) {
  if (choose.percent(50)) return {true, {}};
  RowLengths lengths;
  const std::int64_t count = choose.between(1, std::min<std::int64_t>(c.batch, 4));
  for (std::int64_t i = 0; i < count; ++i) lengths.cycle.push_back(choose.between(1, c.prompt));
  return lengths;
}

/// Chooses prefixes that rows share, if the prompt has room for them and a token of each row's own.
/// Their number is what the prefill can shard, one, the number of rows, or any. Listed lengths
/// exceed them.
void choose_prefix(Choices& choose, Case& c) {
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  const std::int64_t most = (c.prompt - 1) / L;
  if (most < 1) return;
  c.prefix.length = L * (choose.percent(30) ? 1 : choose.between(1, most));
  const std::vector<std::int64_t> divisors = divisors_of(c.batch);
  c.prefix.rows = choose.percent(20)   ? 1
                  : choose.percent(25) ? c.batch
                                       : choose.between(1, c.batch);
  if (!divisors.empty() && choose.percent(35))
    c.prefix.rows = divisors[static_cast<std::size_t>(
        choose.below(static_cast<std::int64_t>(divisors.size())))];
  for (std::int64_t& length : c.lengths.cycle) length = std::max(length, c.prefix.length + 1);
}

/// Returns a case of the stratum if the choices give one.
std::optional<Case> attempt(Choices& choose, const strata::Stratum& stratum) {
  Case c;
  c.torus = choose_torus(choose, stratum.kind.torus);
  c.prefill = stratum.prefill;
  c.decode = stratum.decode;
  const strata::Kind& kind = stratum.kind;

  ModelConfig& m = c.model;
  const std::int64_t n = chips(c.torus);
  if (choose.percent(25)) m = parse_model(choose.of({"llama", "gptj", "falcon"}));
  const bool of_palm = m.preset == ModelConfig().preset;
  m.block = kind.block;
  m.layers = choose.of<std::int64_t>({1, 1, 2, 2, 3});
  m.E = stretched(choose, unit(c, 'E'), 48);
  m.F = stretched(choose, unit(c, 'F'), 64);
  if (!choose_heads(choose, kind.heads, unit(c, 'H'), m)) return std::nullopt;
  m.Q = std::lcm(choose.of<std::int64_t>({2, 4, 4, 8}), unit(c, 'Q'));
  while (std::fmod(m.rotary * static_cast<double>(m.Q), 2.0) != 0.0) m.Q *= 2;
  m.V = n * choose.between(1, std::max<std::int64_t>(2, 64 / n));
  m.logit_scale = usual_logit_scale(m);
  if (of_palm) choose_formulas(choose, m);

  c.numerics.act = kind.act;
  c.numerics.weights = kind.weights;
  c.numerics.regime = kind.regime;
  c.numerics.loop = kind.loop;
  if (kind.regime == Regime::f32)
    c.numerics.schedule =
        choose.of({Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring});
  const std::int64_t rows = unit(c, 'B');
  c.batch = rows == 1 ? choose.between(1, 5) : rows * (rows <= 6 ? choose.between(1, 2) : 1);
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  const std::int64_t blocks =
      choose.between(kind.chunked ? 2 : 1, std::max<std::int64_t>(kind.chunked ? 2 : 1, 7 / L));
  c.prompt = L * blocks;
  c.chunk = kind.chunked ? L * choose.between(1, blocks - 1) : c.prompt;
  c.gen = stratum.hands_over() ? choose.of<std::int64_t>({2, 3, 3, 3, 4, 4, 5})
                               : choose.of<std::int64_t>({1, 2, 3, 3, 3, 4, 4, 5});
  // A field result for all inputs needs as many ids as tokens; some cases have fewer.
  if (kind.regime == Regime::field && choose.percent(75))
    m.V = std::max(m.V, (c.batch * (c.prompt + c.gen - 1) + n - 1) / n * n);
  c.seed = static_cast<std::uint64_t>(choose.below(1'000'000));
  if (choose.percent(40)) m.cache = choose.of({NumberFormat::f32, NumberFormat::bf16});
  if (kind.regime != Regime::field && choose.percent(kind.regime == Regime::f32 ? 50 : 30))
    c.numerics.wire = NumberFormat::bf16;
  if (kind.regime == Regime::f32 && choose.percent(30)) c.numerics.acc = NumberFormat::bf16;
  if (of_palm && choose.percent(20)) m.eps = choose.percent(50) ? 1e-5 : 0.5;
  if (choose.percent(20)) m.softmax = Softmax::base2;
  if (choose.percent(20)) m.positions = 2 * (c.prompt + c.gen);  // not many more than needed
  if (choose.percent(30)) c.lengths = choose_lengths(choose, c);
  choose_padding(choose, c);
  if (kind.regime != Regime::field && choose.percent(35)) choose_sampling(choose, c);
  return c;
}

}  // namespace

Case draw(std::uint64_t seed, std::uint64_t index) { return draw_plan(seed, index).source_case; }

RunPlan draw_plan(std::uint64_t seed, std::uint64_t index) {
  Choices choose(seed, index), of_prefix(seed, index, "case prefix");
  const strata::Stratum& stratum = strata::stratum_of(seed, index);
  for (;;) {
    std::optional<Case> c = attempt(choose, stratum);
    if (!c) continue;
    const double cost = multiply_adds(*c);
    // Large cases are kept one time in three, so that the typical one stays cheap.
    if (cost > kMostMultiplyAdds || (cost > kMostMultiplyAdds / 4 && !choose.percent(33))) continue;
    if (of_prefix.percent(30)) choose_prefix(of_prefix, *c);
    if (std::optional<RunPlan> plan = plan_if_legal(*c)) return *std::move(plan);
  }
}

}  // namespace shardproof::cases
