// What a strategy needs of a model, and the legal model that a refusal names.
#include "engine/strategies/strategy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <sstream>

#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"

namespace shardproof {
namespace {

/// docs/strategies.md section 7, by hand: what must divide `dim`; 1 for what need not be divided.
std::int64_t divisor(const Strategy& s, const Torus& torus, char dim) {
  const std::int64_t n = torus.chips();
  const std::int64_t X = torus.size(Axis::x);
  if (dim == 'B') return s.attention == AttentionLayout::batch ? n : 1;
  if (s.ffn != FfnLayout::wg_xyz || dim == 'V') return n;
  return dim == 'E' ? X : n / X;
}

/// The word behind `flag` in a message, or "".
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
  const std::map<char, std::int64_t> values{
      {'E', m.E}, {'F', m.F}, {'H', m.H}, {'V', m.V}, {'B', r.batch}};
  bool dims = false, rows = false, small = false;
  std::map<char, std::int64_t> unit;
  for (const auto& [dim, value] : values) {
    unit[dim] = std::max(divisor(r.phases[0], r.torus, dim), divisor(r.phases[1], r.torus, dim));
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
  RC_ASSERT(legal == with_dims(m, legal.E, legal.F, legal.H, legal.K, legal.V));
  for (const auto& [dim, next] :
       {std::pair{'E', legal.E}, {'F', legal.F}, {'H', legal.H}, {'V', legal.V}}) {
    const std::int64_t away = std::abs(next - values.at(dim));
    RC_ASSERT(next % unit[dim] == 0);
    RC_ASSERT(2 * away <= unit[dim] || next == unit[dim]);
    if (values.at(dim) % unit[dim] == 0) RC_ASSERT(away == 0);
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

TEST(Strategy, HasADescriptionOfItsOwn) {
  std::set<std::string> all;
  for (const Strategy& s : all_strategies()) all.insert(description(s));
  EXPECT_EQ(all.size(), all_strategies().size());
}

}  // namespace
}  // namespace shardproof
