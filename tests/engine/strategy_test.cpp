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

TEST(Strategy, EveryViolationStandsInOneMessage) {
  const auto message = [](const char* model, const char* torus, std::vector<Strategy> phases,
                          std::int64_t batch) {
    return message_of(
        [&] { require_legal(phases, parse_model(model), Torus::parse(torus), batch); });
  };
  const Strategy ws = Strategy::parse("ws2d"), wg = Strategy::parse("wg-xyz:batch");
  EXPECT_EQ(message("palm-tiny", "5x1x1", {ws, ws}, 1),
            "strategy_c3: ws2d:heads on torus 5x1x1 needs E=96, F=384, H=24, V=264 divisible by "
            "XYZ=5; the nearest legal: --model palm-tiny,E=95,F=385,H=25,V=265");
  EXPECT_EQ(message("palm-tiny,E=97,F=10,H=5", "4x2x3", {wg}, 25),
            "strategy_c3: wg-xyz:batch on torus 4x2x3 needs E=97 divisible by X=4, F=10, H=5 by "
            "YZ=6, B=25 by XYZ=24; the nearest legal: --model palm-tiny,F=12,H=6 --batch 24");
  EXPECT_EQ(message("palm-tiny,E=97", "4x2x3", {wg, ws}, 24),
            "strategy_c3: wg-xyz:batch then ws2d:heads on torus 4x2x3 needs E=97 divisible by "
            "XYZ=24; the nearest legal: --model palm-tiny");
  EXPECT_EQ(message("palm-tiny", "4x2x3", {wg}, 25),
            "strategy_c3: wg-xyz:batch on torus 4x2x3 needs B=25 divisible by XYZ=24; the nearest "
            "legal: --batch 24");
  // Multihead stays multihead; grouped heads take the nearest that divides.
  EXPECT_EQ(after(message("palm-tiny,K=24", "5x1x1", {ws}, 1), "--model"),
            "palm-tiny,E=95,F=385,H=25,K=25,V=265");
  EXPECT_EQ(after(message("palm-tiny,K=8", "5x1x1", {ws}, 1), "--model"),
            "palm-tiny,E=95,F=385,H=25,K=5,V=265");
  // The largest that can be written down is rounded downwards.
  EXPECT_EQ(after(message("palm-tiny,E=1,F=2147483647", "13x1x1", {ws}, 1), "--model"),
            "palm-tiny,E=13,F=2147483637,H=13,V=260");
  EXPECT_NE(message("palm-tiny,H=2147483645,Q=268435456,layers=1,E=1,F=1,V=1,rotary=0.5", "5x1x1",
                    {ws}, 1)
                .find("no model near this one is legal"),
            std::string::npos);
}

TEST(Strategy, EveryShardingOfADimMustDivideIt) {
  const auto message = [](const char* model, std::vector<const char*> names, std::int64_t batch) {
    std::vector<Strategy> phases;
    for (const char* name : names) phases.push_back(Strategy::parse(name));
    return message_of([&] { require_legal(phases, parse_model(model), Torus(4, 2, 3), batch); });
  };
  // Attention over the batch needs H divisible only by the axes that shard its weights.
  EXPECT_EQ(message("palm-tiny,H=6", {"ws2d:batch"}, 24), "");
  EXPECT_EQ(message("palm-tiny,H=6", {"ws2d:heads"}, 24),
            "strategy_c3: ws2d:heads on torus 4x2x3 needs H=6 divisible by XYZ=24; the nearest "
            "legal: --model palm-tiny");
  // Two shardings of B, of which none covers the other: the least common multiple.
  EXPECT_EQ(message("palm-tiny", {"ws2d:bfirst-x", "dp-z:2d"}, 12), "");
  EXPECT_EQ(message("palm-tiny", {"ws2d:bfirst-x", "dp-z:2d"}, 5),
            "strategy_c4: ws2d:bfirst-x then dp-z:2d on torus 4x2x3 shards the batch over X=4 and "
            "Z=3 chips; batch=5 is too small, the smallest legal is 12");
  EXPECT_EQ(message("palm-tiny", {"ws2d:bfirst-x", "dp-z:2d"}, 20),
            "strategy_c3: ws2d:bfirst-x then dp-z:2d on torus 4x2x3 needs B=20 divisible by Z=3; "
            "the nearest legal: --batch 24");
  // And of H: by YZ for one phase, by XY for the other.
  EXPECT_EQ(message("palm-tiny,H=12", {"ws2d:batch", "dp-z:1d"}, 24),
            "strategy_c3: ws2d:batch then dp-z:1d on torus 4x2x3 needs H=12 divisible by XY=8; the "
            "nearest legal: --model palm-tiny");
  // Q, where heads are fewer than chips.
  EXPECT_EQ(message("palm-tiny,H=3,Q=3,rope=none", {"ws2d:few-heads"}, 1),
            "strategy_c3: ws2d:few-heads on torus 4x2x3 needs Q=3 divisible by Y=2; the nearest "
            "legal: --model palm-tiny,H=3,Q=2,rope=none");
  // Its channels rotate in pairs: 3 is nearer, and no model.
  EXPECT_EQ(message_of([] {
              require_legal(Strategy::parse("ws2d:few-heads"), parse_model("palm-tiny,H=3,Q=4"),
                            Torus(4, 3, 1), 1);
            }),
            "strategy_c3: ws2d:few-heads on torus 4x3x1 needs Q=4 divisible by Y=3; the nearest "
            "legal: --model palm-tiny,H=3,Q=6");
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

TEST(Strategy, NamesTheNearestLegalPromptAndChunk) {
  const auto message = [](const char* name, std::int64_t prompt, std::int64_t chunk) {
    return message_of(
        [&] { require_lengths(Strategy::parse(name), Torus(4, 2, 3), prompt, chunk); });
  };
  EXPECT_EQ(message("sp:1d", 48, 48), "");
  EXPECT_EQ(message("sp:1d", 48, 24), "");
  EXPECT_EQ(
      message("sp:1d", 25, 25),
      "strategy_c5: sp:1d on torus 4x2x3 shards L, the positions of a pass, 24 ways: prompt=25 "
      "is not divisible; the nearest legal: --prompt 24");
  EXPECT_EQ(message("context-z:2d", 9, 4),
            "strategy_c5: context-z:2d on torus 4x2x3 shards L, the positions of a pass, 3 ways: "
            "chunk=4 is not divisible; the nearest legal: --prompt 9 --chunk 3");
  EXPECT_EQ(message("ws2d:batch", 7, 2), "");
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

TEST(SmallestBatch, IsTheLeastCommonMultipleOfTheCuts) {
  for (const Strategy& s : all_strategies())
    for (const Torus& torus : {Torus(4, 2, 3), Torus(6, 2, 4), Torus(1, 1, 1)})
      EXPECT_EQ(smallest_batch(s, torus), divisor(s, torus, 'B')) << s.to_string();
  const Strategy two(parse_layouts("layouts two\nin : B_xLE\nattend : B_zLHQ")[0]);
  EXPECT_EQ(smallest_batch(two, Torus(6, 2, 4)), 12);
}

}  // namespace
}  // namespace shardproof
