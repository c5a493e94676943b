// Logits and outputs alone: what rounding makes of a run is near, and a wrong run is unlikely; what
// no run could show is told beside it.
#include "golden/trace/verdict/alone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "golden/rerun/exact.h"
#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

using rerun::Evidence;
using Tensors = std::map<std::string, Tensor>;

const std::string kAlone =
    "torus=1x1x1 prefill=ws1d decode=ws1d batch=2 prompt=5 gen=3 seed=5 "
    "model=palm-tiny,layers=6,E=32,F=48,H=4,K=2,Q=8,V=24";

/// The values of a run, of which only those called so, each number changed: by its own size, and
/// by how large the value's are.
std::vector<Written> alone(std::vector<Written> values, const std::set<std::string>& names,
                           double relative, std::uint64_t seed) {
  std::erase_if(values, [&](const Written& w) { return !names.contains(last_word(w.name)); });
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0.0, relative);
  for (Written& w : values) {
    if (w.name.ends_with(".ids") || w.name.ends_with(".token")) continue;
    double squares = 0.0;
    for (const double v : w.numbers) squares += v * v;
    const double rms = std::sqrt(squares / static_cast<double>(w.numbers.size()));
    for (double& v : w.numbers) v = f32(v + noise(random) * rms);
  }
  return values;
}

/// A run with a mistake in its weights, over the ids of the right one.
std::vector<Written> wrong(const ExactRun& right, const std::function<void(Tensors&)>& mistake) {
  Tensors tensors = right.weights().tensors();
  mistake(tensors);
  const Weights weights(right.weights().config(), std::move(tensors),
                        right.weights().stored_type());
  std::map<std::string, IntTensor> ids;
  for (const auto& [id, tensor] : right.answer().inputs)
    if (id.ends_with(".ids")) ids[id.substr(0, id.size() - 4)] = tensor;
  const oracle::Answer answer =
      rerun::exact_of({weights, right.passes, ids, {}}, right.source_case.numerics, 1);
  std::vector<Written> values = right.values();
  for (Written& w : values)
    if (const auto found = answer.checkpoints.find(w.name); found != answer.checkpoints.end())
      w.numbers.assign(found->second.data.begin(), found->second.data.end());
  return values;
}

/// Weights that are all so many times as large.
auto times(const std::vector<const char*>& names, float by) {
  return [=](Tensors& w) {
    for (const char* name : names)
      for (float& v : w.at(name).data) v *= by;
  };
}

std::vector<const Row*> weighed(const Verdict& v) {
  std::vector<const Row*> rows;
  for (const Row& row : v.rows)
    if (row.evidence) rows.push_back(&row);
  return rows;
}

TEST(Alone, RightLogitsAreRounding) {
  const ExactRun run(kAlone);
  for (const double noise : {0.0, 5e-8}) {
    const Verdict v =
        run.judged(run.trace(alone(run.values(), {"ids", "logits", "token"}, noise, 1), "f32"));
    const auto rows = weighed(v);
    EXPECT_EQ(rows.size(), 3U);
    for (const Row* const row : rows) {
      EXPECT_EQ(row->fit, Fit::near) << row->title << " " << row->evidence->text();
      EXPECT_EQ(row->evidence->says, Evidence::Says::rounding) << row->evidence->text();
      EXPECT_EQ(row->evidence->runs, 32);
    }
    EXPECT_EQ(v.exit_code(), 0);
  }
}

TEST(Alone, WrongLogitsAreUnlikelyAndNeverDifferent) {
  const ExactRun run(kAlone);
  const auto exchange = [](Tensors& w) {
    auto& wo = w.at("layer1.wo").data;
    std::swap_ranges(wo.end() - 8 * 32, wo.end(), wo.end() - 16 * 32);
  };
  for (const std::function<void(Tensors&)>& mistake : std::vector<std::function<void(Tensors&)>>{
           times({"layer0.wo", "layer0.w_out"}, 0), times({"layer1.wq"}, 2.828427F), exchange}) {
    const Verdict v = run.judged(alone(wrong(run, mistake), {"ids", "logits"}, 0.0, 1), "f32");
    EXPECT_EQ(v.count(Fit::different), 0);
    EXPECT_EQ(v.count(Fit::unlikely), 3);
    EXPECT_EQ(v.exit_code(), 1);
    ASSERT_TRUE(v.first);
    const Row& row = v.rows[*v.first];
    EXPECT_EQ(row.title, "prefill.c0.logits");
    ASSERT_TRUE(row.first && row.worst);
    EXPECT_NE(row.worst->actual, row.worst->low);
    EXPECT_TRUE(row.evidence->text().find("not rounding") != std::string::npos);
  }
}

/// Runs made again have the usual functions, adders and factors: of others they are no evidence.
TEST(Alone, OfOtherFunctionsAndAddersIsUnclear) {
  const ExactRun run(kAlone);
  const auto mistake = times({"layer1.wq"}, 2.828427F);
  for (const auto& [key, value] : {std::pair{"ulp", "exp:5"},
                                   {"ulp", "erf:9"},
                                   {"ulp", "tanh:9"},
                                   {"ulp", "sigmoid:9"},
                                   {"ulp", "rsqrt:3"},
                                   {"adding", "h100"},
                                   {"folded", "1"},
                                   {"ulp", "exp:3"}}) {
    dump::Dump d = run.trace(alone(wrong(run, mistake), {"ids", "logits"}, 0.0, 1), "f32");
    d.attributes[key] = value;
    const Verdict v = run.judged(d);
    EXPECT_EQ(v.count(Fit::unlikely) == 0, std::string(value) != "exp:3") << key << "=" << value;
    EXPECT_EQ(v.exit_code(), 1) << key;
    for (const Row* const row : weighed(v))
      if (row->evidence->says == Evidence::Says::unclear) {
        EXPECT_EQ(row->fit, Fit::not_judged);
      }
  }
}

/// Between the edges nothing is said, and the run is not right by that.
TEST(Alone, BetweenTheEdgesIsNotJudged) {
  const ExactRun run(kAlone);
  const Verdict right = run.judged(alone(run.values(), {"ids", "logits"}, 0.0, 1), "f32");
  const Row& row = *weighed(right).back();
  for (const bool beyond : {false, true}) {
    std::vector<Written> values = alone(run.values(), {"ids", "logits"}, 0.0, 1);
    {
      Written& w = named(values, row.name);
      double most = 0.0, squares = 0.0;
      for (const double v : w.numbers) most = std::max(most, std::abs(v)), squares += v * v;
      const double drift =
          beyond ? 4 * row.evidence->limit() : 0.5 * (row.evidence->most + row.evidence->limit());
      const double by = drift * std::sqrt(squares / static_cast<double>(w.numbers.size())) / most;
      for (double& v : w.numbers) v = f32(v * (1 + by));
    }
    const Verdict v = run.judged(values, "f32");
    EXPECT_EQ(row_of(v, row.name).fit, beyond ? Fit::unlikely : Fit::not_judged);
    EXPECT_EQ(v.exit_code(), 1);
  }
}

/// Its operands are not there, and a layer's outputs are.
TEST(Alone, OutputsOfBf16WithAnAttentionFaultAreNotRight) {
  const ExactRun run(kAlone + " act=bf16 weights=bf16");
  const std::set<std::string> coarse{"ids", "out", "logits", "token"};
  const auto judged = [&](const std::vector<Written>& values) {
    return run.judged(run.trace(alone(values, coarse, 0.0, 1), "bf16"));
  };
  const Verdict right = judged(run.values());
  EXPECT_EQ(right.count(Fit::unlikely) + right.count(Fit::different), 0);
  EXPECT_EQ(right.exit_code(), 0);
  const Verdict faulty = judged(wrong(run, times({"layer0.wq", "layer1.wq"}, 2.828427F)));
  EXPECT_EQ(faulty.exit_code(), 1);
  const Verdict noisy = run.judged(run.trace(alone(run.values(), coarse, 0.5, 1), "bf16"));
  EXPECT_EQ(noisy.exit_code(), 1);
}

TEST(Alone, LastPositionsAndOtherIdsAreWeighedToo) {
  const ExactRun run(kAlone + " lengths=5,3");
  std::vector<Written> values = alone(run.values(), {"ids", "logits"}, 0.0, 1);
  // Other ids than follow: the logits of decode.1 are those of the old ones, and wrong.
  named(values, "decode.1.ids").numbers = {1, 2};
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(row_of(v, "decode.1.logits").fit, Fit::unlikely);
  EXPECT_EQ(row_of(v, "prefill.c0.logits").fit, Fit::near);
}

TEST(Alone, ANaNIsNoRounding) {
  const ExactRun run(kAlone);
  for (const bool first : {true, false}) {
    std::vector<Written> values = alone(run.values(), {"ids", "logits"}, 0.0, 1);
    std::vector<double>& numbers = named(values, "decode.1.logits").numbers;
    (first ? numbers.front() : numbers.back()) = NAN;
    const Verdict v = run.judged(values, "f32");
    EXPECT_EQ(v.count(Fit::unlikely) + v.count(Fit::different), 1);
    EXPECT_EQ(v.exit_code(), 1);
  }
}

TEST(Alone, WhatIsWellBoundedIsNotWeighed) {
  const ExactRun run(kAlone);
  const Verdict v = run.judged(run.trace(run.values(), "f32"));
  EXPECT_TRUE(weighed(v).empty());
  EXPECT_FALSE(v.not_shown.empty());
}

}  // namespace
}  // namespace shardproof::dump
