// What a program is counted to move equals the closed formulas of docs/strategies.md, and what the
// run really moved.
#include <cmath>
#include <numeric>

#include "engine/program/count.h"
#include "engine/run/dim_padding.h"
#include "engine/run/inference.h"
#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// The strategies whose closed formulas are written here, of what is around the layers; those of
/// layers are tests/engine/cost/formulas/closed_forms.txt.
const std::vector<Strategy>& five() {
  static const std::vector<Strategy> all = [] {
    std::vector<Strategy> strategies;
    for (const char* name :
         {"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch", "wg-xyz:batch"})
      strategies.push_back(Strategy::parse(name));
    return strategies;
  }();
  return all;
}

/// Any case, with two of these strategies and dims that they divide. It is counted, not run.
Case draw_of_the_five() {
  Case c = *any_case();
  const std::int64_t n = c.torus.chips();
  const auto whole = [](std::int64_t value, std::int64_t divisor) {
    return (value + divisor - 1) / divisor * divisor;
  };
  c.prefill = *rc::gen::elementOf(five());
  c.decode = *rc::gen::elementOf(five());
  c.model = with_dims(c.model, whole(c.model.E, n), whole(c.model.F, n),
                      whole(c.model.H, std::lcm(n, c.model.K)), c.model.K, whole(c.model.V, n));
  c.batch = whole(c.batch, n);
  c.gen = std::max<std::int64_t>(c.gen, 2);  // else there is no decode program
  // What is longer on chips is counted so.
  c.pad_heads = *rc::gen::element<std::int64_t>(0, 1) * (c.model.H + std::lcm(n, c.model.H));
  c.pad_vocab = *rc::gen::element<std::int64_t>(0, 1) * (c.model.V + n);
  return c;
}

/// The chips whose block in one order of axes is not the one they have in another.
std::int64_t movers(const Torus& torus, const Axes& from, const Axes& to) {
  const auto block = [&](int chip, const Axes& axes) {
    int at = 0;
    for (Axis a : axes) at = at * torus.size(a) + torus.coordinate(chip, a);
    return at;
  };
  std::int64_t chips = 0;
  for (int chip = 0; chip < torus.chips(); ++chip)
    chips += block(chip, from) != block(chip, to) ? 1 : 0;
  return chips;
}

/// The formulas, over all chips, for one case and one phase.
class Formulas {
 public:
  Formulas(const Case& c, const Strategy& strategy) : c_(c), name_(strategy.to_string()) {
    c_.model = placed_model(c);
    X_ = c.torus.size(Axis::x);
    n_ = c.torus.chips();
    YZ_ = n_ / X_;
    for (const char* axes : {"", "z", "zy", "zyx"}) {
      const int blocks = c.torus.size(Axes::parse(axes));
      if (c_.model.K % blocks != 0 || blocks == 1) continue;
      kv_ = Axes::parse(axes).size();
      kv_blocks_ = blocks;
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

  std::int64_t sample() const {
    const std::int64_t candidates = gather(c_.batch * n_, n_);
    if (c_.sampling.sample == Sample::greedy) return 2 * candidates;
    // The largest logits, masses of 12 words, hits and tokens; a round for each of 30 bits of a
    // threshold, of a count or a sum (and that of all), added up on all chips.
    constexpr std::int64_t kBits = 30, kWords = 12;
    std::int64_t sent = (3 + kWords) * candidates;
    if (c_.sampling.top_k > 0) sent += 2 * gather(c_.batch * kBits, n_);
    if (c_.sampling.top_p < 1) sent += 2 * gather(c_.batch * (1 + kBits) * kWords, n_);
    return sent;
  }

  static std::int64_t hand_over(const Case& c) {
    const Formulas from(c, c.prefill), to(c, c.decode);
    if (from.batch() == to.batch()) return 0;
    const std::int64_t cache = c.batch * c.prompt * placed_model(c).K * c.model.Q;
    return 2 * (to.batch() ? from.into_batch(cache) : from.out_of_batch(cache));
  }

 private:
  bool is(std::string_view weights) const { return name_.starts_with(weights); }
  bool batch() const { return name_.ends_with(":batch"); }
  /// Of a norm: the mean and the sum of squares, or the latter alone.
  std::int64_t statistics() const { return c_.model.norm == Norm::layernorm ? 2 : 1; }
  bool gathered() const { return is("wg-xyz"); }
  /// D(K−1)/K a chip, over all chips: the cost of all_gather, reduce_scatter and all_to_all.
  std::int64_t gather(std::int64_t D, std::int64_t K) const { return D * n_ / K * (K - 1); }

  /// Every chip's D where its block in one order of axes is not the one it has in another.
  std::int64_t permuted(std::int64_t D, const char* from, const char* to) const {
    return D * movers(c_.torus, Axes::parse(from), Axes::parse(to));
  }

  // Where K's heads lie over z or zy, the axes left of zyx are free. They cut the batch first, x
  // major; then K's axes move after them, all on n-ths, z last: B_xyz. Chips change places to
  // B_zyx. On 4x4x4 that is cheaper than to exchange before the batch is sharded (1.5 kv against 12
  // for z, 1.7 against 3.75 for zy), for all the permutation.

  /// BLKQ, K over kv_ axes and complete, to B_zyx.
  std::int64_t into_batch(std::int64_t kv) const {
    if (kv_ == 0) return 0;  // each chip takes its rows
    const std::int64_t moved = gather(kv / n_, kv_blocks_);
    return kv_ == 3 ? moved : moved + permuted(kv / n_, "xyz", "zyx");
  }

  /// And back: change places, exchange, and gather what of the batch is left on the free axes.
  std::int64_t out_of_batch(std::int64_t kv) const {
    if (kv_ == 0) return gather(kv, n_);
    const std::int64_t moved = gather(kv / n_, kv_blocks_);
    if (kv_ == 3) return moved;
    return permuted(kv / n_, "zyx", "xyz") + moved + gather(kv / kv_blocks_, n_ / kv_blocks_);
  }

  Case c_;  // with the model as placed
  std::string name_;
  std::int64_t X_, YZ_, n_, kv_blocks_ = 1;
  int kv_ = 0;
};

std::int64_t counted(const Program& program, const Case& c, std::int64_t L) {
  return count(program, check(program, c, L, c.prompt), c.torus, c.numerics, c.model).moved();
}

RC_GTEST_PROP(Ledger, EqualsTheFormulas, ()) {
  const Case c = draw_of_the_five();
  RC_LOG() << print_case(c) << "\n";
  const RunPlan programs = make_plan(c);
  const auto phase = [&](const PhasePrograms& p, const Strategy& strategy, std::int64_t L) {
    const Formulas formulas(c, strategy);
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
  void observe(const Scope&, const Program&, const Op*, const ValueDecl&, const Sharded&) override {
  }
  void moved(const Scope& scope, const Program& program, const Op& op,
             std::int64_t elements) override {
    seen[scope.step(program, op.results[0].name)] += elements;
  }
  std::map<std::string, std::int64_t> seen;
};

RC_GTEST_PROP(Ledger, EqualsWhatTheChipsReceived, ()) {
  const Case c = *any_case();
  const RunPlan programs = make_plan(c);
  OracleMemo memo;
  const auto known = memo.get(c);
  Meter meter;
  Threads threads(1);
  run_inference(programs, known->weights, known->prompt, threads, &meter, Hazards::hostile());
  std::size_t met = 0;
  const ModelConfig placed = placed_model(c);
  const auto compare = [&](const Program& program, const std::string& prefix,
                           const PassExtents& extents) {
    Findings findings;
    const auto types = check(program, placed, c.torus, extents, findings);
    RC_ASSERT(findings.all().empty());
    for (const StepCost& cost : count(program, types, c.torus, c.numerics, c.model).steps) {
      if (!is_collective(cost.kind)) continue;
      std::int64_t received = meter.seen.at(prefix + cost.step);
      ++met;
      // The simulator reads every partial sum whole where an all_reduce is two rings of D(K−1)/K.
      if (cost.kind == OpKind::all_reduce || op_row(cost.kind).searches)
        received = 2 * received / cost.group;
      RC_ASSERT(received == cost.moved);
    }
  };
  const auto of_layers = [&](const Program& program, const std::string& pass,
                             const std::string& name, const PassExtents& extents) {
    for (std::int64_t l = 0; l < c.model.layers; ++l)
      compare(program, pass + ".layer" + std::to_string(l) + "." + name, extents);
  };
  std::map<Phase, std::string> last;  // pass of each phase
  for (std::int64_t i = 0; i < programs.passes.size(); ++i) {
    const PassPlan of = programs.passes.at(i);
    const PhasePrograms& p = programs.programs(of.phase);
    const PassExtents extents{of.batch(), of.L, of.cached, of.prefix.rows, of.prefix.length};
    compare(p.embed, of.name + ".embed.", extents);
    of_layers(p.layer, of.name, "", extents);
    compare(p.head, of.name + ".head.", extents);
    if (of.sample) compare(p.sample, of.name + ".sample.", extents);
    last[of.phase] = of.name;
  }
  const std::int64_t M = programs.passes.cached_by_prefill();
  const PassExtents caches{c.batch, M, M, c.prefix.rows, c.prefix.length};
  if (c.prefix.given())
    of_layers(programs.prefix_hand_over, last[Phase::prefix], "prefix_hand_over.", caches);
  if (c.gen > 1) {
    of_layers(programs.hand_over, last[Phase::prefill], "hand_over.", caches);
    of_layers(programs.prefix_to_decode, last[Phase::prefill], "prefix_to_decode.", caches);
  }
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
  const RunPlan programs = make_plan(c);
  const ModelConfig m = placed_model(c);
  const std::int64_t L = c.gen > 1 ? 1 : c.chunk;  // without a decode step, of the prefill
  const auto real = [](std::int64_t v) { return static_cast<double>(v); };
  for (const Program* program :
       {&programs.decode.embed, &programs.decode.layer, &programs.decode.head,
        &programs.decode.sample, &programs.hand_over, &programs.prefix_hand_over,
        &programs.prefix_to_decode}) {
    std::map<char, double> extents{{'B', real(c.batch)},       {'L', real(L)},
                                   {'M', real(c.prompt)},      {'E', real(m.E)},
                                   {'F', real(m.F)},           {'H', real(m.H)},
                                   {'K', real(m.K)},           {'Q', real(m.Q)},
                                   {'V', real(m.V)},           {'C', real(c.torus.chips())},
                                   {'N', real(c.prefix.rows)}, {'T', real(c.prefix.length)}};
    const auto types = check(*program, c, L, c.prompt);
    for (const StepCost& cost : count(*program, types, c.torus, c.numerics, c.model).steps) {
      if (!is_collective(cost.kind)) continue;
      const Type& made = types.at(cost.step);  // words of sampling are as many as a value has
      if (const auto words = made.layout.find('W')) extents['W'] = real(made.shape[*words]);
      for (bool paper : {false, true}) {
        if (paper && cost.group == 1) continue;  // nothing moves, whatever the paper's formula says
        double printed = elements_per_chip(cost, c.torus.chips(), paper);
        // Of a permutation D is printed, though chips that keep their block send nothing.
        if (cost.kind == OpKind::permute_axes && !paper) {
          const Op& op = *program->producer(cost.step);
          const std::int64_t chips = movers(c.torus, op.axes, op.as);
          if (chips == 0) continue;
          printed *= real(c.torus.chips()) / real(chips);
        }
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
  const Program layer = make_plan(c).prefill.layer;
  const Ledger ledger = count(layer, check(layer, c, 1, 4), c.torus, c.numerics, c.model);
  std::map<std::string, std::int64_t> per_chip;
  for (const StepCost& cost : ledger.steps)
    if (is_collective(cost.kind)) per_chip[cost.step] = cost.moved / 24;
  EXPECT_EQ(per_chip, (std::map<std::string, std::int64_t>{{"xg", 240},
                                                           {"sa", 36},
                                                           {"qr", 288},
                                                           {"qt", 92},
                                                           {"kr", 12},
                                                           {"vr", 12},
                                                           {"ot", 92},
                                                           {"og", 288},
                                                           {"hr", 144},
                                                           {"ur", 144},
                                                           {"ag", 144},
                                                           {"yr", 240}}));
}

TEST(Ledger, WritesTheFormulaOfEveryCollective) {
  const Case c = parse_case("torus=4x2x3 prefill=ws2d:batch");
  const Program layer = make_plan(c).prefill.layer;
  const Ledger ledger = count(layer, check(layer, c, 1, 4), c.torus, c.numerics, c.model);
  for (const StepCost& cost : ledger.steps) {
    if (cost.step == "xg") {
      EXPECT_EQ(formula(cost, false), "BLE/X (1-1/YZ)");
      EXPECT_EQ(formula(cost, true), "BLE/X");
    }
    if (cost.step == "sa") {
      EXPECT_EQ(formula(cost, false), "2 BL (1-1/X)");
    }
    if (cost.step == "ot") {
      EXPECT_EQ(formula(cost, false), "BLHQ/XYZ (1-1/XYZ)");
    }
  }
}

}  // namespace
}  // namespace shardproof
