// Edits of a step that are of operands, weights and statistics of chips: blocks of an addend,
// slopes of the first heads, one scale for all columns, rows of a table, statistics over another
// axis.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

TEST(Edits, OneBlockOfAnAddendInAllPlaces) {
  Planted p(with_keys(kModel, ",block=serial") + " seed=51");
  const std::string id = kAt + "mid";
  // mid = x + attn_out, one of which is moved.
  const std::string ids[] = {"prefill.c0.layer0.out", kAt + "attn_out"};
  const auto with = [&](const std::string& operand, std::size_t blocks, std::size_t block) {
    const std::size_t width = 48 / blocks;
    const auto block_alone = moved(p.value(operand), [=](std::size_t i) {
      return i - i % 48 + i % 48 % width + block * width;
    });
    return p.ask(id, Planted::sum(block_alone, p.value(operand == ids[0] ? ids[1] : ids[0])));
  };
  for (const auto& [operand, name] : {std::pair{ids[0], "out"}, {ids[1], "attn_out"}})
    for (const std::size_t blocks : {2U, 4U, 3U})
      for (const std::size_t block : {std::size_t{0}, blocks - 1}) {
        const Planted::Said said = with(operand, blocks, block);
        ASSERT_FALSE(said.empty());
        EXPECT_TRUE(said[0].explains && said[0].fault == "another chip's block") << text(said);
        EXPECT_EQ(said[0].detail, fmt::format("of {}: block {} of {} of E in the place of each",
                                              name, block, blocks))
            << text(said);
      }
}

TEST(Edits, SlopesOfTheFirstHeadsInEachBlock) {
  Planted p(
      "model=falcon,rope=alibi,layers=1,E=24,F=24,H=8,K=1,Q=4,V=24 batch=2 prompt=6 gen=1 "
      "seed=52");
  p.texts = 0;
  const std::string at = "prefill.c0.layer0.";
  const auto slopes = p.weight("alibi_slopes");
  for (const std::size_t blocks : {4U, 2U}) {
    const std::size_t M = 6, H = 8;
    const Planted::Value& score = p.value(at + "score");
    ASSERT_EQ(score.data.size(), 2 * M * H * M);
    const auto wrong = each(score, [&](double v, std::size_t i) {
      const std::size_t m = i % M, h = i / M % H, l = i / M / H % M;
      const double distance = static_cast<double>(m) - static_cast<double>(l);
      return m > l ? v : v + distance * (slopes.data[h % (H / blocks)] - slopes.data[h]);
    });
    const Planted::Said said = p.ask(at + "score", wrong);
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said[0].fault, "another chip's block") << text(said);
    EXPECT_NE(said[0].detail.find(fmt::format("the slopes of the first of {} blocks", blocks)),
              std::string::npos)
        << text(said);
  }
}

TEST(Edits, OneScaleForAllColumns) {
  Planted p(kModel + " seed=53 weights=int8");
  p.texts = 0;
  const auto sum = p.product(kAt + "norm", "layer1.w_gate");
  const auto scales = p.weight("layer1.w_gate_scale");
  double most = 0.0;
  for (const double s : scales.data) most = std::max(most, s);
  for (const double scale : {most, 0.0125}) {
    const Planted::Said said = p.ask(kGate, scaled(sum, scale));
    ASSERT_FALSE(said.empty());
    EXPECT_TRUE(said[0].explains && said[0].fault == "another factor") << text(said);
    const std::string words = "all columns times ";
    ASSERT_TRUE(said[0].detail.starts_with(words)) << text(said);
    EXPECT_NEAR(std::stod(said[0].detail.substr(words.size())) / scale, 1, 0x1p-20) << text(said);
  }
}

TEST(Edits, StatisticsReducedOverAnotherAxis) {
  Planted p(kModel + " seed=54");
  p.texts = 0;
  const std::string id = kAt + "norm";
  const auto& x = p.value("prefill.c0.layer0.out");
  const auto gain = p.weight("layer1.norm");
  // E over x, of 4; summed over y, of 2, or z, of 3, along which all have the same.
  for (const int copies : {2, 3}) {
    Planted::Shards shards(at(kTorus.chips()));
    for (int chip = 0; chip < kTorus.chips(); ++chip) {
      const std::size_t block = at(kTorus.coordinate(chip, Axis::x)) * 12;
      for (std::size_t row = 0; row < x.data.size() / 48; ++row) {
        double squares = 0.0;
        for (std::size_t e = block; e < block + 12; ++e)
          squares += x.data[row * 48 + e] * x.data[row * 48 + e];
        const double r = 1 / std::sqrt(copies * squares / 48 + p.config().eps);
        for (std::size_t e = block; e < block + 12; ++e)
          shards[at(chip)].push_back(static_cast<float>(x.data[row * 48 + e] * r * gain.data[e]));
      }
    }
    const Planted::Said said = p.ask(id, "BLE_x", kTorus, shards);
    expect_first(said, fmt::format("local statistics [x]: of the chip's own block over x, of E_x, "
                                   "divided by E/{}",
                                   copies));
  }
}

TEST(Edits, FirstRowsOfATableForTokensOfOthers) {
  Planted p(kModel + " seed=55");
  const std::string id = "prefill.c0.embed";
  const auto table = p.weight("embed");
  const auto& ids = p.ids.at("prefill.c0").data;
  const std::size_t E = 48;
  for (const std::size_t chips : {4U, 3U}) {
    const std::size_t rows = 48 / chips;
    const auto wrong = each(p.value(id), [&](double v, std::size_t i) {
      const auto token = static_cast<std::size_t>(ids[i / E]);
      for (std::size_t c = 0; c < chips; ++c)
        if (c != token / rows) v += 1.7 * table.data[c * rows * E + i % E];
      return v;
    });
    const Planted::Said said = p.ask(id, wrong);
    ASSERT_FALSE(said.empty());
    EXPECT_TRUE(said[0].detail.starts_with(
        fmt::format("each chip adds its first row for tokens of other chips; {} rows on each of {}",
                    rows, chips)))
        << text(said);
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
