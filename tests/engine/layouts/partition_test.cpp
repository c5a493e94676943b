#include "engine/layouts/partition.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

/// The model of the reference's columns: E=F=48, H=24, Q=4, 24 rows; one position in a decode
/// step, one for each chip in a prefill that shards L.
Case column(const Strategy& strategy, const char* torus, std::int64_t K) {
  ModelConfig config = parse_model(fmt::format("palm-tiny,E=48,F=48,H=24,Q=4,K={}", K));
  if (strategy.to_string() == "mixed:1d-2d") config.block = Block::serial;
  Case c;
  c.torus = Torus::parse(torus);
  c.model = config;
  c.prefill = c.decode = strategy;
  c.batch = 24;
  c.prompt = c.chunk = decodes(strategy) ? 1 : 24;
  return c;
}

/// Elements that all chips send, by value; wk and wv with the other weights, v with k, up with
/// gate; "stat" is what no arrow is for.
std::map<std::string, std::int64_t> sent(const Case& c) {
  const PartitionedLayer made = partitioned(c, c.prefill, Phase::prefill);
  const Ledger ledger = count(made.layer, check(made.layer, c, c.prompt, 0), c.torus, {}, c.model);
  std::map<std::string, std::int64_t> of{{"stat", ledger.moved()}};
  for (const Arrow& arrow : made.arrows)
    for (std::size_t i = arrow.begin; i < arrow.end; ++i) {
      std::string value = arrow.value;
      if (value.starts_with("w")) value = "weights";
      if (value == "v") value = "k";
      if (value == "up") value = "gate";
      if (value.ends_with("_out")) value = "out";
      of[value] += ledger.steps[i].moved;
      of["stat"] -= ledger.steps[i].moved;
    }
  return of;
}

/// The paper's letters on one torus, for closed forms.
struct Sizes {
  double X, Y, Z, n, BLE, BLF, A, BL, EF, EHQ;
  explicit Sizes(const Case& i)
      : X(i.torus.size(Axis::x)),
        Y(i.torus.size(Axis::y)),
        Z(i.torus.size(Axis::z)),
        n(i.torus.chips()),
        BLE(static_cast<double>(i.batch * i.prompt * i.model.E)),
        BLF(static_cast<double>(i.batch * i.prompt * i.model.F)),
        A(static_cast<double>(i.batch * i.prompt * i.model.H * i.model.Q)),
        BL(static_cast<double>(i.batch * i.prompt)),
        EF(static_cast<double>(i.model.E * i.model.F)),
        EHQ(static_cast<double>(i.model.E * i.model.H * i.model.Q)) {}
};
double f(double m) { return 1.0 - 1.0 / m; }

/// The share of chips that another order of a dim's axes moves.
double moved(const Torus& torus, const char* from, const char* to) {
  int count = 0;
  for (int chip = 0; chip < torus.chips(); ++chip)
    count += torus.block(chip, Axes::parse(from)) != torus.block(chip, Axes::parse(to));
  return static_cast<double>(count) / torus.chips();
}

/// What a chip sends of a layer but for keys and values, in closed form: the stream (in, mid and
/// the norms' gathers), the norms' statistics, q and attn each, the FFN, the outputs, the weights
/// of a K without axes (wk and wv apart).
struct Forms {
  double stream = 0, stat = 0, q = 0, attn = 0, ffn = 0, out = 0, weights = 0;
};

Forms forms(const std::string& name, const Case& c) {
  const Sizes s(c);
  const Torus& t = c.torus;
  const double YZ = s.Y * s.Z, XY = s.X * s.Y;
  const auto starts = [&](const char* with) { return name.starts_with(with); };
  const auto is = [&](const char* one) { return name == one; };
  // Of few heads attn goes from B_yx to Q_y: by Q_yx, where that divides Q, else by B_xy.
  const double to_channels =
      c.model.Q % static_cast<std::int64_t>(XY) == 0 ? f(XY) : moved(t, "yx", "xy") + f(s.Y);
  Forms x;
  if (starts("ws1d") || is("sp:1d")) {
    x.stream = x.out = s.BLE * f(s.n);
    x.q = x.attn = is("ws1d:batch")      ? s.A / s.n * f(s.n)
                   : is("ws1d:batch-x")  ? s.A / s.n * f(s.X)
                   : is("ws1d:batch-yx") ? s.A / s.n * f(XY)
                                         : 0.0;
    return x;
  }
  if (starts("ws2d") || is("sp:2d")) {
    x.stream = x.out = s.BLE / s.X * f(YZ);
    x.stat = 2 * s.BL * f(s.X);
    x.ffn = 3 * s.BLF / YZ * f(s.X);
    const double scatter = s.A / YZ * f(s.X);  // q reduced over x, attn gathered
    x.q = x.attn = scatter;
    const auto both = [&](double more) { x.q = x.attn = scatter + more; };
    if (is("ws2d:batch")) both(s.A / s.n * f(s.n));
    if (is("ws2d:batch-yx")) both(s.A / s.n * f(XY));
    if (is("ws2d:batch-x")) both(s.A / s.n * f(s.X));
    if (is("ws2d:bfirst-xy")) both(s.A / s.n * f(s.Y));
    if (is("ws2d:bfirst-xyz") || is("ws2d:norm-first-kv")) both(s.A / s.n * f(YZ));
    if (is("ws2d:pre-y")) both(s.A / YZ * f(s.Y));
    if (is("ws2d:pre-zy")) both(s.A / YZ * f(YZ));
    if (is("ws2d:released-z")) both(s.A / s.n * (moved(t, "zyx", "yxz") + f(s.Z)));
    if (is("ws2d:released-zy")) both(s.A / s.n * (moved(t, "zyx", "xyz") + f(YZ)));
    if (is("ws2d:heads-zy")) x.q = 2 * scatter, x.attn = 0;
    if (is("ws2d:few-heads")) x.q = 2 * s.A / s.Z * f(s.X), x.attn = 0;
    if (is("ws2d:few-heads-batch")) x.q = scatter, x.attn = scatter + s.A / s.n * to_channels;
    if (starts("ws2d:norm-first")) x.stat = 2 * s.BL * f(s.n);
    if (is("ws2d:stream-z")) x.stat = 2 * s.BL / s.Z * f(s.X);
    if (is("sp:2d")) x.stat = 2 * s.BL / YZ * f(s.X);
    return x;
  }
  if (starts("wg-x:")) {
    x.stream = x.out = s.BLE / s.X * f(YZ);
    x.weights = (3 * s.EF + 2 * s.EHQ) / YZ * f(s.X);
    if (is("wg-x:batch")) x.q = x.attn = s.A / s.n * f(YZ);
  } else if (starts("wg-xy:")) {
    x.stream = x.out = s.BLE / XY * f(s.Z);
    x.weights = (3 * s.EF + 2 * s.EHQ) / s.Z * f(XY);
    if (is("wg-xy:batch")) x.q = x.attn = s.A / s.n * f(s.Z);
  } else if (starts("wg-xyz") || is("fsdp") || is("ulysses") || is("context")) {
    x.weights = (3 * s.EF + 2 * s.EHQ) * f(s.n);
    if (is("ulysses")) x.q = x.attn = s.A / s.n * f(s.n);
  } else if (is("dp-z:1d")) {
    x.stream = x.out = s.BLE / s.Z * f(XY);
  } else if (is("dp-z:2d") || is("context-z:2d")) {
    x.stream = x.out = s.BLE / (s.X * s.Z) * f(s.Y);
    x.stat = 2 * s.BL / s.Z * f(s.X);
    x.ffn = 3 * s.BLF / YZ * f(s.X);
    x.q = x.attn = s.A / YZ * f(s.X);
  } else if (is("mixed:1d-2d")) {
    x.stream = x.out = s.BLE * f(s.n) + s.BLE / s.X * f(YZ);
    x.stat = 2 * s.BL * f(s.X);
    x.ffn = 3 * s.BLF / YZ * f(s.X);
  } else {
    EXPECT_EQ(name, "dp") << "a strategy without closed forms";
  }
  return x;
}

// A wrong table is not wrong, only slow: so what each sends is held against its closed form.
TEST(ShippedTables, SendWhatTheirClosedFormsSay) {
  for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "2x4x3"})
    for (const Strategy& strategy : all_strategies()) {
      // Where K has no axes the weights of k and v have no other way than over E.
      const Case c = column(strategy, torus, 1);
      const std::string name = strategy.to_string();
      const Forms want = forms(name, c);
      auto got = sent(c);
      const std::string at = name + " on " + torus;
      // A closed form is of one chip; over all it is a whole number.
      const auto whole = [&](double of_a_chip) {
        return std::llround(of_a_chip * c.torus.chips());
      };
      EXPECT_EQ(got["in"] + got["norm"] + got["mid"], whole(want.stream)) << at;
      EXPECT_EQ(got["stat"], whole(want.stat)) << at;
      EXPECT_EQ(got["q"], whole(want.q)) << at;
      EXPECT_EQ(got["attn"], whole(want.attn)) << at;
      EXPECT_EQ(got["gate"] + got["hidden"], whole(want.ffn)) << at;
      EXPECT_EQ(got["out"], whole(want.out)) << at;
      const double kv = 2.0 * 48 * 4;  // E·Q, twice
      const double gathers = name == "fsdp"     ? f(Sizes(c).n)
                             : want.weights > 0 ? f(Sizes(c).X)
                                                : 0.0;
      EXPECT_EQ(got["weights"], whole(want.weights + kv * gathers)) << at;
    }
}

// Keys and values by the number of heads: elements of k and v together, and of all weights, wk and
// wv among them, over the chips of 4x2x3.
TEST(ShippedTables, SendForKeysAndValuesWhatIsPinned) {
  std::ifstream file(SHARDPROOF_TEST_DATA "/key_value_counts.txt");
  std::map<std::string, std::vector<std::int64_t>> pinned;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::int64_t value; words >> value;) pinned[name].push_back(value);
  }
  for (const Strategy& strategy : all_strategies()) {
    ASSERT_EQ(pinned[strategy.to_string()].size(), 8U) << strategy.to_string();
    std::size_t column_of = 0;
    for (std::int64_t K : {1, 24, 6, 3}) {
      auto got = sent(column(strategy, "4x2x3", K));
      const std::vector<std::int64_t>& row = pinned[strategy.to_string()];
      EXPECT_EQ(got["k"], row[column_of]) << strategy.to_string() << " K=" << K;
      EXPECT_EQ(got["weights"], row[column_of + 4]) << strategy.to_string() << " K=" << K;
      ++column_of;
    }
  }
  EXPECT_EQ(pinned.size(), all_strategies().size());
}

TEST(ShippedTables, NoTwoHaveOneProgram) {
  std::map<std::string, std::string> by_text;
  for (const Strategy& strategy : all_strategies()) {
    Case c = column(strategy, "4x2x3", 6);
    c.model.block = Block::serial;
    c.prompt = c.chunk = 24;
    const std::string text = print_program(partitioned(c, strategy, Phase::prefill).layer);
    const auto [at, is_new] = by_text.emplace(text, strategy.to_string());
    EXPECT_TRUE(is_new) << strategy.to_string() << " is " << at->second;
  }
}

// The text depends on the torus by what it divides alone.
TEST(ShippedTables, HaveOneProgramOnToriThatDivideAlike) {
  for (const Strategy& strategy : all_strategies())
    for (std::int64_t K : {1, 24}) {
      std::set<std::string> texts;
      for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "2x3x4"}) {
        Case c = column(strategy, torus, K);
        c.model.Q = 24;  // few heads shard it
        texts.insert(print_program(partitioned(c, strategy, Phase::prefill).layer));
      }
      EXPECT_EQ(texts.size(), 1U) << strategy.to_string() << " K=" << K;
    }
}

constexpr const char* k2d =
    "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
    "attend : BLH_zyxQ\n";

/// The message that refuses the table `text` on a model.
std::string refusal(const std::string& text, const std::string& model = "palm-tiny") {
  const Strategy strategy(parse_layouts(text, "t.layouts").at(0));
  Case c;
  c.torus = Torus(4, 2, 3);
  c.model = parse_model(model);
  c.prefill = c.decode = strategy;
  c.batch = c.prompt = c.chunk = 24;
  try {
    partitioned(c, strategy, Phase::prefill);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Partition, RefusesAnArrowThatCannotBeWalked) {
  EXPECT_EQ(
      refusal(k2d, "palm-tiny,F=20"),
      "layouts_c4: t.layouts line 4: gate: BLF_zy partialsum-x cannot become BLF_zyx: F=20 of "
      "BLF_zy partialsum-x is not divisible by zy=6 on torus 4x2x3 (docs/layouts.md)");
  EXPECT_EQ(refusal(edited(k2d, "attend", "q : BLH_zQ partialsum-y\nattend")),
            "layouts_c4: t.layouts line 5: q: BLH_zyQ partialsum-x cannot become BLH_zQ "
            "partialsum-y: it is not a partial sum over y, so leave y out of partialsum "
            "(docs/layouts.md)");
}

TEST(Partition, RefusesAMissingLine) {
  EXPECT_EQ(refusal(edited(k2d, "attend : BLH_zyxQ\n", "")),
            "layouts_c5: t.layouts line 1: t has no line 'attend : LAYOUT' (docs/layouts.md)");
  EXPECT_EQ(refusal(edited(k2d, "in : BLE_xzy -> BLE_x\n", "")),
            "layouts_c5: t.layouts line 1: t has no line 'in : LAYOUT' (docs/layouts.md)");
  EXPECT_EQ(
      refusal(edited(k2d, "weights : E_x F_zy H_zy\n", "wq : E_xH_zyQ\n")),
      "layouts_c5: t.layouts line 1: t gives wk no layout: write 'wk : LAYOUT', or 'weights : "
      "...' for all (docs/layouts.md)");
  EXPECT_EQ(refusal(edited(k2d, "hidden : BLF_zyx\n", "")),
            "layouts_c5: t.layouts line 1: gate is BLF_zy partialsum-x, and no line 'hidden : "
            "LAYOUT' says where it is complete (docs/layouts.md)");
}

TEST(Partition, RefusesOperandsThatUseAnAxisTwice) {
  EXPECT_EQ(
      refusal(edited(k2d, "-> BLE_x", "-> B_xLE")),
      "layouts_c6: t.layouts line 3: norm for wq: axis x appears twice in B_xLE_x; gather it in "
      "one of them (docs/layouts.md)");
  EXPECT_EQ(refusal(edited(k2d, "-> BLE_x", "-> B_zLE_x")),
            "layouts_c6: t.layouts line 3: q: norm is B_zLE_x where wq is E_xH_zyQ: axis z is used "
            "twice; gather it in one of them (docs/layouts.md)");
  EXPECT_EQ(refusal(edited(k2d, "hidden", "norm for q : BLE_y\nhidden")),
            "layouts_c6: t.layouts line 4: q: norm is BLE_y where wq is E_xH_zyQ: E is sharded in "
            "two ways (docs/layouts.md)");
}

TEST(Partition, RefusesTermsOfAParallelBlockOverDifferentAxes) {
  const std::string text = edited(k2d, "hidden", "w_out : F_yE_x\nhidden");
  EXPECT_EQ(
      refusal(text),
      "layouts_c7: t.layouts line 4: block_out: the terms of a parallel block are one sum, but "
      "attn·wo is BLE_x partialsum-yz and hidden·w_out is BLE_x partialsum-y; block=serial "
      "sums them by themselves (docs/layouts.md)");
  EXPECT_EQ(refusal(text, "palm-tiny,block=serial"), "");
}

TEST(Partition, RefusesKeysThatAreNoPrefixOfTheHeads) {
  EXPECT_EQ(refusal(edited(k2d, "hidden", "attend for k, v : BLK_yQ\nhidden"), "palm-tiny,K=24"),
            "layouts_c8: t.layouts line 4: attend is BLH_zyxQ, its keys and values BLK_yQ: they "
            "need the same axes on B, a prefix of H's on K, and none on L and Q (docs/layouts.md)");
  EXPECT_NE(refusal(edited(k2d, "BLH_zyxQ", "BLH_zyQ_x")).find("layouts_c8"), std::string::npos);
  EXPECT_EQ(refusal(edited(k2d, "hidden", "attend for k, v : BLK_zQ\nhidden"), "palm-tiny,K=24"),
            "");
  // Values are appended as keys are.
  for (const char* lines :
       {"attend for v : BLK_yxQ\nhidden", "attend for k : BLK_zQ\nattend for v : BLKQ\nhidden"})
    EXPECT_NE(refusal(edited(k2d, "hidden", lines), "palm-tiny,K=24")
                  .find("both caches must have one layout"),
              std::string::npos);
}

TEST(Partition, RefusesAStrictArrowOfTwoOps) {
  EXPECT_EQ(refusal(edited(k2d, "-> BLE_x", "-> BLE_x [strict]")), "");
  // What goes to the first layout of a line is an arrow, too.
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"BLF_zyx", "BLF_yzx [strict]"},
                                                        {"BLH_zyxQ", "B_zyxLHQ [strict]"},
                                                        {"in : BLE_xzy", "in : B_yLE_xz [strict]"}})
    EXPECT_NE(refusal(edited(k2d, from, to)).find("layouts_c9"), std::string::npos) << to;
  EXPECT_EQ(
      refusal(edited(k2d, "-> BLE_x", "-> BLE_zx [strict]")),
      "layouts_c9: t.layouts line 2: in: BLE_xzy becomes BLE_zx by permute_axes, all_gather, and "
      "[strict] allows one op: write a layout between them, or leave the note out "
      "(docs/layouts.md)");
}

TEST(Partition, ATablesOwnNameStandsBeforeItsRefusal) {
  Case c = column(Strategy::parse("mixed:1d-2d"), "4x2x3", 1);
  c.model.block = Block::parallel;
  try {
    partitioned(c, c.prefill, Phase::prefill);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 24), "layouts_c7: mixed:1d-2d:");
  }
}

// The rules one by one, on the program's text.
std::string program(const std::string& text, const std::string& model = "palm-tiny",
                    const SharedPrefix& prefix = {}, const Torus& torus = {4, 2, 3}) {
  const Strategy strategy(parse_layouts(text).at(0));
  Case c;
  c.torus = torus;
  c.model = parse_model(model);
  c.prefill = c.decode = strategy;
  c.batch = c.prompt = c.chunk = 24;
  c.prefix = prefix;
  return print_program(partitioned(c, strategy, Phase::prefill).layer);
}
bool has(const std::string& text, const std::string& line) {
  return text.find(line) != std::string::npos;
}

TEST(Partition, CutsKByTheLongestPrefixThatDividesIt) {
  for (const auto& [K, cut] : std::vector<std::pair<int, std::string>>{{1, "BMKQ"},
                                                                       {2, "BMKQ"},
                                                                       {3, "BMK_zQ"},
                                                                       {6, "BMK_zyQ"},
                                                                       {12, "BMK_zyQ"},
                                                                       {24, "BMK_zyxQ"}})
    EXPECT_TRUE(has(program(k2d, fmt::format("palm-tiny,K={}", K)),
                    "input k_old : " + cut + " is previous k_cache"))
        << K;
}

TEST(Partition, SlicesRowsOfTheOperandAndReusesTheCopy) {
  const std::string text = program(edited(k2d, "BLH_zyxQ", "B_zyxLHQ"));
  EXPECT_TRUE(has(text, "xns : B_zyLE_x = slice(xn, B, zy) is norm"));
  EXPECT_TRUE(has(text, "v : B_zyLKQ partialsum-x = einsum(BLE,EKQ->BLKQ; xns, wv) is v"));
}

TEST(Partition, AddsBiasesAndStoresAtTheFirstCompleteLayout) {
  const std::string model = "palm-tiny,bias=all";
  EXPECT_TRUE(has(program(k2d, model), "input b_gate : F_zyx is weight b_gate"));
  EXPECT_TRUE(has(program(k2d, model), "hr_b : BLF_zyx = bias(hr, b_gate) is gate"));
  // Complete before it moves on: the bias is resident unsharded.
  const std::string waypoint = edited(k2d, "attend", "gate : BLF_zy\nattend");
  EXPECT_TRUE(has(program(waypoint, model), "input b_gate : F_zy is weight b_gate"));
}

TEST(Partition, TakesAStepOfItsLineFromTheStepBeforeIt) {
  const std::string text =
      program(edited(k2d, "attend", "attn : BLH_zyxQ -> BLHQ -> BLH_zyQ\nattend"));
  EXPECT_TRUE(has(text,
                  "og : BLHQ = all_gather(o, H, zyx) is attn\n"
                  "os : BLH_zyQ = slice(og, H, zy) is attn\n"));
}

// ---- prefixes that rows share ----

const std::string k2dBatch =
    "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
    "attend : B_zyxLHQ\n";

TEST(Partition, ReadsThePrefixesCachesBesideTheRowsOwn) {
  const std::string text = program(k2dBatch, "palm-tiny", {5, 6});
  EXPECT_TRUE(has(text,
                  "input v_old : B_zyxMKQ is previous v_cache\n"
                  "input pk : NTKQ is prefix k_cache\n"
                  "input pv : NTKQ is prefix v_cache\n"))
      << text;
  EXPECT_TRUE(has(text, " = attend_prefix(qp, kc, vc, pk, pv, ps) is score, max, exp, denom, attn"))
      << text;
  EXPECT_TRUE(has(program(k2dBatch, "palm-tiny,rope=alibi", {5, 6}), ", pk, pv, ps, slopes) is "));
  // All else is as it was: the lines that differ are these.
  std::string plain = program(k2dBatch);
  plain = edited(plain, "v_cache\n",
                 "v_cache\ninput pk : NTKQ is prefix k_cache\n"
                 "input pv : NTKQ is prefix v_cache\n");
  EXPECT_EQ(edited(plain, "attend(qp, kc, vc, ps)", "attend_prefix(qp, kc, vc, pk, pv, ps)"), text);
  // And without prefixes what the table says of them says nothing.
  EXPECT_EQ(program(k2dBatch + "prefix : N_zyTKQ\n"), program(k2dBatch));
}

/// The layout in which the prefixes' keys are taken.
std::string prefixes(const std::string& text, const std::string& model, std::int64_t N,
                     const Torus& torus = {4, 2, 3}) {
  const std::string all = program(text, model, {5, N}, torus), begin = "\ninput pk : ";
  const auto at = all.find(begin);
  EXPECT_NE(at, std::string::npos) << all;
  if (at == std::string::npos) return "";
  const auto from = at + begin.size();
  return all.substr(from, all.find(' ', from) - from);
}

TEST(Partition, CutsNByTheFirstAxesThatDivideIt) {
  const std::string text = k2dBatch + "prefix : N_zyxTKQ\n";
  for (const auto& [N, cut] : std::vector<std::pair<int, std::string>>{{1, "NTKQ"},
                                                                       {2, "NTKQ"},
                                                                       {3, "N_zTKQ"},
                                                                       {4, "NTKQ"},
                                                                       {6, "N_zyTKQ"},
                                                                       {9, "N_zTKQ"},
                                                                       {12, "N_zyTKQ"},
                                                                       {24, "N_zyxTKQ"}})
    EXPECT_EQ(prefixes(text, "palm-tiny", N), cut) << N;
  // An axis of one chip cuts nothing, and is none to stop at.
  EXPECT_EQ(prefixes(text, "palm-tiny", 2, {4, 2, 1}), "N_zyTKQ");
  EXPECT_EQ(prefixes(text, "palm-tiny", 3, {1, 1, 3}), "N_zyxTKQ");
  EXPECT_EQ(prefixes(text, "palm-tiny", 3, {1, 1, 1}), "NTKQ");
  // No further than it is written.
  EXPECT_EQ(prefixes(k2dBatch + "prefix : N_zTKQ\n", "palm-tiny", 24), "N_zTKQ");
  EXPECT_EQ(prefixes(k2dBatch + "prefix : NTKQ\n", "palm-tiny", 24), "NTKQ");
}

TEST(Partition, HasThePrefixesHeadsWhereItHasTheRowsOwn) {
  const std::string text = edited(k2d, "BLH_zyxQ", "B_zLH_yxQ");
  for (const auto& [K, cut] :
       std::vector<std::pair<int, std::string>>{{1, ""}, {2, "_y"}, {6, "_y"}, {24, "_yx"}}) {
    const std::string model = fmt::format("palm-tiny,K={}", K);
    EXPECT_TRUE(has(program(text, model), fmt::format("input k_old : B_zMK{}Q ", cut))) << K;
    EXPECT_EQ(prefixes(text, model, 6), fmt::format("NTK{}Q", cut)) << K;
    // Written or not.
    for (const char* line : {"prefix : N_zTKQ\n", "prefix : N_zTK_yxQ\n"})
      EXPECT_EQ(prefixes(text + line, model, 6), fmt::format("N_zTK{}Q", cut)) << K;
  }
}

TEST(Partition, RefusesPrefixesThatAChipsRowsMayNotHave) {
  EXPECT_EQ(refusal(std::string(k2d) + "prefix : N_zTKQ\n"),
            "layouts_c8: t.layouts line 6: prefix is N_zTKQ where attend is BLH_zyxQ, its keys "
            "BLK_zyxQ: N takes the first of attend's axes on B or none, K those of the keys or "
            "none, T and Q none (docs/layouts.md)");
  const std::string both = edited(k2d, "BLH_zyxQ", "B_zyLH_xQ");
  for (const char* legal : {"NTKQ", "N_zTKQ", "N_zyTKQ", "N_zyTK_xQ", "NTK_xQ"})
    EXPECT_EQ(refusal(both + "prefix : " + legal + "\n"), "") << legal;
  for (const char* wrong :
       {"N_yTKQ", "N_yzTKQ", "N_xTKQ", "N_zyxTKQ", "NTK_zQ", "N_zTK_yQ", "NT_zKQ", "NTKQ_x"})
    EXPECT_TRUE(refusal(both + "prefix : " + wrong + "\n")
                    .starts_with(std::string("layouts_c8: t.layouts line 6: prefix is ") + wrong))
        << wrong;
}

}  // namespace
}  // namespace shardproof
