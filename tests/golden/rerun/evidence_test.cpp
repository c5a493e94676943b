// Logits alone: right runs of the engine in f32 and bf16 are rounding, or nothing is said of them;
// wrong ones are not.
#include "golden/rerun/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "golden/scalar/model.h"
#include "tests/golden/rerun/asked.h"

namespace shardproof::rerun {
namespace {

using Says = Evidence::Says;

TEST(Evidence, SaysWhichOfThreeAndBothEdges) {
  const std::vector<double> theirs{0.7e-6, 1.0e-6, 1.5e-6};
  EXPECT_EQ(weigh(1.1e-6, theirs).text(), "drift 1.1e-6; 3 such runs: 7.0e-7 to 1.5e-6: rounding");
  EXPECT_EQ(weigh(0.0, theirs).says, Says::rounding);
  EXPECT_EQ(weigh(1.5e-6, theirs).says, Says::rounding);
  const Evidence between = weigh(2e-6, theirs);
  EXPECT_EQ(between.says, Says::unclear);
  EXPECT_EQ(between.text(),
            "drift 2.0e-6; 3 such runs: 7.0e-7 to 1.5e-6, not rounding above 1.1e-5: unclear");
  EXPECT_EQ(weigh(between.limit(), theirs).says, Says::unclear);
  const Evidence wrong = weigh(2.1, theirs);
  EXPECT_EQ(wrong.says, Says::not_rounding);
  EXPECT_EQ(wrong.text(),
            "drift 2.1, 1.9 million times theirs (7.0e-7 to 1.5e-6): not rounding (above 1.1e-5)");
  EXPECT_EQ(weigh(3e-5, theirs).text(),
            "drift 3.0e-5, 27 times theirs (7.0e-7 to 1.5e-6): not rounding (above 1.1e-5)");
}

TEST(Evidence, OfNaNInfinityAndNothing) {
  EXPECT_EQ(weigh(NAN, {1e-6}).says, Says::not_rounding);
  EXPECT_EQ(weigh(INFINITY, {1e-6}).says, Says::not_rounding);
  EXPECT_EQ(weigh(1e-6, {}).says, Says::unclear);
  EXPECT_EQ(weigh(INFINITY, {INFINITY, 1.0}).says, Says::unclear);
  EXPECT_EQ(weigh(0.0, {0.0, 0.0}).says, Says::rounding);
  EXPECT_EQ(weigh(1e-9, {0.0, 0.0}).says, Says::not_rounding);
  // Where a rounding may go the other way, and did in none of the runs.
  EXPECT_EQ(weigh(4e-3, {1e-7}, {1e-2}).says, Says::unclear);
  EXPECT_EQ(weigh(0.2, {1e-7}, {1e-2}).says, Says::not_rounding);
  EXPECT_EQ(weigh(0.2, {1e-7}, {INFINITY}).says, Says::unclear);
  for (const auto& e :
       {weigh(NAN, {1e-6}), weigh(1e-6, {}), weigh(INFINITY, {INFINITY}), weigh(1e-9, {0.0})})
    EXPECT_FALSE(e.text().empty());
}

/// The distances of the engine's f32 regime from exact, by id, of passes with the same ids.
std::map<std::string, double> drifts(const ExactCase& c, const std::string& f32_line) {
  const RunPlan plan = make_plan(parse_case(f32_line));
  ScalarModel model(plan, c.known().weights, c.known().prompt);
  std::map<std::string, double> found;
  bool same = true;
  while (same && model.next_pass()) {
    for (const auto& [key, made] : model.values()) {
      const std::string id = checkpoint_id(model.pass(), made.layer, made.role.name);
      if (!c.answer().checkpoints.contains(id) || made.input ||
          made.role.kind != Role::Kind::checkpoint || made.value->integer() ||
          made.value->layout.is_partial() || made.role.last)
        continue;
      const std::vector<float>& mine = made.value->whole();
      const std::vector<float>& exact = c.exact(id).data;
      double most = 0.0, squares = 0.0;
      for (std::size_t i = 0; i < exact.size() && mine.size() == exact.size(); ++i) {
        most =
            std::max(most, std::abs(static_cast<double>(mine[i]) - static_cast<double>(exact[i])));
        squares += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
      }
      found[id] = most / std::sqrt(squares / static_cast<double>(exact.size()));
    }
    const auto token = c.answer().tokens.find(model.pass() + ".token");
    if (token != c.answer().tokens.end()) same = model.sampled() == token->second.data;
  }
  return found;
}

/// Of each asked value, of these drifts.
std::vector<Evidence> evidence_of(const ExactCase& c, const std::vector<RequestedValue>& asked,
                                  Arithmetic arithmetic, const std::vector<double>& drifts) {
  const auto theirs = c.distances_of(asked, arithmetic);
  std::vector<std::vector<double>> by_chance(asked.size());
  arithmetic.by_chance = true;
  if (rounds_coarsely(arithmetic, c.weights().config()))
    by_chance = c.distances_of(asked, arithmetic);
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < asked.size(); ++i)
    evidence.push_back(weigh(drifts[i], theirs[i], by_chance[i]));
  return evidence;
}

/// How many of so many seeds' logits and outputs are said to be rounding; none may be said not to.
void expect_rounding(const std::string& keys, const Arithmetic& arithmetic, int seeds) {
  int rounding = 0, all = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const std::string line = "batch=2 prompt=3 gen=2 seed=" + std::to_string(seed) + " " + keys;
    const ExactCase c(line);
    std::vector<RequestedValue> asked;
    std::vector<double> own;
    for (const auto& [id, drift] :
         drifts(c, "torus=2x2x1 regime=f32 schedule=ring prefill=ws2d:heads decode=ws2d:heads " +
                       line))
      if (id.ends_with(".logits") || id.ends_with(".out")) {
        asked.push_back({id, &c.exact(id)});
        own.push_back(drift);
      }
    const std::vector<Evidence> evidence = evidence_of(c, asked, arithmetic, own);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const Evidence& e = evidence[i];
      ASSERT_NE(e.says, Says::not_rounding) << line << " " << asked[i].id << ": " << e.text();
      rounding += e.says == Says::rounding ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(all, 4 * seeds) << keys;
  EXPECT_GT(rounding, all * 9 / 10) << keys;
}

TEST(Evidence, OfRightRunsIsNeverThatTheyAreNotRounding) {
  const std::string model = "model=palm-tiny,layers=2," + kShape;
  expect_rounding(model, {NumberFormat::f32}, 50);
  expect_rounding(model + ",norm=layernorm,ffn=gelu,bias=all block=serial", {NumberFormat::f32},
                  50);
  expect_rounding(model + " act=bf16", {NumberFormat::bf16}, 50);
  expect_rounding(model + ",softmax=base2 act=bf16 weights=int8 block=serial", {NumberFormat::bf16},
                  50);
}

TEST(Evidence, OfAWireIsThatOfTheSameWire) {
  expect_rounding("model=palm-tiny,layers=2," + kShape + " wire=bf16", {.wire_roundings = 2}, 20);
}

/// The model's weights with a mistake in them.
Weights changed(const Weights& weights,
                const std::function<void(std::map<std::string, Tensor>&)>& to) {
  std::map<std::string, Tensor> tensors = weights.tensors();
  to(tensors);
  return {weights.config(), std::move(tensors), weights.stored_type()};
}

TEST(Evidence, OfWrongRunsIsThatTheyAreNotRounding) {
  struct Fault {
    const char* what;
    std::function<void(std::map<std::string, Tensor>&)> to;
  };
  const auto scale = [](Tensor& t, float by) {
    for (float& v : t.data) v *= by;
  };
  const Fault faults[] = {
      {"layer 0 is left out",
       [&](auto& w) { scale(w.at("layer0.wo"), 0), scale(w.at("layer0.w_out"), 0); }},
      {"layer 1 is left out",
       [&](auto& w) { scale(w.at("layer1.wo"), 0), scale(w.at("layer1.w_out"), 0); }},
      {"scores are not scaled",
       [&](auto& w) { scale(w.at("layer0.wq"), 2.828427F), scale(w.at("layer1.wq"), 2.828427F); }},
      {"logits are scaled twice", [&](auto& w) { scale(w.at("embed"), 0.2F); }},
      {"one head is 1 % off",
       [&](auto& w) {
         for (std::size_t i = 0; i < 8 * 32; ++i) w.at("layer1.wo").data[i] *= 1.01F;
       }},
      {"the first block of w_out is the second",
       [](auto& w) {
         Tensor& t = w.at("layer1.w_out");
         std::swap_ranges(t.data.begin(), t.data.begin() + 12 * 32, t.data.begin() + 12 * 32);
       }},
      {"the last block of w_gate's rows is the one before", [](auto& w) {
         Tensor& t = w.at("layer0.w_gate");
         std::swap_ranges(t.data.end() - 8 * 48, t.data.end(), t.data.end() - 16 * 48);
       }}};
  const std::string model = " model=palm-tiny,layers=2," + kShape;
  const std::string line = "batch=2 prompt=5 gen=2 seed=";
  for (const bool bf16 : {false, true})
    for (int seed = 1; seed <= 10; ++seed) {
      const ExactCase c(line + std::to_string(seed) + model + (bf16 ? " act=bf16" : ""));
      const Arithmetic arithmetic{bf16 ? NumberFormat::bf16 : NumberFormat::f32};
      const RequestedValue logits = c.last_logits();
      for (const Fault& fault : faults) {
        // One percent of one head of one layer is less than bf16 may hide.
        if (bf16 && std::string_view(fault.what).find('%') != std::string_view::npos) continue;
        const Weights wrong = changed(c.weights(), fault.to);
        const double drift = c.distances_of(logits, arithmetic, 1, 99, &wrong)[0];
        const Evidence e = evidence_of(c, {logits}, arithmetic, {drift})[0];
        EXPECT_EQ(e.says, Says::not_rounding) << fault.what << " " << seed << ": " << e.text();
      }
    }
}

}  // namespace
}  // namespace shardproof::rerun
