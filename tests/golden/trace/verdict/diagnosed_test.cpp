// What compare says of a whole trace's first divergence.
#include <gtest/gtest.h>

#include <set>

#include "golden/trace/verdict/wrong_value.h"
#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

class Diagnosed : public testing::Test {
 protected:
  explicit Diagnosed(const std::string& line = kLine) : run(line), values(run.values()) {}

  Written& at(const std::string& name) { return named(values, name); }
  /// Changes each number of every value of that name, of a pass that begins so.
  template <class To>
  void change(const std::string& pass, const std::string& name, To&& to) {
    for (Written& w : values) {
      if (!w.name.starts_with(pass) || !w.name.ends_with("." + name)) continue;
      const std::vector<double> was = w.numbers;
      for (std::size_t i = 0; i < was.size(); ++i) w.numbers[i] = to(w, was, i);
    }
  }
  std::vector<diagnosis::Hypothesis> said(const dump::Dump& d, const std::string& first) {
    ExactRun::Read read(run, d);
    const Verdict verdict = judge(read.values, read.claim, read.reference);
    EXPECT_TRUE(verdict.first) << first;
    if (!verdict.first) return {};
    EXPECT_EQ(verdict.rows[*verdict.first].title, first);
    return diagnosed(verdict, read.values, read.claim, read.reference);
  }
  std::vector<diagnosis::Hypothesis> said(const std::string& first) {
    return said(run.trace(values, "f32"), first);
  }
  static std::string text(const std::vector<diagnosis::Hypothesis>& all) {
    std::string lines;
    for (const diagnosis::Hypothesis& h : all)
      lines += h.fault + ": " + h.detail + (h.explains ? " explains\n" : " near\n");
    return lines;
  }

  ExactRun run;
  std::vector<Written> values;
};

TEST_F(Diagnosed, ZerosInAllLayersAreNeverWritten) {
  change("", "hidden", [](const Written&, const std::vector<double>&, std::size_t) { return 0.0; });
  const auto all = said("prefill.c0.layer0.hidden");
  ASSERT_EQ(all.size(), 1U) << text(all);
  EXPECT_EQ(all[0].fault + ": " + all[0].detail, "never written: zeros");
}

TEST_F(Diagnosed, WeightsThatTheDumpShows) {
  dump::Dump d = run.trace(values, "f32");
  run.add(d, written("layer1.w_out", "FE", *run.weights().at("layer0.w_out")),
          Mesh::parse("x y z", run.source_case.torus), nullptr);
  const auto all = said(d, "layer1.w_out");
  ASSERT_EQ(all.size(), 1U) << text(all);
  EXPECT_EQ(all[0].fault + ": " + all[0].detail,
            "another layer's weight: layer0.w_out in place of layer1.w_out");
}

/// What decode.1 alone would be, its next step is not.
TEST_F(Diagnosed, LaterPassesAreAsked) {
  const Tensor &c = *run.weights().at("rope_cos"), &s = *run.weights().at("rope_sin");
  // Of palm-tiny's halves, two pairs: five positions further, once, in decode.1 and in decode.2.
  const auto turn = [&](const Written& w, const std::vector<double>&, std::size_t i) {
    const std::vector<double>& x = at(w.name.substr(0, w.name.size() - 4)).numbers;
    const std::size_t row = w.name.starts_with("decode.1") ? 10 : 11, j = i % 2;
    const std::size_t pair = i - i % 4 + j;
    const double cos = c.data[row * 2 + j], sin = s.data[row * 2 + j];
    return f32(i % 4 < 2 ? x[pair] * cos - x[pair + 2] * sin : x[pair + 2] * cos + x[pair] * sin);
  };
  for (const char* name : {"q_rot", "k_rot"}) change("decode.", name, turn);
  const auto all = said("decode.1.layer0.q_rot");
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].detail, "position +5") << text(all);
  for (const diagnosis::Hypothesis& h : all)
    EXPECT_EQ(h.detail.find("twice"), std::string::npos) << text(all);
}

TEST_F(Diagnosed, OneLayerAloneIsSaid) {
  const auto half = [](const Written& w, const std::vector<double>& x, std::size_t i) {
    return w.name.find("layer0") == std::string::npos ? x[i] / 2 : x[i];
  };
  change("decode.1", "score", half);
  const auto all = said("decode.1.layer1.score");
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].fault + ": " + all[0].detail,
            "scale doubled: 1/sqrt(Q); in decode.1.layer1 alone")
      << text(all);
}

/// Whatever masked slots hold, if the trace says that it means nothing.
TEST_F(Diagnosed, MaskedSlotsAreLeftOpen) {
  const std::vector<Written> right = values;
  const std::size_t order[] = {1, 0, 2, 4, 3, 5};
  for (const double masked : {0.0, 0.37, -1e30, -HUGE_VAL})
    for (const std::string fault : {"scale doubled", "head order"}) {
      values = right;
      change("prefill", "score",
             [&](const Written& w, const std::vector<double>& x, std::size_t i) {
               const auto M = static_cast<std::size_t>(w.shape[3]),
                          L = static_cast<std::size_t>(w.shape[1]);
               const std::size_t l = i / M / 6 % L, h = i / M % 6;
               if (i % M > M - L + l) return masked;
               return fault == "head order" ? x[i - h * M + order[h] * M] : x[i] / 2;
             });
      dump::Dump d = run.trace(values, "f32");
      d.attributes["masked"] = "any";
      const auto all = said(d, "prefill.c0.layer0.score");
      ASSERT_FALSE(all.empty());
      EXPECT_TRUE(all[0].explains && all[0].fault == fault) << masked << "\n" << text(all);
    }
}

TEST_F(Diagnosed, ADealtCacheIsNoStaleSlot) {
  const std::string id = "decode.1.layer0.k_cache";
  const Written right = at(id);
  ASSERT_EQ(right.shape[1], 6);
  Written dealt = right;
  const std::size_t width = right.numbers.size() / 36;
  for (std::size_t i = 0; i < dealt.numbers.size(); ++i) {
    const std::size_t m = i / width % 6;  // of 3 chips, each with two
    dealt.numbers[i] = right.numbers[i - m * width + (m % 2 * 3 + m / 2) * width];
  }
  dump::Dump d = run.trace(values, "f32");
  dump::Value value;
  value.attributes["layout"] = "BM_xKQ";
  run.put(value, dealt, Layout::parse("BM_xKQ"), Mesh::parse("x y z", run.source_case.torus), 1);
  d.values[id] = value;
  const auto all = said(d, id);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].detail, "M is dealt round-robin over x, 1 at a time, not in blocks");
  for (const diagnosis::Hypothesis& h : all) EXPECT_NE(h.fault, "stale slot") << text(all);
}

}  // namespace
}  // namespace shardproof::dump
