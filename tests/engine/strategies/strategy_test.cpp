// What a strategy needs of a model, and the legal model that a refusal names.
#include "engine/strategies/strategy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

#include "tests/engine/random_layout.h"
#include "tests/engine/text_rows.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"

namespace shardproof {
namespace {

/// What must divide `dim`: every subscript that the text of the table gives it, and of E and V
/// those of the tables at both ends (docs/strategies.md section 7). Of a dim with several shardings
/// all.
std::int64_t divisor(const Strategy& s, const Torus& torus, char dim) {
  static const std::regex cut("([A-Z])_([xyz]+)");
  std::int64_t unit = 1;
  std::string text = print_layouts(s.table()) + " V_zyE_x BV_zyx";
  text.erase(0, text.find('\n'));
  for (std::sregex_iterator m(text.begin(), text.end(), cut), end; m != end; ++m)
    if ((*m)[1].str()[0] == dim)
      unit = std::lcm(unit, std::int64_t{torus.size(Axes::parse((*m)[2].str()))});
  return unit;
}

/// The word after `flag` in a message, or "".
std::string after(const std::string& message, const std::string& flag) {
  const auto at = message.find(flag + " ");
  if (at == std::string::npos) return "";
  std::istringstream rest(message.substr(at + flag.size() + 1));
  std::string word;
  rest >> word;
  if (word.ends_with(';')) word.pop_back();  // what divides as well follows
  return word;
}

struct Refused {
  std::vector<Strategy> phases;
  ModelConfig model;
  Torus torus;
  std::int64_t batch = 0;
};

Refused draw_refused() {
  Refused r;
  r.model = draw_model(300);
  r.torus = Torus(*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 6));
  r.phases = {*rc::gen::elementOf(all_strategies()), *rc::gen::elementOf(all_strategies())};
  r.batch = *rc::gen::inRange(1, 200);
  // Some dims of some cases are legal.
  const std::int64_t n = r.torus.chips();
  if (*rc::gen::arbitrary<bool>()) r.model = with_dims(r.model, n, r.model.F, n, n, r.model.V);
  if (*rc::gen::arbitrary<bool>()) r.batch = n * 2;
  return r;
}

RC_GTEST_PROP(Strategy, ARefusalNamesEveryDimAndALegalModel, ()) {
  const Refused r = draw_refused();
  const ModelConfig& m = r.model;
  const std::string message = message_of([&] { require_legal(r.phases, m, r.torus, r.batch); });
  const std::map<char, std::int64_t> values{{'E', m.E}, {'F', m.F}, {'H', m.H},
                                            {'Q', m.Q}, {'V', m.V}, {'B', r.batch}};
  bool dims = false, rows = false, small = false;
  std::map<char, std::int64_t> unit;
  for (const auto& [dim, value] : values) {
    unit[dim] = std::lcm(divisor(r.phases[0], r.torus, dim), divisor(r.phases[1], r.torus, dim));
    if (value % unit[dim] == 0) continue;
    (dim == 'B' ? rows : dims) = true;
    small = small || (dim == 'B' && value < unit[dim]);
  }
  if (!dims && !rows) {
    RC_ASSERT(message == "");
    return;
  }
  RC_ASSERT(message.size() <= 600U);  // the command line shows no more
  if (!dims && small) {
    RC_ASSERT(message.starts_with("strategy_c4: "));
    return;
  }
  RC_ASSERT(message.starts_with("strategy_c3: "));
  for (const auto& [dim, value] : values) {
    const std::string named = std::string(1, dim) + "=" + std::to_string(value);
    const std::string needs = message.substr(0, message.find(';'));
    RC_ASSERT((needs.find(" " + named) != std::string::npos) == (value % unit[dim] != 0));
  }
  // What it says to write is legal, and no other model than was asked for but in those dims.
  const std::string model = after(message, "--model");
  const std::string batch = after(message, "--batch");
  RC_ASSERT(model.empty() == !dims);
  RC_ASSERT(batch.empty() == !rows);
  const ModelConfig legal = dims ? parse_model(model) : m;
  require_legal(r.phases, legal, r.torus, rows ? std::stoll(batch) : r.batch);
  ModelConfig asked = with_dims(m, legal.E, legal.F, legal.H, legal.K, legal.V);
  asked.Q = legal.Q;
  RC_ASSERT(legal == asked);
  const std::map<char, std::int64_t> divisors = unit;
  // Channels rotate in pairs: of Q not every multiple is a model.
  while (m.rope != Rope::none && std::fmod(m.rotary * static_cast<double>(unit['Q']), 2.0) != 0.0)
    unit['Q'] += divisors.at('Q');
  for (const auto& [dim, next] :
       {std::pair{'E', legal.E}, {'F', legal.F}, {'H', legal.H}, {'Q', legal.Q}, {'V', legal.V}}) {
    const std::int64_t away = std::abs(next - values.at(dim));
    RC_ASSERT(next % divisors.at(dim) == 0);
    RC_ASSERT(2 * away <= unit[dim] || next == unit[dim]);
    if (values.at(dim) % divisors.at(dim) == 0) RC_ASSERT(away == 0);
  }
  if (m.K == m.H) RC_ASSERT(legal.K == legal.H || m.K == 1);
  if (legal.H % m.K == 0 && m.K != m.H) RC_ASSERT(legal.K == m.K);
}

TEST(Strategy, RefusesWhatItsTableSays) {
  for (const TextRow& row :
       text_rows(SHARDPROOF_SOURCE "/tests/engine/strategies", "refused.txt")) {
    std::vector<Strategy> phases;
    for (const std::string& name : parts_of(row[0], ",")) phases.push_back(Strategy::parse(name));
    auto keys =
        values_of(row[1], {"torus", "model", "batch", "prompt", "chunk", "prefix", "placed"});
    for (const auto& [name, usual] :
         {std::pair{"torus", "4x2x3"}, {"model", "palm-tiny"}, {"batch", "24"}})
      keys.emplace(name, usual);
    const Torus torus = Torus::parse(keys["torus"]);
    const std::string message = message_of([&] {
      if (keys.contains("prompt")) {
        const SharedPrefix prefix =
            keys.contains("prefix") ? parse_prefix(keys["prefix"]) : SharedPrefix{};
        require_lengths(phases[0], torus, std::stoll(keys["prompt"]), std::stoll(keys["chunk"]),
                        prefix);
        return;
      }
      const bool placed = keys.contains("placed");
      const ModelConfig on_chips = parse_model(keys[placed ? "placed" : "model"]);
      require_legal(phases, parse_model(keys["model"]), torus, std::stoll(keys["batch"]),
                    placed ? &on_chips : nullptr);
    });
    EXPECT_TRUE(matches(message, row[2])) << row.place << ": " << message;
  }
}

// Nothing need divide the prefixes: those of a table are cut as far as they can be.
TEST(Strategy, PrefixesNeedNotDivide) {
  const Strategy cut = Strategy::parse("ws2d:batch");
  ASSERT_NE(cut.table().find("prefix"), nullptr);
  for (const ShardedDim& one : sharded_dims(cut)) EXPECT_FALSE(one.dim == 'N' || one.dim == 'T');
  LayoutTable table = cut.table();
  std::erase_if(table.lines, [](const LayoutLine& line) { return line.value == "prefix"; });
  const Strategy without(table);
  const auto dims = [](const Strategy& strategy) {
    std::string all;
    for (const ShardedDim& one : sharded_dims(strategy)) all += one.dim + one.axes.to_string();
    return all;
  };
  EXPECT_EQ(dims(cut), dims(without));
  EXPECT_EQ(smallest_batch(cut, Torus(4, 2, 3)), smallest_batch(without, Torus(4, 2, 3)));
}

TEST(Strategy, IsReadByNameAliasOrFromOnesOwn) {
  for (const Strategy& s : all_strategies()) EXPECT_EQ(Strategy::parse(s.to_string()), s);
  for (const auto& [alias, name] : {std::pair{"ws1d", "ws1d:heads"},
                                    {"ws2d", "ws2d:heads"},
                                    {"wg-x", "wg-x:natural"},
                                    {"wg-xy", "wg-xy:natural"},
                                    {"wg-xyz", "wg-xyz:natural"}})
    EXPECT_EQ(Strategy::parse(alias).to_string(), name);
  EXPECT_EQ(Strategy().to_string(), "ws2d:heads");
  const std::vector<Strategy> own{Strategy(parse_layouts("layouts mine\nin : BLE_x")[0])};
  EXPECT_EQ(Strategy::parse("mine", own), own[0]);
  EXPECT_EQ(Strategy::parse("ws2d", own).to_string(), "ws2d:heads");
  EXPECT_EQ(label_of([] { Strategy::parse("mine"); }), "strategy_c1");
  const std::string unknown = message_of([&] { Strategy::parse("mino", own); });
  EXPECT_TRUE(unknown.starts_with(
      "strategy_c1: unknown strategy 'mino', did you mean mine? legal: mine, ws1d:heads, "))
      << unknown;
  for (const char* no : {"", "ws", "wg-xyz:heads", "WS2D", "ws2d:heads ", "ws2d:"})
    EXPECT_EQ(label_of([&] { Strategy::parse(no); }), "strategy_c1") << no;
}

TEST(Strategy, ShippedOnesDifferInNameDescriptionAndLayouts) {
  std::set<std::string> names, descriptions, layouts;
  for (const Strategy& s : all_strategies()) {
    const LayoutTable& table = s.table();
    EXPECT_NE(table.description, "") << table.name;
    names.insert(table.name);
    descriptions.insert(table.description);
    const std::string text = print_layouts(table);
    layouts.insert(text.substr(text.find('\n')));
    EXPECT_EQ(parse_layouts(text), std::vector<LayoutTable>{table}) << text;
  }
  EXPECT_EQ(names.size(), 37U);
  EXPECT_EQ(descriptions.size(), names.size());
  EXPECT_EQ(layouts.size(), names.size());
}

TEST(Strategy, ThatShardsPositionsIsPrefillOnly) {
  std::set<std::string> refused;
  for (const Strategy& s : all_strategies()) {
    EXPECT_EQ(decodes(s), divisor(s, Torus(2, 3, 5), 'L') == 1) << s.to_string();
    EXPECT_EQ(label_of([&] { require_decodes(s); }), decodes(s) ? "" : "strategy_c2");
    if (!decodes(s)) refused.insert(s.to_string());
  }
  EXPECT_EQ(refused,
            (std::set<std::string>{"sp:1d", "sp:2d", "ulysses", "context", "context-z:2d"}));
  const std::string message = message_of([] { require_decodes(Strategy::parse("sp:1d")); });
  EXPECT_TRUE(
      message.starts_with("strategy_c2: sp:1d shards L, the positions of a pass, and a "
                          "decode step has one: it is a prefill only; --decode may be: "))
      << message;
  // It names every one that can, and no other.
  std::istringstream legal(message.substr(message.find("may be: ") + 8));
  std::set<std::string> named;
  for (std::string name; std::getline(legal >> std::ws, name, ',');) named.insert(name);
  for (const Strategy& s : all_strategies())
    EXPECT_EQ(named.contains(s.to_string()), decodes(s)) << s.to_string();
}

RC_GTEST_PROP(Strategy, TheNamedLengthsAreLegal, ()) {
  const Strategy s = *rc::gen::elementOf(all_strategies());
  const Torus torus = draw_torus();
  const std::int64_t unit = divisor(s, torus, 'L');
  const std::int64_t prompt = draw_int(1, 100);
  const std::int64_t chunk = draw_int(1, static_cast<int>(prompt));
  RC_ASSERT(smallest_length(s, torus) == unit);
  const std::string said = message_of([&] { require_lengths(s, torus, prompt, chunk); });
  RC_ASSERT((said == "") == (prompt % unit == 0 && chunk % unit == 0));
  if (said == "") return;
  RC_ASSERT(said.starts_with("strategy_c5: "));
  const std::int64_t legal = std::stoll(after(said, "--prompt"));
  const std::string part = after(said, "--chunk");
  RC_ASSERT(part.empty() == (chunk == prompt));
  const std::int64_t legal_chunk = part.empty() ? legal : std::stoll(part);
  RC_ASSERT(legal_chunk <= legal);
  require_lengths(s, torus, legal, legal_chunk);
  // Every pass is legal then, the last and shorter one too.
  if (legal % legal_chunk > 0) require_lengths(s, torus, legal, legal % legal_chunk);
  RC_ASSERT(2 * std::abs(legal - prompt) <= unit || legal == unit);
}

RC_GTEST_PROP(Strategy, TheNamedPrefixesAreLegal, ()) {
  const Strategy s = *rc::gen::elementOf(all_strategies());
  const Torus torus = draw_torus();
  const std::int64_t unit = divisor(s, torus, 'L');
  const SharedPrefix prefix{draw_int(1, 60), draw_int(1, 9)};
  const std::int64_t prompt = prefix.length + draw_int(1, 60);
  const std::int64_t chunk = draw_int(1, static_cast<int>(prompt));
  // Every pass there is, one after the other.
  const auto divides = [&](const SharedPrefix& of, std::int64_t up_to, std::int64_t each) {
    for (std::int64_t all : {of.length, up_to - of.length})
      for (; all > 0; all -= each)
        if (std::min(all, each) % unit != 0) return false;
    return true;
  };
  const std::string said = message_of([&] { require_lengths(s, torus, prompt, chunk, prefix); });
  RC_ASSERT((said == "") == divides(prefix, prompt, chunk));
  if (said == "") return;
  RC_ASSERT(said.starts_with("strategy_c5: "));
  const SharedPrefix legal = parse_prefix(after(said, "--prefix"));
  const std::int64_t legal_prompt = std::stoll(after(said, "--prompt"));
  const std::string part = after(said, "--chunk");
  RC_ASSERT(legal.rows == prefix.rows);
  RC_ASSERT(legal.length < legal_prompt);
  // A chunk that is not named is as it was, or the prompt where it was that.
  const std::int64_t legal_chunk = !part.empty()     ? std::stoll(part)
                                   : chunk == prompt ? legal_prompt
                                                     : chunk;
  RC_ASSERT(divides(legal, legal_prompt, legal_chunk));
  RC_ASSERT(2 * std::abs(legal.length - prefix.length) <= unit || legal.length == unit);
}

TEST(SmallestBatch, IsTheLeastCommonMultipleOfTheCuts) {
  for (const Strategy& s : all_strategies())
    for (const Torus& torus : {Torus(4, 2, 3), Torus(6, 2, 4), Torus(1, 1, 1)})
      EXPECT_EQ(smallest_batch(s, torus), divisor(s, torus, 'B')) << s.to_string();
  const Strategy two(parse_layouts("layouts two\nin : B_xLE\nattend : B_zLHQ")[0]);
  EXPECT_EQ(smallest_batch(two, Torus(6, 2, 4)), 12);
}

}  // namespace
}  // namespace shardproof
