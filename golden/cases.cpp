#include "golden/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "weights/error.h"
#include "weights/generator.h"

namespace shardproof::cases {
namespace {

/// A stream of choices, a function of (seed, case, attempt).
class Choices {
 public:
  Choices(std::uint64_t seed, std::uint64_t index) : seed_(seed), base_(index << 16) {}

  /// Uniform in [0, n).
  std::int64_t below(std::int64_t n) {
    const auto words = counter_random(seed_, "case", base_ + next_++);
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
  std::uint64_t seed_, base_;
  std::uint64_t next_ = 0;
};

std::int64_t chips(const Torus& torus) { return torus.chips(); }

/// What a dim must be a multiple of for both phases.
std::int64_t unit(const Case& c, char dim) {
  std::int64_t unit = 1;
  for (const Strategy* phase : {&c.prefill, &c.decode})
    for (const CutDim& cut : cut_dims(*phase))
      if (cut.dim == dim) unit = std::lcm(unit, std::int64_t{c.torus.size(cut.axes)});
  return unit;
}

Case attempt(Choices& choose) {
  Case c;
  const auto axis = [&] { return static_cast<int>(choose.of<int>({1, 1, 2, 2, 3, 3, 4, 5})); };
  do {
    // One after the other: the order of arguments is the compiler's, and a seed means the same
    // cases everywhere.
    const int z = axis(), y = axis(), x = axis();
    c.torus = Torus(x, y, z);
  } while (chips(c.torus) > 48);
  const auto strategy = [&] {
    return all_strategies()[static_cast<std::size_t>(
        choose.below(static_cast<std::int64_t>(all_strategies().size())))];
  };
  c.prefill = strategy();
  c.decode = choose.percent(30) ? c.prefill : strategy();

  ModelConfig& m = c.model;
  const std::int64_t n = chips(c.torus);
  const auto stretch = [&](std::int64_t unit, std::int64_t around) {
    return unit * choose.between(1, std::max<std::int64_t>(1, around / unit));
  };
  m.layers = choose.of<std::int64_t>({1, 1, 2, 2, 3});
  m.E = stretch(unit(c, 'E'), 48);
  m.F = stretch(unit(c, 'F'), 64);
  m.H = stretch(unit(c, 'H'), 12);
  m.Q = std::lcm(choose.of<std::int64_t>({2, 4, 4, 8}), unit(c, 'Q'));
  m.V = n * choose.between(1, std::max<std::int64_t>(2, 64 / n));
  std::vector<std::int64_t> divisors;
  for (std::int64_t k = 1; k <= m.H; ++k)
    if (m.H % k == 0) divisors.push_back(k);
  m.K = choose.percent(35)   ? 1
        : choose.percent(40) ? m.H
                             : divisors[static_cast<std::size_t>(
                                   choose.below(static_cast<std::int64_t>(divisors.size())))];
  if (choose.percent(20)) m.theta = 100.0;
  if (choose.percent(20) && m.Q >= 4) m.rotary = 0.5;
  if (choose.percent(20)) m.embed_scale = choose.of<float>({0.75F, 2.0F, 9.5F});
  m.logit_scale = parse_model(fmt::format("palm-tiny,E={}", m.E)).logit_scale;
  if (choose.percent(35)) m.block = Block::serial;
  if (choose.percent(30)) m.norm = Norm::layernorm;
  if (choose.percent(40)) m.ffn = choose.of({Ffn::geglu, Ffn::gelu, Ffn::gelu_erf});
  if (choose.percent(40)) m.bias = choose.of({Bias::norm, Bias::qkv, Bias::all, Bias::all});
  if (choose.percent(35)) m.rope = choose.of({Rope::interleaved, Rope::interleaved, Rope::none});
  if (m.rope == Rope::none) m.rotary = 1.0, m.theta = 10000.0;  // nothing rotates
  m.tied = choose.percent(75);

  if (choose.percent(25)) c.numerics.act = ActType::bf16;
  if (choose.percent(25)) c.numerics.weights = WeightType::bf16;
  const std::int64_t rows = unit(c, 'B');
  c.batch = rows == 1 ? choose.between(1, 5) : rows * (rows <= 6 ? choose.between(1, 2) : 1);
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  c.prompt = L * choose.between(1, std::max<std::int64_t>(1, 7 / L));
  c.chunk = choose.percent(50) ? c.prompt : L * choose.between(1, c.prompt / L);
  c.gen = choose.of<std::int64_t>({1, 2, 3, 3, 3, 4, 4, 5});
  c.seed = static_cast<std::uint64_t>(choose.below(1'000'000));
  if (choose.percent(22)) {
    c.numerics.regime = Regime::f32;
    c.numerics.schedule = choose.of({Schedule::group, Schedule::ring, Schedule::tree});
  }
  return c;
}

bool legal(const Case& c) {
  try {
    require_legal(c);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<Case> standard_matrix() {
  std::vector<Case> all;
  const auto add = [&](const char* torus, const char* model, const Strategy& prefill,
                       const Strategy& decode, int batch, int prompt, int gen,
                       const char* block = "parallel") {
    all.push_back(parse_case(fmt::format(
        "torus={} model={} prefill={} decode={} block={} batch={} prompt={} gen={} seed=1", torus,
        model, prefill.to_string(), decode.to_string(), block, batch, prompt, gen)));
  };
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const char* model : {"palm-tiny", "palm-tiny,K=24"})
      for (const Strategy& s : all_strategies()) add(torus, model, s, s, 24, 7, 4);
  for (const char* model : {"palm-tiny", "palm-tiny,K=24"})
    for (const Strategy& prefill : all_strategies())
      for (const Strategy& decode : all_strategies())
        if (!(prefill == decode)) add("4x2x3", model, prefill, decode, 24, 7, 4);
  for (const Strategy& s : all_strategies()) add("4x4x4", "palm-mini", s, s, 64, 3, 3);
  // Every strategy in the f32 regime, under each schedule on one of three tori.
  std::size_t schedule = 0;
  for (const char* torus : {"4x2x3", "3x2x2", "1x5x2"})
    for (const Strategy& s : all_strategies()) {
      const int chips = Torus::parse(torus).chips();
      add(torus, chips == 10 ? "palm-tiny,E=80,F=160,H=20,V=40" : "palm-tiny", s, s,
          chips == 10 ? 10 : 24, 3, 3);
      all.back().numerics.regime = Regime::f32;
      all.back().numerics.schedule =
          std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule++ % 3];
    }
  const char* const everything =
      "palm-tiny,ffn=geglu,norm=layernorm,bias=all,rope=interleaved,tied=false";
  for (const Strategy& s : all_strategies())
    for (bool bf16 : {false, true}) {
      if (bf16)
        add("3x2x2", "palm-tiny,K=6", s, s, 24, 3, 3);
      else
        add("4x2x3", everything, s, s, 24, 3, 3, "serial");
      if (bf16) all.back().numerics.act = ActType::bf16;
      all.back().numerics.regime = Regime::f32;
      all.back().numerics.schedule =
          std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule++ % 3];
    }
  // The rest of the model family, in every strategy.
  for (const Strategy& s : all_strategies()) {
    for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
      add(torus, "palm-tiny", s, s, 24, 7, 4, "serial");
    add("4x2x3", "palm-tiny,K=24", s, s, 24, 7, 4, "serial");
    for (const char* block : {"parallel", "serial"})
      for (const char* torus : {"4x2x3", "3x2x2"}) add(torus, everything, s, s, 24, 5, 3, block);
    add("4x2x3", "palm-tiny,ffn=gelu,rope=none", s, s, 24, 5, 3);
    add("3x2x2", "palm-tiny,ffn=gelu-erf,norm=layernorm,bias=qkv", s, s, 24, 5, 3, "serial");
  }
  return all;
}

Case draw(std::uint64_t seed, std::uint64_t index) {
  Choices choose(seed, index);
  for (;;) {
    const Case c = attempt(choose);
    const double cost = multiply_adds(c);
    // Large cases are kept one time in three, so that the typical one stays cheap.
    if (cost > kMostMultiplyAdds || (cost > kMostMultiplyAdds / 4 && !choose.percent(33))) continue;
    if (legal(c)) return c;
  }
}

std::vector<Case> simpler(const Case& c) {
  std::vector<Case> all;
  const auto propose = [&](auto&& change) {
    Case next = c;
    change(next);
    if (!(next == c) && legal(next)) all.push_back(next);
  };
  for (Axis axis : {Axis::x, Axis::y, Axis::z})
    for (int size : {1, 2, c.torus.size(axis) - 1}) {
      if (size < 1 || size >= c.torus.size(axis)) continue;
      propose([&](Case& next) {
        int sizes[3] = {c.torus.size(Axis::x), c.torus.size(Axis::y), c.torus.size(Axis::z)};
        sizes[static_cast<std::size_t>(axis)] = size;
        next.torus = Torus(sizes[0], sizes[1], sizes[2]);
        // The batch follows if it was the least; a torus that no longer divides is not legal.
        if (c.batch == chips(c.torus)) next.batch = chips(next.torus);
      });
    }
  propose([](Case& next) { next.model.layers = 1; });
  propose([](Case& next) { next.gen = std::max<std::int64_t>(1, next.gen - 1); });
  propose([](Case& next) { next.gen = std::min<std::int64_t>(2, next.gen); });
  propose([](Case& next) { next.prompt = next.chunk = 1; });
  propose([](Case& next) { next.chunk = next.prompt; });
  propose([](Case& next) {
    next.prompt = std::max<std::int64_t>(1, next.prompt - 1);
    next.chunk = std::min(next.chunk, next.prompt);
  });
  propose([](Case& next) {
    next.numerics.regime = Regime::exact, next.numerics.schedule = Schedule::group;
  });
  propose([](Case& next) { next.numerics.schedule = Schedule::group; });
  propose([](Case& next) { next.numerics.act = ActType::f32; });
  propose([](Case& next) { next.numerics.weights = WeightType::f32; });
  propose([](Case& next) { next.decode = next.prefill; });
  const std::int64_t n = chips(c.torus);
  const auto scaled = [](ModelConfig& m) {
    m.logit_scale = parse_model(fmt::format("palm-tiny,E={}", m.E)).logit_scale;
  };
  // Only downwards, so that repeating ends.
  propose([&, unit = unit(c, 'E')](Case& next) {
    next.model.E = std::min(c.model.E, unit), scaled(next.model);
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
  propose([](Case& next) { next.model.rotary = 1.0; });
  propose([](Case& next) { next.model.theta = 10000.0; });
  propose([](Case& next) { next.model.embed_scale = 1.0F; });
  propose([&](Case& next) {
    const std::int64_t least =
        std::max(smallest_batch(c.prefill, c.torus), smallest_batch(c.decode, c.torus));
    next.batch = std::min(c.batch, least);
  });
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

void Coverage::add(const Case& c) {
  ++cases_;
  const int X = c.torus.size(Axis::x);
  const int Y = c.torus.size(Axis::y);
  const int Z = c.torus.size(Axis::z);
  const auto odd = [](int size) { return size >= 3 && size % 2 == 1; };
  if (!(X == Y && Y == Z)) ++counts_["axes not all equal"];
  if (c.torus.chips() >= 12) ++counts_["12 chips or more"];
  if (c.gen >= 3) ++counts_["gen 3 or more"];
  if (c.numerics.regime == Regime::f32) {
    ++counts_["regime f32"];
    ++counts_[fmt::format("schedule {}", shardproof::to_string(c.numerics.schedule))];
  }
  if (odd(X) || odd(Y) || odd(Z)) ++counts_["an odd axis of 3 or more"];
  if (c.model.block == Block::serial) ++counts_["serial blocks"];
  if (c.model.norm == Norm::layernorm) ++counts_["layernorm"];
  if (c.model.ffn != Ffn::swiglu) ++counts_["geglu or gelu"];
  if (c.model.bias != Bias::none) ++counts_["biases"];
  if (c.model.rope == Rope::interleaved) ++counts_["interleaved rope"];
  if (!c.model.tied) ++counts_["untied table"];
  ++counts_[c.prefill.to_string()];
  if (!(c.decode == c.prefill) && c.gen > 1) ++counts_[c.decode.to_string()];
  multiply_adds_.push_back(multiply_adds(c));
}

std::vector<Coverage::Requirement> Coverage::requirements() const {
  std::vector<Requirement> all{{"axes not all equal", 0, 60}, {"12 chips or more", 0, 30},
                               {"gen 3 or more", 0, 50},      {"an odd axis of 3 or more", 0, 20},
                               {"serial blocks", 0, 20},      {"layernorm", 0, 15},
                               {"geglu or gelu", 0, 20},      {"biases", 0, 20},
                               {"interleaved rope", 0, 10},   {"untied table", 0, 10},
                               {"regime f32", 0, 15},         {"schedule group", 0, 2},
                               {"schedule ring", 0, 2},       {"schedule tree", 0, 2}};
  for (const Strategy& s : all_strategies()) all.push_back({s.to_string(), 0, 3});
  for (Requirement& r : all) {
    const auto at = counts_.find(r.name);
    const auto hits = at == counts_.end() ? std::int64_t{0} : at->second;
    r.share = cases_ == 0 ? 0.0 : 100.0 * static_cast<double>(hits) / static_cast<double>(cases_);
  }
  return all;
}

double Coverage::median_multiply_adds() const {
  if (multiply_adds_.empty()) return 0.0;
  std::vector<double> sorted = multiply_adds_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::string Coverage::to_string() const {
  std::string text = fmt::format("coverage of {} random cases\n", cases_);
  for (const Requirement& r : requirements())
    text += fmt::format("  {:<26}{:5.1f} %   (at least {:.0f} %)\n", r.name, r.share, r.demand);
  text += fmt::format("  {:<26}{:.1e}    (at most 5e+06)\n", "median multiply-adds",
                      median_multiply_adds());
  if (cases_ < kLeastCases) text += fmt::format("  (demanded of {} cases or more)\n", kLeastCases);
  return text;
}

std::string Coverage::shortfall() const {
  if (cases_ > 0 && cases_ < kLeastCases) return "";
  for (const Requirement& r : requirements())
    if (r.share < r.demand)
      return fmt::format("lazy draw: {} in {:.1f} % of the cases, at least {:.0f} % are wanted",
                         r.name, r.share, r.demand);
  if (median_multiply_adds() > 5e6)
    return fmt::format("the median case has {:.1e} multiply-adds, at most 5e6 are wanted",
                       median_multiply_adds());
  return "";
}

}  // namespace shardproof::cases
