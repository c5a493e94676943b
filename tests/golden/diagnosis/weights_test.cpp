// Blocks of weights that meet or make others than they should, and gathered chunks.
#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kNorm = kAt + "norm", kWGate = "layer1.w_gate";

/// Index k of 48 or of 96, of which six blocks over yz lie as over zy.
std::size_t as_zy(std::size_t k, std::size_t extent) {
  const std::size_t length = extent / 6, r = k / length;
  return (r % 3 * 2 + r / 3) * length + k % length;
}

class WeightFaults : public testing::Test {
 protected:
  Planted p{kModel + " seed=21"};
};

TEST_F(WeightFaults, BlocksOfAContractedDim) {
  // block_out with the rows of its matrices in other places.
  const auto ask = [&](auto&& of_attn, auto&& of_ffn, const Torus& torus = kTorus) {
    const auto product = [&](const char* operand, const std::string& matrix, auto&& from) {
      return p.product_with(kAt + operand, matrix, moved(p.weight(matrix), [&](std::size_t i) {
                              return from(i / 48) * 48 + i % 48;
                            }));
    };
    return p.ask(kAt + "block_out",
                 Planted::sum(product("attn", "layer1.wo", of_attn),
                              product("hidden", "layer1.w_out", of_ffn)),
                 torus, "BLE");
  };
  const auto own = [](std::size_t k) { return k; };
  // F is cut over yz for the operand and over zy for the matrix.
  expect_first(ask(own, [](std::size_t k) { return as_zy(k, 96); }),
               "axes in another order [yz]: F of w_out");
  expect_first(ask(own, [](std::size_t k) { return (k + 24) % 96; }),
               "chunks in another order [x]: F of w_out, as hidden meets it: the blocks over x are "
               "rotated by 1");
  expect_first(ask(own, [](std::size_t k) { return k % 24; }),
               "another chip's block [x]: F of w_out, as hidden meets it: along x all chips have "
               "block 0");
  expect_first(ask(own, [](std::size_t k) { return k / 24 == 2 ? k + 24 : k; }),
               "another chip's block [x]: F of w_out, as hidden meets it: over x block 3 is in the "
               "place of block 2");
  // Two heads on a chip: no order of whole blocks.
  expect_first(ask([](std::size_t k) { return (k + 4) % 96; }, own, Torus(2, 3, 2)),
               "head order: wo are rotated by 1");
}

TEST_F(WeightFaults, BlocksOfAGain) {
  const auto gain = p.weight("layer1.norm");
  // Of a value that was rounded before: f32 leaves room for it where its own bound does.
  const auto said = p.ask(kNorm,
                          each(p.value(kNorm),
                               [&](double v, std::size_t i) {
                                 return v / gain.data[i % 48] * gain.data[as_zy(i % 48, 48)];
                               }),
                          kTorus, "BLE");
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].fault + said[0].axes, "axes in another orderyz") << text(said);
}

TEST_F(WeightFaults, AChunkThatIsThereTwice) {
  expect_first(
      p.ask(kGate,
            moved(p.value(kGate), [](std::size_t i) { return i % 96 / 24 == 1 ? i + 24 : i; }),
            kTorus, "B_yzLF"),
      "another chip's block [x]: the chunks of F over x are 0,2,2,3");
}

TEST_F(WeightFaults, OneOfTwoPartialSumsOnAllChips) {
  const auto own = p.parts(kNorm, kWGate, 2)[1];
  expect_first(p.ask(kGate, own, kTorus, "BLF"),
               "partial sum missing [y]: block 0 of 2 over y is left out");
  // Layouts of operands say which of two axes of two chips.
  for (const char* axes : {"x", "y"}) {
    p.layouts[kNorm] = Layout::parse(std::string("BLE_") + axes);
    expect_first(p.ask(kGate, own, Torus(2, 2, 3), "BLF"),
                 fmt::format("partial sum missing [{}]", axes));
  }
}

/// Nothing declares the order of the axes that cut the table: chips that differ along some axes
/// have neighbouring blocks in one order, and along others in another.
TEST_F(WeightFaults, ABlockOfTheTableThatIsLookedUp) {
  const auto table = p.weight("embed");
  Planted::Value embed = p.value("prefill.c0.embed");
  // Of V_zxy block 2, of (0,2,0), is that of (1,0,0).
  for (std::size_t i = 0; i < embed.data.size(); i += 48)
    for (std::size_t v = 2 * 4; v < 3 * 4; ++v) {
      const auto row = [&](std::size_t k, std::size_t e) {
        return static_cast<double>(
            static_cast<float>(table.data[k * 48 + e] * static_cast<double>(1.7F)));
      };
      bool same = true;
      for (std::size_t e = 0; e < 48 && same; ++e) same = embed.data[i + e] == row(v, e);
      if (!same) continue;
      for (std::size_t e = 0; e < 48; ++e) embed.data[i + e] = row(v + 4, e);
      break;
    }
  const auto said = p.ask("prefill.c0.embed", embed, Torus(2, 3, 2));
  ASSERT_FALSE(said.empty());
  const auto meant = std::find_if(said.begin(), said.end(), [](const Hypothesis& h) {
    return h.axes == "xy" &&
           h.detail.find("over zxy block 3 is in the place of block 2") != std::string::npos;
  });
  ASSERT_NE(meant, said.end()) << text(said);
  EXPECT_TRUE(meant->explains && meant->fault == said[0].fault &&
              meant->residual == said[0].residual)
      << text(said);
  for (const Hypothesis& h : said) EXPECT_NE(h.axes, "xyz") << text(said);
}

TEST(WeightFaultsOfInt8, AreInScales) {
  Planted p(kModel + " seed=28 weights=int8");
  const auto scale = p.weight("layer1.w_gate_scale");
  const auto sum = Planted::f32(p.product(kNorm, kWGate), p.value(kGate).shape);
  const auto with = [&](auto&& factor) {
    return p.ask(kGate, each(sum, [&](double v, std::size_t i) { return v * factor(i % 96); }),
                 kTorus, "BLF");
  };
  expect_right(with([&](std::size_t f) { return scale.data[f]; }));
  expect_first(with([](std::size_t) { return 1.0; }), "scale missing: w_gate_scale");
  expect_first(with([&](std::size_t f) { return scale.data[f] * scale.data[f]; }),
               "scale doubled: w_gate_scale");
  expect_first(with([&](std::size_t) { return scale.data[0]; }),
               "scale missing: w_gate_scale: that of column 0 for all");
  // Blocks of scales in another order than those of their columns.
  expect_first(with([&](std::size_t f) { return scale.data[(f + 24) % 96]; }),
               "chunks in another order [x]: F of w_gate_scale");
  // And a sum before its scale.
  p.raw = true;
  expect_right(p.ask(kGate, sum, kTorus, "BLF"));
  expect_first(
      p.ask(kGate, p.product(kNorm, kWGate, [](std::size_t k) { return k / 12 == 1 ? 0.0 : 1.0; }),
            kTorus, "BLF"),
      "partial sum missing [x]: block 1 of 4");
}

TEST_F(WeightFaults, OfPartialSums) {
  const auto parts = p.parts(kNorm, kWGate, 4);
  // Chip (x,y,z) has the partial sum of block from(x) of E_x.
  const auto with = [&](auto&& from) {
    return p.ask(kGate, "BLF_zy partialsum-x", kTorus,
                 p.counted(kGate, parts, "BLF_zy", kTorus, [&](int c, int r) {
                   return from(kTorus.coordinate(c, Axis::x)) == r ? 1 : 0;
                 }));
  };
  expect_right(with([](int x) { return x; }));
  expect_first(with([](int x) { return x == 2 ? -1 : x; }),
               "partial sum missing [x]: block 2 of 4");
  // What another chip has of the sum: its partial sum is there twice.
  expect_first(with([](int x) { return x == 2 ? 3 : x; }),
               "partial sum missing [x]: partial sums over E_x are not counted once");
}

// The sum of a term of a parallel block is before its bias, as that of a product is.
TEST(RawSums, ThatHoldTheirBias) {
  Planted p(with_keys(kModel, ",bias=all") + " seed=44");
  p.raw = true;
  p.texts = 0;
  const std::string term = kAt + "attn_out";
  p.dump[term] = p.product(kAt + "attn", "layer1.wo");
  p.dump[term].shape = p.value(kAt + "block_out").shape;
  struct Sum {
    std::string id, operand, matrix, bias;
  };
  for (const Sum& sum : {Sum{term, "attn", "layer1.wo", "layer1.bo"},
                         Sum{kGate, "norm", "layer1.w_gate", "layer1.b_gate"}}) {
    const Planted::Value right = p.product(kAt + sum.operand, sum.matrix),
                         bias = p.weight(sum.bias);
    expect_right(p.ask(sum.id, right), sum.id);
    const auto with = [&](double times) {
      return p.ask(sum.id, each(right, [&](double v, std::size_t i) {
                     return v + times * bias.data[i % bias.data.size()];
                   }));
    };
    const std::string missing = "partial sum missing [x]: block 1 of 4";
    const std::size_t width = sum.id == term ? 96 : 48;  // of heads and channels, or of E
    expect_first(
        p.ask(sum.id, p.product(kAt + sum.operand, sum.matrix,
                                [=](std::size_t k) { return k / (width / 4) == 1 ? 0.0 : 1.0; })),
        missing);
    expect_first(with(1), "convention: the bias " + sum.bias + " is inside: declare it as ");
    for (const Hypothesis& h : with(2.5)) EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
