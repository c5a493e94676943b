// Weights that a dump shows, and that are others than the run's.
#include <fmt/format.h>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

class ShownWeights : public testing::Test {
 protected:
  /// What is said of a weight with these shards.
  Planted::Said said(const std::string& id, const std::string& layout, Planted::Shards shards) {
    const bounds::Derivation::Dump given(p.dump.begin(), p.dump.end());
    bounds::Replay replay(p.weights(), p.plan.passes, p.ids, given, p.declared);
    return diagnose(replay, {id, torus, Layout::parse(layout), std::move(shards)});
  }
  /// As of chip from(chip) each.
  template <class From>
  Planted::Said blocks(const std::string& id, const std::string& layout, From&& from) {
    return said(id, layout, Planted::cut(p.weight(id), layout, torus, from));
  }
  Planted::Said whole(const std::string& id, const std::string& letters,
                      const Planted::Value& numbers) {
    return said(id, letters, {numbers.data});
  }

  const std::string w_out = "layer1.w_out";
  const Torus torus{4, 2, 1};
  Planted p{kModel + " seed=41"};
};

TEST_F(ShownWeights, AreRight) {
  expect_right(blocks(w_out, "F_xE_y", [](int chip) { return chip; }));
  expect_right(whole("layer0.norm", "E", p.weight("layer0.norm")));
}

TEST_F(ShownWeights, BlocksOfOtherChips) {
  const auto along_x = [&](const std::vector<int>& order) {
    return blocks(w_out, "F_xE_y", [&](int chip) { return order[at(chip / 2)] * 2 + chip % 2; });
  };
  expect_first(along_x({0, 1, 3, 2}), "chunks in another order [x]: the blocks over x are 0,1,3,2");
  expect_first(along_x({2, 0, 3, 1}), "chunks in another order [x]: the blocks over x are 2,0,3,1");
  expect_first(along_x({1, 2, 3, 0}),
               "chunks in another order [x]: the blocks over x are rotated by 1");
  expect_first(along_x({0, 0, 0, 0}), "another chip's block [x]: along x all chips hold block 0");
  expect_first(along_x({0, 1, 1, 3}), "another chip's block [x]: ");
}

TEST_F(ShownWeights, OtherNumbers) {
  const auto own = p.weight(w_out);
  expect_alone(whole(w_out, "FE", scaled(own, 0)), "never written: zeros");
  expect_first(whole(w_out, "FE", p.weight("layer0.w_out")),
               "another layer's weight: layer0.w_out in place of layer1.w_out");
  expect_first(whole(w_out, "FE", in_bf16(own)), "rounding: the numbers are rounded to bf16");
  const std::vector<std::size_t> order{1, 3, 0, 2};
  expect_first(whole(w_out, "FE",
                     moved(own,
                           [&](std::size_t i) {
                             const std::size_t of_block = own.data.size() / 4;
                             return order[i / of_block] * of_block + i % of_block;
                           })),
               "chunks in another order [x]: the chunks of F over x are 1,3,0,2");
  Noise noise;
  expect_unexplained(whole(w_out, "FE", noise.on(own, rms(own) / 1000)), "noise");
}

}  // namespace
}  // namespace shardproof::diagnosis
