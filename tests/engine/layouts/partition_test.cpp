#include "engine/layouts/partition.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
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

double f(double m) { return 1.0 - 1.0 / m; }

/// The share of chips that another order of a dim's axes moves.
double moved(const Torus& torus, const std::string& from, const std::string& to) {
  int count = 0;
  for (int chip = 0; chip < torus.chips(); ++chip)
    count += torus.block(chip, Axes::parse(from)) != torus.block(chip, Axes::parse(to));
  return static_cast<double>(count) / torus.chips();
}

/// The closed forms of forms.txt in the paper's letters, on the torus of one case.
class ClosedForms {
 public:
  explicit ClosedForms(const Case& c) : torus_(c.torus), Q_(c.model.Q) {
    const std::int64_t BL = c.batch * c.prompt, E = c.model.E, HQ = c.model.H * c.model.Q;
    for (const auto& [name, value] : std::map<std::string, std::int64_t>{{"BLE", BL * E},
                                                                         {"BLF", BL * c.model.F},
                                                                         {"A", BL * HQ},
                                                                         {"BL", BL},
                                                                         {"EF", E * c.model.F},
                                                                         {"EHQ", E * HQ}})
      letters_[name] = static_cast<double>(value);
    for (const char* axes : {"x", "y", "z", "xy", "yz", "xz"})
      letters_[product_name(Axes::parse(axes))] = torus_.size(Axes::parse(axes));
    letters_["n"] = torus_.chips();
  }

  /// Whether a row of `who` is of this strategy.
  static bool are_of(const std::string& who, const std::string& name) {
    return who.ends_with('*') ? name.starts_with(who.substr(0, who.size() - 1)) : who == name;
  }

  /// Returns what the strategy sends of each value; nothing if it has no closed forms.
  std::map<std::string, double> of(const std::string& name) const {
    std::map<std::string, double> all;
    for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "forms.txt"))
      for (const std::string& who : parts_of(row[0], ","))
        if (are_of(who, name))
          for (std::size_t i = 1; i < row.columns.size(); ++i) {
            const std::vector<std::string> form = parts_of(row[i], "=");
            static const std::set<std::string> values{"stream", "stat", "q",      "attn",
                                                      "heads",  "ffn",  "weights"};
            if (form.size() != 2 || !values.contains(form[0])) refuse_word(row[i], row.place);
            for (const std::string& value : form.at(0) == "heads"
                                                ? std::vector<std::string>{"q", "attn"}
                                                : std::vector<std::string>{form[0]})
              all[value] = sum(form.at(1));
          }
    return all;
  }

  /// The value of a sum of products; throws std::invalid_argument for what is none.
  double sum(const std::string& text) const {
    double total = 0;
    for (const std::string& product : parts_of(text, "+")) {
      double term = 1;
      for (const std::string& factor : parts_of(product, "*")) {
        const std::vector<std::string> quotient = parts_of(factor, "/");
        term *= value(quotient[0]);
        for (std::size_t i = 1; i < quotient.size(); ++i) term /= value(quotient[i]);
      }
      total += term;
    }
    return total;
  }

 private:
  double value(const std::string& text) const {
    const std::size_t open = text.find('(');
    if (open == std::string::npos) {
      if (letters_.contains(text)) return letters_.at(text);
      if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos)
        refuse_word(text, "forms.txt");
      return std::stod(text);
    }
    const std::string name = text.substr(0, open);
    const auto given = parts_of(text.substr(open + 1, text.size() - open - 2), ",");
    if (name == "f") return f(value(given[0]));
    if (name != "channels" && name != "moved") refuse_word(name, "forms.txt");
    // By Q_yx, where that divides Q, else by B_xy.
    const double XY = letters_.at("XY");
    if (name == "channels" && Q_ % static_cast<std::int64_t>(XY) == 0) return f(XY);
    return moved(torus_, given.at(0), given.at(1)) +
           (name == "channels" ? f(letters_.at("Y")) : 0.0);
  }

  Torus torus_;
  std::int64_t Q_;
  std::map<std::string, double> letters_;
};

TEST(ClosedFormsOfTables, UnknownWordsAreRefused) {
  const ClosedForms forms(column(Strategy::parse("ws2d:heads"), "4x2x3", 1));
  EXPECT_EQ(forms.sum("BL*f(X) + 2*n/X"), 24 * 0.75 + 2 * 6);
  for (const char* form : {"BLX", "BLE*g(X)", "BLE*", "BLE/two", "f(w)", "", "1x"})
    EXPECT_THROW(forms.sum(form), std::invalid_argument) << form;
  // Each row is of some strategy.
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "forms.txt"))
    for (const std::string& who : parts_of(row[0], ","))
      EXPECT_TRUE(std::ranges::any_of(
          all_strategies(),
          [&](const Strategy& strategy) { return ClosedForms::are_of(who, strategy.to_string()); }))
          << row.place << " " << who;
}

// A wrong table is not wrong, only slow: so what each sends is held against its closed form.
TEST(ShippedTables, SendWhatTheirClosedFormsSay) {
  for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "2x4x3"})
    for (const Strategy& strategy : all_strategies()) {
      // Where K has no axes the weights of k and v have no other way than over E.
      const Case c = column(strategy, torus, 1);
      const std::string name = strategy.to_string();
      auto want = ClosedForms(c).of(name);
      EXPECT_FALSE(want.empty()) << name;
      auto got = sent(c);
      const std::string at = name + " on " + torus;
      // A closed form is of one chip; over all it is a whole number.
      const auto whole = [&](double of_a_chip) {
        return std::llround(of_a_chip * c.torus.chips());
      };
      EXPECT_EQ(got["in"] + got["norm"] + got["mid"], whole(want["stream"])) << at;
      EXPECT_EQ(got["stat"], whole(want["stat"])) << at;
      EXPECT_EQ(got["q"], whole(want["q"])) << at;
      EXPECT_EQ(got["attn"], whole(want["attn"])) << at;
      EXPECT_EQ(got["gate"] + got["hidden"], whole(want["ffn"])) << at;
      EXPECT_EQ(got["out"], whole(want["stream"])) << at;
      const double kv = 2.0 * 48 * 4;  // E·Q, twice
      const double gathers = name == "fsdp"        ? f(c.torus.chips())
                             : want["weights"] > 0 ? f(c.torus.size(Axis::x))
                                                   : 0.0;
      EXPECT_EQ(got["weights"], whole(want["weights"] + kv * gathers)) << at;
    }
}

// Keys and values by the number of heads: elements of k and v together, and of all weights, wk and
// wv among them, over the chips of 4x2x3.
TEST(ShippedTables, SendForKeysAndValuesWhatIsPinned) {
  std::ifstream file(SHARDPROOF_SOURCE "/tests/data/key_value_counts.txt");
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
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "refused.txt")) {
    const std::string message =
        message_of([&] { program(lines_of(row[0]), row[2].empty() ? "" : "model=" + row[2]); });
    const std::string said = row[1].empty() ? "" : row[1] + " (docs/layouts.md)";
    EXPECT_TRUE(matches(message, said)) << row.place << ": " << message;
  }
}

TEST(Partition, MakesTheStatementsOfItsTable) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/layouts", "programs.txt")) {
    ASSERT_FALSE(row[1].empty()) << row.place;
    EXPECT_TRUE(has(program(lines_of(row[0]), row[2]), lines_of(row[1]))) << row.place;
  }
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
