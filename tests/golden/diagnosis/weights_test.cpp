// Blocks of weights that meet or make others than they should, and gathered chunks.
#include <algorithm>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTorus(4, 2, 3);
const std::string kAt = "prefill.c0.layer1.";

std::string layer(const char* name) { return std::string("layer1.") + name; }

/// The rows of a matrix [width, columns] in other places: row k is that of from(k).
template <class From>
Planted::Value rows_from(const Planted::Value& w, std::size_t width, From&& from) {
  Planted::Value moved = w;
  const std::size_t columns = w.data.size() / width;
  for (std::size_t k = 0; k < width; ++k)
    for (std::size_t c = 0; c < columns; ++c)
      moved.data[k * columns + c] = w.data[from(k) * columns + c];
  return moved;
}

/// block_out with these two matrices.
Planted::Value block_out(const Planted& p, const Planted::Value& wo, const Planted::Value& w_out) {
  const auto& attn = p.value(kAt + "attn");
  const auto& hidden = p.value(kAt + "hidden");
  return Planted::f32(
      Planted::sum(Planted::product(attn, wo, 24 * 4), Planted::product(hidden, w_out, 96)),
      p.value(kAt + "block_out").shape);
}

TEST(WeightFaults, BlocksOfAContractedDim) {
  Planted p(std::string(kModel) + " seed=21");
  const auto wo = p.weight(layer("wo")), w_out = p.weight(layer("w_out"));
  const auto with = [&](auto&& from) {
    return p.ask(kAt + "block_out", block_out(p, wo, rows_from(w_out, 96, from)), "BLE", kTorus);
  };
  // F is cut over yz for the operand and over zy for the matrix: 6 blocks of 16.
  expect_first(with([](std::size_t k) {
                 const std::size_t r = k / 16;
                 return (r % 3 * 2 + r / 3) * 16 + k % 16;
               }),
               "axes in another order", "yz", "F of w_out");
  expect_first(with([](std::size_t k) { return (k / 24 + 1) % 4 * 24 + k % 24; }),
               "chunks in another order", "x", "rotated by 1");
  expect_first(with([](std::size_t k) { return k % 24; }), "another chip's block", "x", "block 0");
  expect_first(with([](std::size_t k) { return k / 24 == 2 ? k + 24 : k; }), "another chip's block",
               "x", "block 3 is in the place of block 2");
  // Two heads on a chip: no order of whole blocks.
  const auto turned = rows_from(wo, 96, [](std::size_t k) { return (k + 4) % 96; });
  expect_first(p.ask(kAt + "block_out", block_out(p, turned, w_out), "BLE", Torus(2, 3, 2)),
               "head order", "", "wo are rotated by 1");
}

TEST(WeightFaults, BlocksOfAGain) {
  Planted p(std::string(kModel) + " seed=22");
  const auto gain = p.weight(layer("norm"));
  Planted::Value norm = p.value(kAt + "norm");
  for (std::size_t i = 0; i < norm.data.size(); ++i) {
    const std::size_t e = i % 48, r = e / 8, from = (r % 3 * 2 + r / 3) * 8 + e % 8;
    norm.data[i] = norm.data[i] / gain.data[e] * gain.data[from];
  }
  // Of a value that was rounded before: f32 leaves room for it where its own bound does.
  const auto said = p.ask(kAt + "norm", Planted::f32(norm, norm.shape), "BLE", kTorus);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].fault + said[0].axes, "axes in another orderyz") << text(said);
}

TEST(WeightFaults, AChunkThatIsThereTwice) {
  Planted p(std::string(kModel) + " seed=23");
  Planted::Value gate = p.value(kAt + "gate");
  const Planted::Value was = gate;
  for (std::size_t i = 0; i < gate.data.size(); ++i)
    if (i % 96 / 24 == 1) gate.data[i] = was.data[i + 24];
  expect_first(p.ask(kAt + "gate", gate, "B_yzLF", kTorus), "another chip's block", "x", "0,2,2,3");
}

TEST(WeightFaults, OneOfTwoSummandsOnAllChips) {
  Planted p(std::string(kModel) + " seed=24");
  const auto own = Planted::product(p.value(kAt + "norm"), p.weight(layer("w_gate")), 48,
                                    [](std::size_t k) { return k < 24 ? 0.0 : 1.0; });
  expect_first(p.ask(kAt + "gate", Planted::f32(own, p.value(kAt + "gate").shape), "BLF", kTorus),
               "summand missing", "y", "block 0 of 2 over y is left out");
}

TEST(WeightFaults, LayoutsOfOperandsSayWhichAxes) {
  const Torus torus(2, 2, 3);
  for (const char* axes : {"x", "y"}) {
    Planted p(std::string(kModel) + " seed=25");
    p.layouts[kAt + "norm"] = Layout::parse(std::string("BLE_") + axes);
    const auto own = Planted::product(p.value(kAt + "norm"), p.weight(layer("w_gate")), 48,
                                      [](std::size_t k) { return k < 24 ? 0.0 : 1.0; });
    expect_first(p.ask(kAt + "gate", Planted::f32(own, p.value(kAt + "gate").shape), "BLF", torus),
                 "summand missing", axes);
  }
}

/// Nothing declares the order of the axes that cut the table: chips that differ along some axes
/// have neighbouring blocks in one order, and along others in another.
TEST(WeightFaults, ABlockOfTheTableThatIsLookedUp) {
  const Torus torus(2, 3, 2);
  Planted p(std::string(kModel) + " seed=27");
  const auto table = p.weight("embed");
  Planted::Value embed = p.value("prefill.c0.embed");
  // Of V_zxy block 2, of (0,2,0), is that of (1,0,0).
  for (std::size_t i = 0; i < embed.data.size(); i += 48)
    for (std::size_t v = 2 * 4; v < 3 * 4; ++v) {
      const auto scaled = [&](std::size_t row, std::size_t e) {
        return static_cast<double>(
            static_cast<float>(table.data[row * 48 + e] * static_cast<double>(1.7F)));
      };
      bool same = true;
      for (std::size_t e = 0; e < 48 && same; ++e) same = embed.data[i + e] == scaled(v, e);
      if (!same) continue;
      for (std::size_t e = 0; e < 48; ++e) embed.data[i + e] = scaled(v + 4, e);
      break;
    }
  const auto said = p.ask("prefill.c0.embed", embed, torus);
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

TEST(WeightFaults, ScalesOfInt8) {
  Planted p(std::string(kModel) + " seed=28 weights=int8");
  const auto scale = p.weight(layer("w_gate_scale"));
  const Planted::Value sum =
      Planted::f32(Planted::product(p.value(kAt + "norm"), p.weight(layer("w_gate")), 48),
                   p.value(kAt + "gate").shape);
  const auto with = [&](auto&& factor) {
    Planted::Value v = sum;
    for (std::size_t i = 0; i < v.data.size(); ++i)
      v.data[i] = static_cast<float>(v.data[i] * factor(i % 96));
    return p.ask(kAt + "gate", v, "BLF", kTorus);
  };
  EXPECT_TRUE(with([&](std::size_t f) { return scale.data[f]; }).empty());
  expect_first(with([](std::size_t) { return 1.0; }), "scale missing", "", "w_gate_scale");
  expect_first(with([&](std::size_t f) { return scale.data[f] * scale.data[f]; }), "scale doubled",
               "", "w_gate_scale");
  expect_first(with([&](std::size_t) { return scale.data[0]; }), "scale missing", "",
               "that of column 0 for all");
  // Blocks of scales in another order than those of their columns.
  expect_first(with([&](std::size_t f) { return scale.data[(f + 24) % 96]; }),
               "chunks in another order", "x", "w_gate_scale");
}

TEST(WeightFaults, OfSummands) {
  Planted p(std::string(kModel) + " seed=29");
  const Layout cut = Layout::parse("BLF_zy");
  // Chip (x,y,z) has the summand of block from(x) of E_x.
  const auto with = [&](auto&& from) {
    std::vector<Planted::Shards> parts;
    for (std::size_t r = 0; r < 4; ++r)
      parts.push_back(Planted::cut(
          Planted::f32(Planted::product(p.value(kAt + "norm"), p.weight(layer("w_gate")), 48,
                                        [r](std::size_t k) { return k / 12 == r ? 1.0 : 0.0; }),
                       p.value(kAt + "gate").shape),
          cut, kTorus));
    Planted::Shards shards = parts[0];
    for (int chip = 0; chip < 24; ++chip) {
      const auto c = static_cast<std::size_t>(chip);
      const int r = from(kTorus.coordinate(chip, Axis::x));
      if (r >= 0)
        shards[c] = parts[static_cast<std::size_t>(r)][c];
      else
        shards[c].assign(shards[c].size(), 0.0);
    }
    return p.ask(kAt + "gate", "BLF_zy partialsum-x", kTorus, shards);
  };
  EXPECT_TRUE(with([](int x) { return x; }).empty());
  expect_first(with([](int x) { return x == 2 ? -1 : x; }), "summand missing", "x", "block 2 of 4");
  // What another chip has of the sum: its summand is there twice.
  expect_first(with([](int x) { return x == 2 ? 3 : x; }), "summand missing", "x",
               "counts 1,1,0,2");
}

TEST(WeightFaults, OfASumBeforeItsScale) {
  Planted p(std::string(kModel) + " seed=26 weights=int8");
  p.raw = true;
  const auto of = [&](auto&& weight) {
    return p.ask(
        kAt + "gate",
        Planted::f32(Planted::product(p.value(kAt + "norm"), p.weight(layer("w_gate")), 48, weight),
                     p.value(kAt + "gate").shape),
        "BLF", kTorus);
  };
  EXPECT_TRUE(of([](std::size_t) { return 1.0; }).empty());
  expect_first(of([](std::size_t k) { return k / 12 == 1 ? 0.0 : 1.0; }), "summand missing", "x",
               "block 1 of 4");
}

}  // namespace
}  // namespace shardproof::diagnosis
