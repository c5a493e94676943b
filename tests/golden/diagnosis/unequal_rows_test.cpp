// Rows of unequal length: what stands at padding is no fault, and neither hides nor explains one.
#include <limits>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

class UnequalRowsExplained : public testing::Test {
 protected:
  /// The value with NaN wherever there is padding.
  Planted::Value spoiled(const std::string& id, Planted::Value v) {
    const std::string pass = id.substr(0, id.find('.', id.find('.') + 1));
    for (std::int64_t i = 0; i < p.plan.passes.size(); ++i) {
      if (p.plan.passes.at(i).name != pass) continue;
      const auto padding = padding_in_trace(value_row(id.substr(id.rfind('.') + 1))->dims,
                                            p.value(id).shape, false, p.plan.passes.at(i));
      for (std::size_t k = 0; k < padding.size(); ++k)
        if (padding[k]) v.data[k] = std::numeric_limits<double>::quiet_NaN(), ++padded;
    }
    return v;
  }
  Planted::Said ask(const std::string& id, const Planted::Value& v,
                    const std::string& layout = "") {
    return p.ask(id, spoiled(id, v), kTorus, layout);
  }

  Planted p{kModel + " seed=9 lengths=4,2,1,3"};
  int padded = 0;
};

/// Rows of 4, 2, 1 and 3 tokens, and so on: in chunks of three tokens 3, 2, 1, 3 and then 1, 0, 0,
/// 0.
TEST_F(UnequalRowsExplained, PaddingIsBehindTheTokensOfARow) {
  struct Of {
    const char* id;
    std::size_t positions;  ///< or slots, of a row
    const char* padding;    ///< of each of four rows
  };
  for (const Of& of :
       {Of{"prefill.c0.layer1.norm", 3, "... ..p .pp ..."},
        Of{"prefill.c0.layer1.exp", 3, "... ..p .pp ..."},
        Of{"prefill.c0.layer1.k_cache", 3, "... ..p .pp ..."},
        Of{"prefill.c1.layer1.out", 1, ". p p p"}, Of{"prefill.c1.logits", 1, ". p p p"},
        Of{"prefill.c1.layer1.v_cache", 4, ".... ..pp .ppp ...p"},
        Of{"decode.1.layer1.k_cache", 5, "..... ...pp ..ppp ....p"},
        Of{"decode.1.layer1.norm", 1, ". . . ."}}) {
    const Planted::Value v = spoiled(of.id, p.value(of.id));
    const std::size_t width = v.data.size() / 24 / of.positions;
    std::string marks = of.padding;
    std::erase(marks, ' ');
    ASSERT_EQ(width * marks.size() * 6, v.data.size()) << of.id;
    for (std::size_t i = 0; i < v.data.size(); ++i)
      ASSERT_EQ(std::isnan(v.data[i]), marks[i / width % marks.size()] == 'p') << of.id << " " << i;
  }
}

TEST_F(UnequalRowsExplained, PaddingIsNoFault) {
  for (const auto& [id, value] : std::map<std::string, Planted::Value>(p.dump)) {
    const bool last = id.starts_with("prefill.c1.layer1.") || id == "prefill.c1.logits";
    if (!last && !id.starts_with(kAt) && !id.starts_with("decode.1.layer1.")) continue;
    padded = 0;
    expect_right(ask(id, value), id);
    EXPECT_EQ(padded > 0, id.ends_with("_cache") || !id.starts_with("decode.")) << id;
  }
}

TEST_F(UnequalRowsExplained, FaultsOfTheTokensAreExplained) {
  const auto x = p.value("prefill.c0.layer0.out"), y = p.value(kAt + "block_out");
  const std::string addend = "addend not added once";
  expect_first(ask(kAt + "out", y, "BLE_xyz"), addend + ": out is added 0 times");
  // Rows are cut, too, and some chips hold little but padding.
  for (const char* layout : {"BLE_x", "B_yzLE_x"})
    expect_first(ask(kAt + "out", Planted::sum(y, x, 4), layout), addend + " [x]: 4 times");
  expect_first(ask(kAt + "k", p.product_with(kAt + "norm", "layer1.wk", p.weight("layer1.wv"))),
               "another layer's weight: wv in place");
  const std::string logits = "prefill.c1.logits";  // of three in four rows without a token
  expect_first(ask(logits, scaled(p.value(logits), 1.4426950408889634)),
               "convention: declare logits_base=2");
  const std::string cache = "decode.1.layer1.k_cache";
  const std::size_t M = at(p.value(cache).shape[1]);
  expect_first(ask(cache, each(p.value(cache),
                               [M](double v, std::size_t i) {  // rows of three tokens
                                 return i / 8 % M == 1 && i / 8 / M % 4 == 3 ? 0.0 : v;
                               })),
               "stale slot: slot 1 of row 3 holds zeros");
}

/// Gains are in the next weight by convention whatever stands at padding, and only if no token's
/// norm has its gain.
TEST_F(UnequalRowsExplained, FoldedGainsAreThoseOfTheTokens) {
  for (auto& [id, value] : p.dump) {
    const bool last = id.ends_with("final_norm");
    if (!last && !id.ends_with(".norm")) continue;
    const std::string layer = id.find("layer0") != std::string::npos ? "layer0" : "layer1";
    const auto gain = p.weight(last ? "final_norm" : layer + ".norm");
    value = Planted::f32(
        spoiled(id, each(value, [&](double v, std::size_t i) { return v / gain.data[i % 48]; })),
        value.shape);
  }
  const std::string id = kAt + "norm";
  expect_first(p.ask(id), "convention: declare norm_gain=folded");
  Planted::Value& other = p.dump.at("prefill.c0.layer0.norm");
  const auto gain = p.weight("layer0.norm");
  const std::size_t token = other.data.size() / 48 - 1;  // the last row has three tokens
  for (std::size_t e = 0; e < 48; ++e) other.data[token * 48 + e] *= gain.data[e];
  expect_none(p.ask(id), "convention");
}

TEST_F(UnequalRowsExplained, NoiseIsNotExplained) {
  for (const char* name : {"q", "k_cache", "exp", "out"})
    expect_unexplained(ask(kAt + name, each(p.value(kAt + name),
                                            [](double v, std::size_t i) {
                                              return v + 0.1 * std::sin(static_cast<double>(i * i));
                                            })),
                       name);
}

/// Whatever stands at a chip's own padding, it has the block of another.
TEST_F(UnequalRowsExplained, AnotherChipsRowsAreExplained) {
  const std::string id = kAt + "out";
  const std::size_t rows = 18 * p.value(id).data.size() / 24;
  expect_first(
      ask(id, moved(p.value(id), [&](std::size_t i) { return i < rows ? i : i - rows; }), "B_xLE"),
      "another chip's block [x]: (3,0,0) holds that of (0,0,0)");
}

/// What a prediction takes from padding is left open.
TEST_F(UnequalRowsExplained, FaultsThatMoveRowsAreExplained) {
  for (const std::string name : {"q", "gate", "out", "exp"}) {
    p.masked_any = name == "exp";
    const Planted::Value given = spoiled(kAt + name, p.value(kAt + name));
    const std::size_t row = given.data.size() / 24;
    const auto rows_from = [&](auto&& from) {
      return p.ask(kAt + name,
                   moved(given, [&](std::size_t i) { return from(i / row) * row + i % row; }),
                   Torus(4, 2, 1));
    };
    const auto expect = [&](const Planted::Said& all, const char* fault, const char* detail) {
      ASSERT_FALSE(all.empty()) << name << fault;
      EXPECT_TRUE(all[0].explains && all[0].fault == fault &&
                  all[0].detail.find(detail) != std::string::npos)
          << name << "\n"
          << text(all);
    };
    expect_right(rows_from([](std::size_t b) { return b; }), name);
    expect(rows_from([](std::size_t b) { return (b + 6) % 24; }), "chunks in another order",
           "rotated by 1");
    expect(rows_from([](std::size_t b) { return b % 6; }), "another chip's block", "");
  }
}

/// Decode steps count positions from the padded length on, in all rows; the dump has neither what
/// is rotated nor caches, whose padding no query sees.
TEST_F(UnequalRowsExplained, PositionsBehindThePadding) {
  const Planted all(kModel + " seed=9 lengths=4,2,1,3");
  const std::string at_step = "decode.1.layer1.";
  const std::size_t M = 5, starts[] = {4, 2, 1, 3};
  const auto q = all.turned(at_step + "q", 4), k = all.turned(at_step + "k", 4);
  const auto &keys = all.value(at_step + "k_cache"), &values = all.value(at_step + "v_cache");
  // The key at a slot of a row; its newest one is at its own position, rotated as at `position`.
  const auto attn = [&](const Planted::Value& queries, const Planted::Value& newest) {
    return each(all.value(at_step + "attn"), [&](double, std::size_t i) {
      const std::size_t n = i / 4, b = n / 24, group = n % 24 / 12, own = starts[b % 4];
      double sum = 0.0, mix = 0.0;
      for (std::size_t m = 0; m <= own; ++m) {
        double dot = 0.0;
        for (std::size_t c = 0; c < 4; ++c) {
          const std::size_t slot = ((b * M + m) * 2 + group) * 4 + c;
          dot += queries.data[n * 4 + c] *
                 (m == own ? newest.data[(b * 2 + group) * 4 + c] : keys.data[slot]);
        }
        sum += std::exp(dot / 2);
        mix += std::exp(dot / 2) * values.data[((b * M + m) * 2 + group) * 4 + i % 4];
      }
      return mix / sum;
    });
  };
  for (auto& [id, value] : p.dump) value = spoiled(id, value);
  for (const char* name : {"score", "max", "exp", "denom", "q_rot", "k_rot", "k_cache", "v_cache"})
    std::erase_if(
        p.dump, [&](const auto& value) { return value.first.ends_with("." + std::string(name)); });
  expect_right(
      p.ask(at_step + "attn", attn(all.value(at_step + "q_rot"), all.value(at_step + "k_rot"))));
  expect_first(p.ask(at_step + "attn", attn(q, k)),
               "position off: positions from the padded length on in all rows, in ");
}

}  // namespace
}  // namespace shardproof::diagnosis
