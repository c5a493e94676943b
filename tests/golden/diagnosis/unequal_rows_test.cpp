// Rows of unequal length: what stands at padding is no fault, and neither hides nor explains one.
#include <limits>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTorus(4, 2, 3);

class UnequalRowsExplained : public testing::Test {
 protected:
  /// The value with NaN wherever there is padding.
  Planted::Value spoiled(const std::string& id, Planted::Value v) {
    const std::string pass = id.substr(0, id.find('.', id.find('.') + 1));
    for (std::int64_t i = 0; i < p.passes().size(); ++i) {
      if (p.passes().at(i).name != pass) continue;
      const auto padding = padding_in_trace(value_row(id.substr(id.rfind('.') + 1))->dims,
                                            p.value(id).shape, false, p.passes().at(i));
      for (std::size_t k = 0; k < padding.size(); ++k)
        if (padding[k]) v.data[k] = std::numeric_limits<double>::quiet_NaN(), ++padded;
    }
    return v;
  }
  std::vector<Hypothesis> ask(const std::string& id, const Planted::Value& v,
                              const std::string& layout = "") {
    const Planted::Value was = p.value(id);
    const Planted::Value given = spoiled(id, Planted::f32(v, was.shape));
    auto all = layout.empty() ? p.ask(id, given, kTorus) : p.ask(id, given, layout, kTorus);
    p.dump[id] = was;
    return all;
  }

  Planted p{std::string(kModel) + " seed=9 lengths=4,2,1,3"};
  const std::string at = "prefill.c0.layer1.";
  int padded = 0;
};

TEST_F(UnequalRowsExplained, PaddingIsNoFault) {
  for (const auto& [id, value] : std::map<std::string, Planted::Value>(p.dump)) {
    const bool last = id.starts_with("prefill.c1.layer1.") || id == "prefill.c1.logits";
    if (!last && !id.starts_with(at) && !id.starts_with("decode.1.layer1.")) continue;
    const bool cache = id.ends_with("_cache");
    padded = 0;
    EXPECT_TRUE(ask(id, value).empty()) << id << "\n" << text(ask(id, value));
    EXPECT_EQ(padded > 0, cache || !id.starts_with("decode.")) << id;
  }
}

TEST_F(UnequalRowsExplained, FaultsOfTheTokensAreExplained) {
  const auto x = p.value("prefill.c0.layer0.out"), y = p.value(at + "block_out");
  expect_first(ask(at + "out", y, "BLE_xyz"), "addend not added once", "", "out is added 0 times");
  expect_first(ask(at + "out", Planted::sum(y, x, 4), "BLE_x"), "addend not added once", "x",
               "4 times");
  // Rows are cut, and some chips hold little but padding.
  expect_first(ask(at + "out", Planted::sum(y, x, 4), "B_yzLE_x"), "addend not added once", "x",
               "4 times");
  expect_first(ask(at + "k", Planted::product(p.value(at + "norm"), p.weight("layer1.wv"), 48)),
               "another layer's weight", "", "wv in place");
  auto logits = p.value("prefill.c1.logits");  // three of four rows have no token in this pass
  for (double& v : logits.data) v *= 1.4426950408889634;
  expect_first(ask("prefill.c1.logits", logits), "convention", "", "declare logits_base=2");
  const std::string cache = "decode.1.layer1.k_cache";
  auto zero = p.value(cache);
  const auto M = static_cast<std::size_t>(zero.shape[1]);
  for (std::size_t i = 0; i < zero.data.size(); ++i)
    if (i / 8 % M == 1 && i / 8 / M % 4 == 3) zero.data[i] = 0;  // rows of three tokens
  expect_first(ask(cache, zero), "stale slot", "", "slot 1 of row 3 holds zeros");
}

TEST_F(UnequalRowsExplained, NoiseIsNotExplained) {
  for (const char* name : {"q", "k_cache", "exp", "out"}) {
    Planted::Value v = p.value(at + name);
    for (std::size_t i = 0; i < v.data.size(); ++i)
      v.data[i] += 0.1 * std::sin(static_cast<double>(i * i));
    for (const Hypothesis& h : ask(at + name, v)) EXPECT_FALSE(h.explains) << name << h.detail;
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
