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
#include "tests/engine/text_rows.h"
#include "tests/weights/expect_error.h"

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

bool has(const std::string& text, const std::string& line) {
  return text.find(line) != std::string::npos;
}

/// The layer of the table `text` under these keys of a case, on 4x2x3 unless they say otherwise.
std::string program(const std::string& text, const std::string& keys = "") {
  const Strategy strategy(parse_layouts(text, "t.layouts").at(0));
  Case c = parse_case("torus=4x2x3");
  if (!keys.empty()) c = parse_case((has(keys, "torus=") ? "" : "torus=4x2x3 ") + keys);
  c.prefill = c.decode = strategy;
  c.batch = c.prompt = c.chunk = 24;
  return print_program(partitioned(c, strategy, Phase::prefill).layer);
}

TEST(Partition, RefusesWhatItsTableSays) {
  for (const TextRow& row : text_rows(SHARDPROOF_ENGINE_TESTS "/layouts", "refused.txt")) {
    const std::string message =
        message_of([&] { program(lines_of(row[0]), row[2].empty() ? "" : "model=" + row[2]); });
    const std::string said = row[1].empty() ? "" : row[1] + " (docs/layouts.md)";
    EXPECT_TRUE(matches(message, said)) << row.place << ": " << message;
  }
}

TEST(Partition, MakesTheStatementsOfItsTable) {
  for (const TextRow& row : text_rows(SHARDPROOF_ENGINE_TESTS "/layouts", "programs.txt"))
    EXPECT_TRUE(has(program(lines_of(row[0]), row[2]), lines_of(row[1]))) << row.place;
}

TEST(Partition, OfPrefixesChangesTheirLinesAlone) {
  const std::string table =
      "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
      "attend : B_zyxLHQ\n";
  std::string plain = program(table);
  plain = replaced(plain, "previous v_cache\n",
                   "previous v_cache\ninput pk : NTKQ is prefix k_cache\n"
                   "input pv : NTKQ is prefix v_cache\n");
  plain = replaced(plain, "attend(qp, kc, vc, ps)", "attend_prefix(qp, kc, vc, pk, pv, ps)");
  EXPECT_EQ(plain, program(table, "prefix=5:6"));
  // And without prefixes what the table says of them says nothing.
  EXPECT_EQ(program(table + "prefix : N_zyTKQ\n"), program(table));
}

TEST(Partition, ATablesOwnNameStandsBeforeItsRefusal) {
  Case c = column(Strategy::parse("mixed:1d-2d"), "4x2x3", 1);
  c.model.block = Block::parallel;
  const std::string message = message_of([&] { partitioned(c, c.prefill, Phase::prefill); });
  EXPECT_EQ(message.substr(0, 24), "layouts_c7: mixed:1d-2d:");
}

}  // namespace
}  // namespace shardproof
