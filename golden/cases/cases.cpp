#include "golden/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/run/dim_padding.h"
#include "engine/run/plan.h"
#include "golden/cases/strata.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

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

/// Returns the number that a dim must be a multiple of for both phases.
std::int64_t unit(const Case& c, char dim) {
  std::int64_t unit = 1;
  for (const Strategy* phase : {&c.prefill, &c.decode})
    for (const ShardedDim& one : sharded_dims(*phase))
      if (one.dim == dim) unit = std::lcm(unit, std::int64_t{c.torus.size(one.axes)});
  return unit;
}

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
    const std::int64_t group = m.K == 1 ? 1 : m.H / m.K;
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
  if (choose.percent(40)) m.cache = choose.of({CacheType::f32, CacheType::bf16});
  if (kind.regime != Regime::field && choose.percent(kind.regime == Regime::f32 ? 50 : 30))
    c.numerics.wire = FloatType::bf16;
  if (kind.regime == Regime::f32 && choose.percent(30)) c.numerics.acc = FloatType::bf16;
  if (of_palm && choose.percent(20)) m.eps = choose.percent(50) ? 1e-5 : 0.5;
  if (choose.percent(20)) m.softmax = Softmax::base2;
  if (choose.percent(20)) m.positions = 2 * (c.prompt + c.gen);  // not many more than needed
  if (choose.percent(30)) c.lengths = choose_lengths(choose, c);
  choose_padding(choose, c);
  if (kind.regime != Regime::field && choose.percent(35)) choose_sampling(choose, c);
  return c;
}

std::optional<RunPlan> plan_if_legal(const Case& c) {
  try {
    return make_plan(c);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool legal(const Case& c) { return plan_if_legal(c).has_value(); }

}  // namespace

Case draw(std::uint64_t seed, std::uint64_t index) { return draw_plan(seed, index).given; }

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

/// Rounds the model's dims down to multiples of what the case's torus requires.
static void round_down(Case& c) {
  ModelConfig& m = c.model;
  const bool multihead = m.K == m.H;
  const auto below = [&](char dim, std::int64_t value) { return value - value % unit(c, dim); };
  m.E = below('E', m.E), m.F = below('F', m.F), m.H = below('H', m.H), m.V = below('V', m.V);
  m.K = multihead ? m.H : m.K;
  if (m.E > 0) m.logit_scale = usual_logit_scale(m);
}

/// Shrinks lengths and prefixes to fit a prompt or batch that became smaller.
static void fit_rows(Case& c) {
  auto& lengths = c.lengths.cycle;
  if (std::ssize(lengths) > c.batch) lengths.resize(static_cast<std::size_t>(c.batch));
  for (std::int64_t& length : lengths) length = std::min(length, c.prompt);
  SharedPrefix& prefix = c.prefix;
  if (!prefix.given()) return;
  const std::int64_t shortest =
      lengths.empty() ? c.prompt : *std::min_element(lengths.begin(), lengths.end());
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  prefix.rows = std::min(prefix.rows, c.batch);
  prefix.length = std::min(prefix.length, (shortest - 1) / L * L);
  if (prefix.length == 0) prefix = {};
}

std::vector<Case> simpler(const Case& c) {
  std::vector<Case> all;
  const auto propose = [&](auto&& change) {
    Case next = c;
    change(next);
    fit_rows(next);
    if (!(next == c) && legal(next)) all.push_back(next);
  };
  for (Axis axis : {Axis::x, Axis::y, Axis::z})
    for (int size : {1, 2, c.torus.size(axis) - 1}) {
      if (size < 1 || size >= c.torus.size(axis)) continue;
      propose([&](Case& next) {
        int sizes[3] = {c.torus.size(Axis::x), c.torus.size(Axis::y), c.torus.size(Axis::z)};
        sizes[static_cast<std::size_t>(axis)] = size;
        next.torus = Torus(sizes[0], sizes[1], sizes[2]);
        // The batch shrinks, too, if it was minimal.
        if (c.batch == unit(c, 'B')) next.batch = unit(next, 'B');
        if (!legal(next)) round_down(next);
      });
    }
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  if (c.prefix.given()) {
    propose([](Case& next) { next.prefix = {}; });
    propose([](Case& next) { next.prefix.rows = 1; });
    propose([](Case& next) { next.prefix.rows = std::max<std::int64_t>(1, next.prefix.rows - 1); });
    propose([&](Case& next) { next.prefix.length = std::min(c.prefix.length, L); });
    propose([&](Case& next) {
      next.prefix.length = std::max(std::min(c.prefix.length, L), c.prefix.length - L);
    });
  }
  propose([](Case& next) { next.lengths = {}; });
  propose([](Case& next) {
    std::vector<std::int64_t>& cycle = next.lengths.cycle;
    if (!cycle.empty()) cycle.erase(cycle.begin() + 1, cycle.end());
  });
  propose([](Case& next) {
    if (!next.lengths.cycle.empty()) next.lengths.cycle.pop_back();
  });
  // Drop the padding, either with the model's own dims or with dims as long as the padded ones.
  propose([](Case& next) { next.pad_heads = 0; });
  propose([](Case& next) {
    if (next.pad_heads == 0) return;
    const ModelConfig placed = placed_model(next);
    next.model.H = placed.H, next.model.K = placed.K, next.pad_heads = 0;
  });
  propose([](Case& next) { next.pad_vocab = 0; });
  propose([](Case& next) {
    if (next.pad_vocab != 0) next.model.V = std::exchange(next.pad_vocab, 0);
  });
  // One slice, or the smallest that decodes.
  propose([](Case& next) { next.decode_torus.reset(); });
  propose([](Case& next) {
    if (next.decode_torus) next.decode_torus = Torus(1, 1, 1);
  });
  propose([](Case& next) { next.model.layers = 1; });
  propose([](Case& next) { next.model.layers = std::min<std::int64_t>(2, next.model.layers); });
  propose([](Case& next) { next.gen = std::max<std::int64_t>(1, next.gen - 1); });
  propose([](Case& next) { next.gen = std::min<std::int64_t>(2, next.gen); });
  // Shorten the prompt in steps of the prefill's blocks; a chunked prompt stays chunked if it can,
  // or becomes one chunk.
  propose([&](Case& next) { next.prompt = next.chunk = std::min(c.prompt, L); });
  propose([](Case& next) { next.chunk = next.prompt; });
  if (c.chunk < c.prompt) {
    propose([&](Case& next) { next.prompt = std::min(c.prompt, 2 * L), next.chunk = L; });
    propose([&](Case& next) { next.prompt = std::min(c.prompt, c.chunk + L); });
    propose([&](Case& next) { next.chunk = std::max(L, c.chunk - L); });
    if (c.chunk > L) propose([&](Case& next) { next.chunk -= L, next.prompt -= L; });
  }
  propose([&](Case& next) {
    next.prompt = std::max(std::min(c.prompt, L), c.prompt - L);
    next.chunk = std::min(next.chunk, next.prompt);
  });
  propose([](Case& next) {
    next.numerics.regime = Regime::exact, next.numerics.schedule = Schedule::group;
    next.numerics.acc = FloatType::f32;
  });
  propose([](Case& next) { next.numerics.schedule = Schedule::group; });
  propose([](Case& next) { next.numerics.loop = Loop::none; });
  propose([](Case& next) { next.numerics.acc = FloatType::f32; });
  propose([](Case& next) { next.numerics.wire = FloatType::f32; });
  propose([](Case& next) { next.numerics.act = ActType::f32; });
  propose([](Case& next) { next.numerics.weights = WeightType::f32; });
  propose([](Case& next) { next.sampling = {}; });
  propose([](Case& next) { next.sampling.top_k = 0; });
  propose([](Case& next) { next.sampling.top_p = 1.0; });
  propose([](Case& next) { next.sampling.temperature = 1.0; });
  propose([](Case& next) { next.decode = next.prefill; });
  propose([](Case& next) { next.prefill = next.decode; });
  const std::int64_t n = chips(c.torus);
  // Only downwards, so that repetition terminates.
  propose([&, unit = unit(c, 'E')](Case& next) {
    next.model.E = std::min(c.model.E, unit);
    next.model.logit_scale = usual_logit_scale(next.model);
  });
  propose([&, unit = unit(c, 'F')](Case& next) { next.model.F = std::min(c.model.F, unit); });
  propose([&, unit = unit(c, 'H')](Case& next) {
    if (c.model.H > unit) next.model.H = unit, next.model.K = c.model.K == 1 ? 1 : unit;
  });
  propose([](Case& next) { next.model.K = 1; });
  propose([](Case& next) {
    next.model.Q = std::min<std::int64_t>(next.model.Q, 2), next.model.rotary = 1.0;
  });
  propose([&](Case& next) { next.model.V = std::min(c.model.V, 2 * n); });
  propose([&](Case& next) { next.model.V = std::min(c.model.V, n); });
  propose([](Case& next) { next.model.block = Block::parallel; });
  propose([](Case& next) { next.model.norm = Norm::rmsnorm; });
  propose([](Case& next) { next.model.ffn = Ffn::swiglu; });
  propose([](Case& next) { next.model.bias = Bias::none; });
  propose([](Case& next) { next.model.rope = Rope::half; });
  propose([](Case& next) { next.model.tied = true; });
  propose([](Case& next) { next.model.unembed_bias = false; });
  propose([](Case& next) {  // the other keys stay
    next.model.preset = ModelConfig().preset;
    next.model.logit_scale = usual_logit_scale(next.model);
  });
  propose([](Case& next) { next.model.softmax = Softmax::base_e; });
  propose([](Case& next) { next.model.cache = CacheType::as_act; });
  propose([](Case& next) { next.model.rotary = 1.0; });
  propose([](Case& next) { next.model.theta = 10000.0; });
  propose([](Case& next) { next.model.eps = ModelConfig().eps; });
  propose([](Case& next) { next.model.positions = ModelConfig().positions; });
  propose([](Case& next) { next.model.embed_scale = 1.0F; });
  propose([&](Case& next) { next.batch = std::min(c.batch, unit(c, 'B')); });
  propose([](Case& next) { next.seed = std::min<std::uint64_t>(next.seed, 1); });
  return all;
}

Case shrink(Case c, const std::function<bool(const Case&)>& fails, int tries) {
  for (bool progress = true; progress;) {
    progress = false;
    for (const Case& candidate : simpler(c)) {
      if (tries-- <= 0) return c;
      if (!fails(candidate)) continue;
      c = candidate;
      progress = true;
      break;
    }
  }
  return c;
}

}  // namespace shardproof::cases
