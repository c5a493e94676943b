// What a program is counted to move equals the closed formulas of docs/strategies.md, and what the
// run really moved.
#include <cmath>

#include "engine/program/count.h"
#include "golden/verify.h"
#include "tests/golden/case_gen.h"

namespace shardproof {
namespace {

/// The formulas, over all chips, for one case and one phase.
class Formulas {
 public:
  Formulas(const Case& c, const Strategy& strategy) : c_(c), s_(strategy) {
    X_ = c.torus.size(Axis::x);
    n_ = c.torus.chips();
    YZ_ = n_ / X_;
    kv_ = kv_axes(c.model, c.torus).size();
    kv_blocks_ = c.torus.size(kv_axes(c.model, c.torus));
  }

  std::int64_t layer(std::int64_t L) const {
    const ModelConfig& m = c_.model;
    const std::int64_t BL = c_.batch * L;
    const std::int64_t heads = BL * m.H * m.Q;
    const std::int64_t kv = BL * m.K * m.Q;
    const std::int64_t norms = m.block == Block::serial ? 2 : 1;  // each with its gather and sum
    switch (s_.ffn) {
      case FfnLayout::ws1d:
        return norms * 2 * gather(BL * m.E, n_) +
               (batch() ? 2 * gather(heads / n_, n_) + 2 * gather(kv / kv_blocks_, kv_blocks_) : 0);
      case FfnLayout::ws2d: {
        const std::int64_t block =
            norms * (2 * gather(BL * m.E / X_, YZ_) + statistics() * 2 * gather(BL, X_)) +
            2 * gather(heads / YZ_, X_) + matrices() * gather(BL * m.F / YZ_, X_);
        if (!batch())  // all_reduce of K and V where K is not split over x too
          return block + (kv_ == 3 ? 2 : 4) * gather(kv / (kv_ == 3 ? YZ_ : kv_blocks_), X_);
        const std::int64_t scatter = 2 * gather(kv / YZ_, X_);
        const std::int64_t exchange = 2 * gather(kv / kv_blocks_, kv_blocks_);
        return block + 2 * gather(heads / n_, n_) + scatter + exchange;
      }
      default: {
        const std::int64_t wide = 2 * m.E * m.H * m.Q + matrices() * m.E * m.F;
        const std::int64_t narrow = 2 * m.E * m.K * m.Q;
        const std::int64_t rest = kv_ == 3 ? YZ_ : kv_blocks_;
        return gather(wide / YZ_, X_) + gather(wide, YZ_) + gather(narrow / rest, X_) +
               gather(narrow, rest);
      }
    }
  }

  std::int64_t embed(std::int64_t L) const {
    const std::int64_t BLE = c_.batch * L * c_.model.E;
    return gather(BLE / X_, YZ_) + (gathered() ? gather(BLE / n_, X_) : 0);
  }

  std::int64_t head() const {
    const std::int64_t BE = c_.batch * c_.model.E;
    return gather(BE / X_, YZ_) + (gathered() ? gather(BE / n_, X_) : 0) +
           statistics() * 2 * gather(c_.batch, X_) + gather(c_.batch * c_.model.V / YZ_, X_);
  }

  std::int64_t sample() const { return 2 * gather(c_.batch * n_, n_); }

  static std::int64_t hand_over(const Case& c) {
    const Formulas f(c, c.prefill);
    if (c.prefill.attention == c.decode.attention) return 0;
    const std::int64_t cache = c.batch * c.prompt * c.model.K * c.model.Q / f.kv_blocks_;
    const std::int64_t exchange = 2 * f.gather(cache, f.kv_blocks_);
    return f.batch() ? exchange + 2 * f.gather(cache, f.n_ / f.kv_blocks_) : exchange;
  }

 private:
  bool batch() const { return s_.attention == AttentionLayout::batch; }
  /// Of a norm: the mean and the sum of squares, or the latter alone.
  std::int64_t statistics() const { return c_.model.norm == Norm::layernorm ? 2 : 1; }
  /// Of the FFN, with W_out.
  std::int64_t matrices() const {
    return c_.model.ffn == Ffn::swiglu || c_.model.ffn == Ffn::geglu ? 3 : 2;
  }
  bool gathered() const { return s_.ffn == FfnLayout::wg_xyz; }
  /// D(K−1)/K a chip, over all chips: the cost of all_gather, reduce_scatter and all_to_all.
  std::int64_t gather(std::int64_t D, std::int64_t K) const { return D * n_ / K * (K - 1); }

  const Case& c_;
  Strategy s_;
  std::int64_t X_, YZ_, n_, kv_blocks_;
  int kv_;
};

std::int64_t counted(const Program& program, const Case& c, std::int64_t L) {
  return count(program, check(program, c.inference(), c.batch, L, c.prompt), c.torus, c.numerics)
      .moved();
}

RC_GTEST_PROP(Ledger, EqualsTheFormulas, ()) {
  const Case c = *any_case();
  const InferencePrograms programs = build_programs(c.inference());
  const auto phase = [&](const PhasePrograms& p, const Strategy& strategy, std::int64_t L) {
    const Formulas formulas(c, strategy);
    RC_ASSERT(counted(p.layer, c, L) == formulas.layer(L));
    RC_ASSERT(counted(p.embed, c, L) == formulas.embed(L));
    RC_ASSERT(counted(p.head, c, L) == formulas.head());
    RC_ASSERT(counted(p.sample, c, L) == formulas.sample());
  };
  phase(programs.prefill, c.prefill, c.chunk);
  phase(programs.decode, c.decode, 1);
  RC_ASSERT(counted(programs.hand_over, c, c.prompt) == Formulas::hand_over(c));
}

/// What each step of the run moved, by the step's id.
class Meter : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const Result&, const Sharded&) override {}
  void moved(const Scope& scope, const Program& program, const Op& op,
             std::int64_t elements) override {
    seen[scope.step(program, op.results[0].name)] += elements;
  }
  std::map<std::string, std::int64_t> seen;
};

RC_GTEST_PROP(Ledger, EqualsWhatTheChipsReceived, ()) {
  const Case c = *any_case();
  const InferencePrograms programs = build_programs(c.inference());
  OracleMemo memo;
  const auto known = memo.get(c);
  Meter meter;
  Threads threads(1);
  run_inference(c.inference(), programs, known->weights, known->prompt, threads, &meter,
                Hazards::hostile());
  std::size_t met = 0;
  const auto compare = [&](const Program& program, const std::string& prefix, std::int64_t L,
                           std::int64_t M) {
    const auto types = check(program, c.inference(), c.batch, L, M);
    for (const StepCost& cost : count(program, types, c.torus, c.numerics).steps) {
      if (!is_collective(cost.kind)) continue;
      std::int64_t received = meter.seen.at(prefix + cost.step);
      ++met;
      // The simulator reads every summand whole where an all_reduce is two rings of D(K−1)/K.
      if (cost.kind == OpKind::all_reduce) received = 2 * received / cost.group;
      RC_ASSERT(received == cost.moved);
    }
  };
  const auto pass = [&](const PhasePrograms& p, const std::string& name, std::int64_t L,
                        std::int64_t M, bool samples) {
    compare(p.embed, name + ".embed.", L, M);
    for (std::int64_t l = 0; l < c.model.layers; ++l)
      compare(p.layer, name + ".layer" + std::to_string(l) + ".", L, M);
    compare(p.head, name + ".head.", L, M);
    if (samples) compare(p.sample, name + ".sample.", L, M);
  };
  std::int64_t chunk = 0;
  for (std::int64_t at = 0; at < c.prompt; at += c.chunk, ++chunk) {
    const std::int64_t L = std::min(c.chunk, c.prompt - at);
    pass(programs.prefill, "prefill.c" + std::to_string(chunk), L, at, at + L == c.prompt);
  }
  for (std::int64_t step = 1; step < c.gen; ++step)
    pass(programs.decode, "decode." + std::to_string(step), 1, c.prompt + step - 1, true);
  if (c.gen > 1)
    for (std::int64_t l = 0; l < c.model.layers; ++l)
      compare(
          programs.hand_over,
          "prefill.c" + std::to_string(chunk - 1) + ".layer" + std::to_string(l) + ".hand_over.",
          c.prompt, c.prompt);
  RC_ASSERT(met == meter.seen.size());  // nothing moved that is not counted
}

/// What a printed formula, such as "2 BL/X (1-1/YZ)", comes to.
double evaluated(const std::string& text, const std::map<char, double>& extents,
                 const Torus& torus) {
  const auto blocks = [&](const std::string& axes) {
    double n = 1.0;
    for (char axis : axes) n *= torus.size(static_cast<Axis>(axis - 'X'));
    return n;
  };
  std::string rest = text;
  double value = 1.0;
  if (rest.starts_with("2 ")) {
    value = 2.0;
    rest = rest.substr(2);
  }
  const std::string body = rest.substr(0, rest.find(' '));
  const auto slash = body.find('/');
  for (char letter : body.substr(0, slash)) value *= extents.at(letter);
  if (slash != std::string::npos) value /= blocks(body.substr(slash + 1));
  if (const auto factor = rest.find("(1-1/"); factor != std::string::npos)
    value *= 1.0 - 1.0 / blocks(rest.substr(factor + 5, rest.find(')') - factor - 5));
  return value;
}

RC_GTEST_PROP(Ledger, PrintsFormulasThatComeToItsNumbers, ()) {
  const Case c = *any_case();
  const InferencePrograms programs = build_programs(c.inference());
  const ModelConfig& m = c.model;
  const auto real = [](std::int64_t v) { return static_cast<double>(v); };
  for (const Program* program :
       {&programs.decode.embed, &programs.decode.layer, &programs.decode.head,
        &programs.decode.sample, &programs.hand_over}) {
    const std::map<char, double> extents{{'B', real(c.batch)},  {'L', 1},
                                         {'M', real(c.prompt)}, {'E', real(m.E)},
                                         {'F', real(m.F)},      {'H', real(m.H)},
                                         {'K', real(m.K)},      {'Q', real(m.Q)},
                                         {'V', real(m.V)},      {'C', real(c.torus.chips())}};
    const auto types = check(*program, c.inference(), c.batch, 1, c.prompt);
    for (const StepCost& cost : count(*program, types, c.torus, c.numerics).steps) {
      if (!is_collective(cost.kind)) continue;
      for (bool paper : {false, true}) {
        if (paper && cost.group == 1) continue;  // nothing moves, whatever the paper's formula says
        const double printed = elements_per_chip(cost, c.torus.chips(), paper);
        // Both are rationals of small integers: equal after rounding to a 1/4096th.
        RC_ASSERT(std::llround(4096 * printed) ==
                  std::llround(4096 * evaluated(formula(cost, paper), extents, c.torus)));
      }
    }
  }
}

TEST(Ledger, CountsTheLayerOfThePaperLineByLine) {
  // palm-tiny with E=F=48, Q=4 on 4x2x3, 24 rows, one token, multiquery, over batch.
  const Case c =
      parse_case("torus=4x2x3 model=palm-tiny,E=48,F=48,Q=4 prefill=ws2d:batch batch=24");
  const Program layer = build_programs(c.inference()).prefill.layer;
  const Ledger ledger = count(layer, check(layer, c.inference(), 24, 1, 4), c.torus, c.numerics);
  std::map<std::string, std::int64_t> per_chip;
  for (const StepCost& cost : ledger.steps)
    if (is_collective(cost.kind)) per_chip[cost.step] = cost.moved / 24;
  EXPECT_EQ(per_chip, (std::map<std::string, std::int64_t>{{"xg", 240},
                                                           {"sa", 36},
                                                           {"qr", 288},
                                                           {"qb", 92},
                                                           {"kr", 12},
                                                           {"vr", 12},
                                                           {"ob", 92},
                                                           {"og", 288},
                                                           {"hr", 144},
                                                           {"ur", 144},
                                                           {"ag", 144},
                                                           {"yr", 240}}));
}

TEST(Ledger, WritesTheFormulaOfEveryCollective) {
  const Case c = parse_case("torus=4x2x3 prefill=ws2d:batch");
  const Program layer = build_programs(c.inference()).prefill.layer;
  const Ledger ledger = count(layer, check(layer, c.inference(), 24, 1, 4), c.torus, c.numerics);
  for (const StepCost& cost : ledger.steps) {
    if (cost.step == "xg") {
      EXPECT_EQ(formula(cost, false), "BLE/X (1-1/YZ)");
      EXPECT_EQ(formula(cost, true), "BLE/X");
    }
    if (cost.step == "sa") {
      EXPECT_EQ(formula(cost, false), "2 BL (1-1/X)");
    }
    if (cost.step == "ob") {
      EXPECT_EQ(formula(cost, false), "BLHQ/XYZ (1-1/XYZ)");
    }
  }
}

}  // namespace
}  // namespace shardproof
