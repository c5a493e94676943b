// What each chip's partial sum of a product must be, by the layouts of the operands.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "golden/bounds/value/replay.h"
#include "golden/compare/block_map.h"
#include "tests/golden/oracle_run.h"

namespace shardproof::bounds {
namespace {

const std::string kAt = "prefill.c0.layer1.";
const Torus kTorus(2, 3, 2);

class PartialSums : public testing::Test, protected OracleRun {
 protected:
  PartialSums()
      : OracleRun("model=palm-tiny,layers=2,E=24,F=24,H=12,K=2,Q=2,V=24 batch=2 prompt=2 gen=1") {
    for (auto& [id, value] : values()) dump[id] = value;
  }

  using Layouts = std::map<std::string, std::string>;
  std::optional<std::vector<IntervalTensor>> partials(const char* name, const Layouts& layouts,
                                                      const std::string& axes) const {
    std::map<std::string, Layout> by_id;
    for (const auto& [operand, layout] : layouts) by_id[kAt + operand] = Layout::parse(layout);
    Replay replay(weights(), plan.passes, ids, dump, {});
    replay.lay_out(by_id, kTorus);
    return replay.expected_partials(kAt + name, Axes::parse(axes), true);
  }

  /// Adds the products of an operand with a matrix to the sums [part][row·columns + column]; the
  /// part is that of a chip that has index k, by its coordinates on `axes`, z fastest.
  void add(std::vector<std::vector<double>>& parts, const std::string& operand,
           const std::string& matrix, const std::string& layout, const std::string& axes) const {
    const IntervalTensor& x = dump.at(kAt + operand);
    const Tensor& w = *weights().at("layer1." + matrix);
    const std::size_t rows = 4, width = x.size() / rows, columns = w.data.size() / width;
    std::vector<std::size_t> part_of(width);
    for (int chip = 0; chip < kTorus.chips(); ++chip) {
      const std::array<int, 3> place = judged_coordinates(kTorus, chip);
      std::size_t part = 0;
      for (const char axis : axes)
        part = part * static_cast<std::size_t>(kTorus.size(Axes::parse(std::string(1, axis)))) +
               static_cast<std::size_t>(place[static_cast<std::size_t>(axis - 'x')]);
      judged_elements(Layout::parse(layout), x.shape, kTorus, chip,
                      [&](std::int64_t, std::int64_t global) {
                        part_of[static_cast<std::size_t>(global) % width] = part;
                        return false;
                      });
    }
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < width; ++k)
        for (std::size_t c = 0; c < columns; ++c)
          parts.at(part_of[k])[r * columns + c] +=
              x.center[r * width + k] * static_cast<double>(w.data[k * columns + c]);
  }

  /// Expects each part's bounds to hold its sum, and no other's.
  static void expect_parts(const std::optional<std::vector<IntervalTensor>>& found,
                           const std::vector<std::vector<double>>& parts, const std::string& of) {
    ASSERT_TRUE(found.has_value()) << of;
    ASSERT_EQ(found->size(), parts.size()) << of;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::vector<bool> holds(parts.size(), true);
      for (std::size_t other = 0; other < parts.size(); ++other)
        for (std::size_t i = 0; i < parts[other].size(); ++i)
          holds[other] = holds[other] && std::abs(parts[other][i] - (*found)[part].center[i]) <=
                                             (*found)[part].radius[i] * (1 + 1e-6) + 1e-12;
      for (std::size_t other = 0; other < parts.size(); ++other)
        EXPECT_EQ(holds[other], other == part) << of << ": " << other << " as " << part;
    }
  }

  static std::vector<std::vector<double>> zeros(const std::string& axes, std::size_t size) {
    return {static_cast<std::size_t>(kTorus.size(Axes::parse(axes))), std::vector<double>(size)};
  }

  Replay::Dump dump;
};

TEST_F(PartialSums, AreThoseOfEachBlockOverTheAxes) {
  for (const std::string layout : {"BLE_xy", "BLE_yx", "BLE_zxy"})
    for (const std::string axes : {"x", "y", "xy"}) {
      std::vector<std::vector<double>> parts = zeros(axes, std::size_t{4} * 24);
      add(parts, "norm", "w_gate", layout, axes);
      expect_parts(partials("gate", {{"norm", layout}}, axes), parts, layout + " over " + axes);
    }
}

// Of two products, of attn with wo and of hidden with w_out, a chip adds up its blocks of both.
TEST_F(PartialSums, OfTwoProductsAreOfOneBlockOfEach) {
  for (const std::string hidden : {"BLF_xy", "BLF_yx"})
    for (const std::string axes : {"y", "xy"}) {
      std::vector<std::vector<double>> parts = zeros(axes, std::size_t{4} * 24);
      add(parts, "attn", "wo", "BLH_xyQ", axes);
      add(parts, "hidden", "w_out", hidden, axes);
      expect_parts(partials("block_out", {{"attn", "BLH_xyQ"}, {"hidden", hidden}}, axes), parts,
                   hidden + " over " + axes);
    }
}

TEST_F(PartialSums, AreNotKnownUnlessTheAxesCutAllOperands) {
  const auto known = [&](const char* name, const Layouts& layouts, const char* axes) {
    return partials(name, layouts, axes).has_value();
  };
  EXPECT_TRUE(known("gate", {{"norm", "BLE_xy"}}, "x"));
  EXPECT_FALSE(known("gate", {{"norm", "BLE_xy"}}, "z"));
  EXPECT_FALSE(known("gate", {{"norm", "BLE_xy"}}, "xz"));
  EXPECT_FALSE(known("gate", {{"norm", "B_xLE"}}, "x"));
  EXPECT_FALSE(known("gate", {}, "x"));
  EXPECT_FALSE(known("hidden", {{"gate", "BLF_x"}, {"up", "BLF_x"}}, "x")) << "no sum";
  EXPECT_TRUE(known("block_out", {{"attn", "BLH_xQ"}, {"hidden", "BLF_x"}}, "x"));
  EXPECT_FALSE(known("block_out", {{"attn", "BLH_xQ"}, {"hidden", "BLF_y"}}, "x"));
  EXPECT_FALSE(known("block_out", {{"attn", "BLH_xQ"}, {"hidden", "BLF_y"}}, "y"));
  EXPECT_FALSE(known("block_out", {{"attn", "BLH_xQ"}}, "x"));
}

// A value that is more than its sum, by a scale or a bias, has none: its sum has.
TEST(PartialSumsOfValues, AreOfThoseThatAreSums) {
  const std::string kLogits = "prefill.c0.logits", kNorm = "prefill.c0.final_norm";
  const std::string q = kAt + "q", gate = kAt + "gate", norm = kAt + "norm";
  for (const auto& [keys, value, operand, is_sum] : {std::tuple{"", q, norm, true},
                                                     {",logit_scale=1", kLogits, kNorm, true},
                                                     {",bias=qkv", q, norm, false},
                                                     {",bias=qkv", gate, norm, true},
                                                     {",bias=all", gate, norm, false},
                                                     {"", kLogits, kNorm, false},
                                                     {" weights=int8", q, norm, false},
                                                     {" weights=int8", gate, norm, false},
                                                     {" act=bf16", gate, norm, true}}) {
    const OracleRun run(
        std::string("batch=2 prompt=2 gen=1 model=palm-tiny,layers=2,E=24,F=24,H=12,"
                    "K=2,Q=2,V=24") +
        keys);
    Replay::Dump dump;
    for (auto& [id, tensor] : run.values()) dump[id] = tensor;
    Replay replay(run.weights(), run.plan.passes, run.ids, dump, {});
    replay.lay_out({{operand, Layout::parse("BLE_x")}}, kTorus);
    EXPECT_TRUE(replay.expected_partials(value, Axes::parse("x"), true)) << value << keys;
    EXPECT_EQ(replay.expected_partials(value, Axes::parse("x"), false).has_value(), is_sum)
        << value << keys;
  }
}

}  // namespace
}  // namespace shardproof::bounds
