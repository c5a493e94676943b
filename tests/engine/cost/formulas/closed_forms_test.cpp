// The closed forms against what the programs of the engine ask, and by eye against the paper.
#include "tests/engine/cost/formulas/closed_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/cost/work/work.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

Totals totals(const PartWork& work, const Torus& torus) {
  Totals all;
  for (const Traffic& t : work.traffic) {
    if (t.elements == 0.0) continue;
    Sent& total = all[{t.kind, long_axes(t.axes, torus).to_string()}];
    total.elements += t.elements;
    total.bytes += t.sent_bytes;
  }
  return all;
}

std::string text(const Totals& totals) {
  std::string text;
  for (const auto& [group, sent] : totals)
    text += fmt::format("{} {} {} elements, {} bytes\n", to_string(group.first), group.second,
                        sent.elements, sent.bytes);
  return text;
}

/// Sums of quotients of whole numbers, in any order.
bool same(double a, double b) {
  return static_cast<bool>(equal_but_for_rounding(a, b, kOperationsOfAPass));
}
bool same(const Totals& a, const Totals& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && same(one.second.elements, other.second.elements) &&
           same(one.second.bytes, other.second.bytes);
  });
}

struct Drawn {
  ModelConfig model;
  Numerics numerics;
  Torus torus;
  Pass pass;
};

/// A model that the table can cut on a torus of up to 48 chips, of any family, and a pass.
Drawn drawn(std::mt19937_64& bits, bool few_heads) {
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[bits() % values.size()];
  };
  Drawn d;
  do {
    d.torus = Torus(pick({1, 2, 3, 4}), pick({1, 2, 3, 4}), pick({1, 2, 3, 5}));
  } while (d.torus.chips() > 48);
  const std::int64_t n = d.torus.chips(), X = d.torus.size(Axis::x), Y = d.torus.size(Axis::y),
                     Z = d.torus.size(Axis::z);
  const std::int64_t H = (few_heads ? Z : n) * pick({1, 2, 4});
  std::vector<std::int64_t> divisors;
  for (std::int64_t k = 1; k <= H; ++k)
    if (H % k == 0) divisors.push_back(k);
  d.model = with_dims(parse_model("palm-tiny"), 2 * n, n * pick({1, 3}), H,
                      divisors[bits() % divisors.size()], n);
  d.model.Q = (bits() % 4 == 0 ? 4 : 2 * X) * Y;
  d.model.layers = 2;
  d.model.block = bits() % 2 == 0 ? Block::parallel : Block::serial;
  d.model.ffn = std::vector<Ffn>{Ffn::swiglu, Ffn::geglu, Ffn::gelu, Ffn::gelu_erf}[bits() % 4];
  d.model.norm = bits() % 2 == 0 ? Norm::rmsnorm : Norm::layernorm;
  d.model.bias =
      std::vector<Bias>{Bias::none, Bias::none, Bias::norm, Bias::qkv, Bias::all}[bits() % 5];
  if (d.model.bias == Bias::norm) d.model.norm = Norm::layernorm;
  d.numerics.act = bits() % 2 == 0 ? NumberFormat::f32 : NumberFormat::bf16;
  d.numerics.weights = std::vector<NumberFormat>{NumberFormat::f32, NumberFormat::bf16,
                                                 NumberFormat::int8}[bits() % 3];
  d.numerics.wire = bits() % 4 == 0 ? NumberFormat::bf16 : NumberFormat::f32;
  const bool decode = bits() % 2 == 0;
  d.pass = {decode ? Phase::decode : Phase::prefill, n * pick({1, 2}), decode ? 1 : pick({1, 4, 7}),
            pick({0, 5})};
  return d;
}

/// Elements of a layer's biases and scales, which the closed forms leave out.
double channels(const Drawn& d) {
  double sum = 0.0;
  for (const WeightSpec& spec : weight_specs(d.model, d.numerics.weights)) {
    if (!spec.name.starts_with("layer0.") || spec.name.find(".norm") != std::string::npos) continue;
    if (spec.shape.size() < 2 || spec.scale || spec.name.starts_with("layer0.b"))
      sum += static_cast<double>(element_count(spec.shape));
  }
  return sum;
}

TEST(ClosedForms, AreWhatTheProgramsAsk) {
  std::mt19937_64 bits(15);
  int held = 0;
  std::map<std::string, int> of_table;
  for (const std::string& table : closed_tables())
    for (int i = 0; i < 120; ++i) {
      const Drawn d = drawn(bits, table.starts_with("ws2d:few-heads"));
      const std::string name = table + " " + print_model(d.model) + " " + d.torus.to_string() +
                               " B=" + std::to_string(d.pass.B) + " L=" + std::to_string(d.pass.L);
      ClosedWork closed;
      try {
        closed = closed_form(table, d.model, d.numerics, d.torus, d.pass);
      } catch (const Error& error) {
        EXPECT_EQ(error.label(), "closed_c2") << name << " " << error.message();
        continue;
      }
      ++held, ++of_table[table];
      const PartWork work =
          work_of(d.model, d.numerics, d.torus, Strategy::parse(table), d.pass).layer;
      EXPECT_TRUE(same(closed.matmul_flops, work.matmul_flops))
          << name << " " << closed.matmul_flops << " " << work.matmul_flops;
      EXPECT_TRUE(same(closed.attention_flops, work.attention_flops)) << name;
      EXPECT_TRUE(same(closed.cache_bytes, work.cache_bytes)) << name;
      const Totals asked = totals(work, d.torus), &said = closed.traffic;
      EXPECT_TRUE(same(said, asked)) << name << "\n" << text(said) << "asked\n" << text(asked);
      // Of biases and scales a chip holds all, or as little as its share: what is added to the
      // closed form, so that nothing cancels.
      const double all = 4.0 * channels(d), rest = closed.weight_bytes;
      EXPECT_TRUE(no_more_but_for_rounding(rest + all / d.torus.chips(), work.weight_bytes,
                                           kOperationsOfAPass))
          << name;
      EXPECT_TRUE(no_more_but_for_rounding(work.weight_bytes, rest + all, kOperationsOfAPass))
          << name;
    }
  EXPECT_GT(held, 2000);
  for (const std::string& table : closed_tables()) EXPECT_GT(of_table[table], 25) << table;
}

TEST(ClosedForms, AreOfEveryWeightStationaryAndWeightGatheredTable) {
  std::vector<std::string> want;
  for (const Strategy& strategy : all_strategies())
    if (const std::string name = strategy.to_string();
        name.starts_with("ws") || name.starts_with("wg"))
      want.push_back(name);
  EXPECT_EQ(closed_tables(), want);
}

/// By eye, on 4x2x3 with 24 rows: D is BLE/X = 24·96/4 = 576 and BLF/YZ = 24·384/6 = 1536.
TEST(ClosedForms, OfTwoDimensionalWeightsAreThePapers) {
  const ModelConfig model = parse_model("palm-tiny");  // E=96 F=384 H=24 K=1 Q=8, gated, parallel
  const Torus torus = Torus::parse("4x2x3");
  Numerics bf16;
  bf16.act = NumberFormat::bf16;
  bf16.weights = NumberFormat::bf16;
  const ClosedWork work = closed_form("ws2d:heads", model, bf16, torus, {Phase::decode, 24, 1, 7});
  const double in = 576 * 5.0 / 6, wide = 1536 * 3.0 / 4, heads = 24 * 24 * 8 / 6 * 3.0 / 4;
  const double summed = 2 * (2 * 24 * 8 + 24) * 3.0 / 4;  // K and V, and the sum of squares
  const Totals by_eye{{{OpKind::all_gather, "yz"}, {in, 2 * in}},
                      {{OpKind::all_gather, "x"}, {heads + wide, 2 * (heads + wide)}},
                      {{OpKind::reduce_scatter, "x"}, {heads + 2 * wide, 4 * (heads + 2 * wide)}},
                      {{OpKind::reduce_scatter, "yz"}, {in, 4 * in}},
                      {{OpKind::all_reduce, "x"}, {summed, 4 * summed}}};
  EXPECT_EQ(text(work.traffic), text(by_eye));
  EXPECT_EQ(work.attention_flops, 4.0 * 24 * 8 * 24 * 8 / 24);
  EXPECT_EQ(work.cache_bytes, 2.0 * 2 * 24 * 8 * 8);
  EXPECT_EQ(work.stream_bytes, 2.0 * 24 * 96 / 24);
  EXPECT_EQ(work.weight_bytes,
            2.0 * (2 * 96 * 192 + 3 * 96 * 384) / 24 + 2.0 * 2 * 96 * 8 / 4 + 4.0 * 96);
}

TEST(ClosedForms, SayWhereThereAreNone) {
  const Torus torus = Torus::parse("2x2x3");
  const auto of = [&](const char* table, const char* model, std::int64_t B) {
    return label_of([&] {
      closed_form(table, parse_model(model), {}, torus, {Phase::decode, B, 1, 5});
    });
  };
  EXPECT_EQ(of("ws2d:batch", "palm-tiny", 12), "");
  EXPECT_EQ(of("dp", "palm-tiny", 12), "closed_c1");
  EXPECT_EQ(of("ws2d:batch-x", "palm-tiny", 6), "closed_c2");
  EXPECT_EQ(of("ws2d:heads-zy", "palm-tiny,H=6", 12), "closed_c2");
  EXPECT_EQ(of("ws2d:pre-y", "palm-tiny,K=3", 12), "closed_c2");
}

}  // namespace
}  // namespace shardproof::cost
