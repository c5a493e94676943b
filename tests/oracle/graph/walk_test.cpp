// The walk on texts small enough to be followed by eye, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "oracle/graph/run.h"
#include "tests/oracle/find_in.h"
#include "weights/base/error.h"

namespace shardproof::oracle {
namespace {

using Tensors = std::map<std::string, Tensor, std::less<>>;

Tensor tensor(Shape shape, std::vector<float> data) {
  Tensor t(std::move(shape));
  t.data = std::move(data);
  return t;
}

/// A model of one layer and one channel whose stream holds the token's number: 0, 1, 2, ...
struct OneLayer {
  std::string embedding = "", layer = "out : BLE = in\n";
  std::string dims = "", small = "";

  ModelText text() const {
    return parse_model_text("model small\ndim E one\ndim V words\n" + dims + "small E=1, V=8" +
                            small + "\nembedding\nweight table : VE\n" +
                            "embed : BLE = gather(table, ids, V)\n" + embedding + "layer\n" +
                            layer + "head\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n");
  }

  graph::Answer run(const std::vector<std::int32_t>& ids, std::int64_t rows, const Passes& passes,
                    Tensors weights = {}, NumberFormat act = NumberFormat::f32) const {
    weights.try_emplace("table", tensor({8, 1}, {0, 1, 2, 3, 4, 5, 6, 7}));
    const ModelText model = text();
    const TextSizes sizes = sizes_of(model);
    IntTensor prompt({rows, static_cast<std::int64_t>(ids.size()) / rows});
    prompt.data = ids;
    return graph::run(
        find_in(weights),
        {.text = model, .sizes = sizes, .act = act, .prompt = prompt, .passes = passes});
  }

  /// A value of the only pass over these ids.
  std::vector<float> value(const std::string& name, const std::vector<std::int32_t>& ids,
                           Tensors weights = {}, NumberFormat act = NumberFormat::f32) const {
    const auto answer = run(ids, 1, Passes(1, static_cast<std::int64_t>(ids.size()), 0, 1),
                            std::move(weights), act);
    const auto at = answer.values.find("prefill.c0.layer0." + name);
    return at == answer.values.end() ? answer.values.at("prefill.c0." + name).data
                                     : at->second.data;
  }
};

using Floats = std::vector<float>;

TEST(Walk, PointwiseOps) {
  const auto of = [](const std::string& expression, std::vector<std::int32_t> ids = {0, 1, 3}) {
    return OneLayer{.layer = "y : BLE = " + expression + "\nout : BLE = in\n"}.value("y", ids);
  };
  EXPECT_EQ(of("sub(in, 2)"), (Floats{-2, -1, 1}));
  EXPECT_EQ(of("mul(in, add(in, in))"), (Floats{0, 2, 18}));
  EXPECT_EQ(of("div(in, 2)"), (Floats{0, 0.5F, 1.5F}));
  EXPECT_EQ(of("larger(in, 1)"), (Floats{1, 1, 3}));
  EXPECT_EQ(of("relu(sub(in, 1))"), (Floats{0, 0, 2}));
  EXPECT_EQ(of("abs(sub(in, 1))"), (Floats{1, 0, 2}));
  EXPECT_EQ(of("floor(div(in, 2))"), (Floats{0, 0, 1}));
  EXPECT_EQ(of("round(div(in, 2))"), (Floats{0, 0, 2}));
  EXPECT_EQ(of("round(add(in, 0.5))", {0, 1, 2}), (Floats{0, 2, 2}));
  EXPECT_EQ(of("clamp(in, 1, 2)"), (Floats{1, 1, 2}));
  EXPECT_EQ(of("within(in, 1, 2)"), (Floats{0, 1, 0}));
  EXPECT_EQ(of("within(in, -inf, 0)"), (Floats{1, 0, 0}));
  EXPECT_EQ(of("exp2(in)"), (Floats{1, 2, 8}));
  EXPECT_EQ(of("sqrt(mul(in, in))"), (Floats{0, 1, 3}));
  EXPECT_EQ(of("exp(log(add(in, 1)))")[0], 1.0F);
  EXPECT_EQ(of("tanh(in)")[0], 0.0F);
  EXPECT_EQ(of("sigmoid(in)")[0], 0.5F);
  EXPECT_FLOAT_EQ(of("silu(in)")[2], 2.8577223F);
  EXPECT_FLOAT_EQ(of("gelu(in)")[2], 2.9959502F);
  EXPECT_FLOAT_EQ(of("gelu_tanh(in)")[2], 2.9963627F);
  // 257 has nine bits; bf16 has eight.
  EXPECT_EQ(of("bf16(add(in, 256))"), (Floats{256, 256, 260}));
  EXPECT_EQ(of("store(add(in, 256))"), (Floats{256, 257, 259}));
}

TEST(Walk, StoreRoundsToTheTypeOfActivations) {
  const OneLayer model{.layer = "y : BLE = store(add(in, 256))\nout : BLE = in\n"};
  EXPECT_EQ(model.value("y", {0, 1, 3}, {}, NumberFormat::bf16), (Floats{256, 256, 260}));
}

TEST(Walk, ALineIsOneRounding) {
  // 2^24 + 1 is no f32: with a name of its own the 1 is lost, nested it is not.
  const OneLayer nested{.layer = "y : BLE = sub(add(in, 16777216), 16777216)\nout : BLE = in\n"};
  const OneLayer named{.layer =
                           "x : BLE = add(in, 16777216)\ny : BLE = sub(x, 16777216)\n"
                           "out : BLE = in\n"};
  EXPECT_EQ(nested.value("y", {1}), (Floats{1}));
  EXPECT_EQ(named.value("y", {1}), (Floats{0}));
}

TEST(Walk, SumsAreExact) {
  const OneLayer sums{.layer =
                          "weight w : X\n"
                          "spread : BLEX = add(mul(in, 0), w)\n"
                          "y : BLE = sum(spread, X)\n"
                          "z : BLE = mean(spread, X)\n"
                          "m : BLE = max(spread, X)\n"
                          "s : BLE = sum(spread, X, stored)\n"
                          "c : BLE = einsum(BLEX,X->BLE; spread, w)\n"
                          "out : BLE = in\n",
                      .dims = "dim X terms\n",
                      .small = ", X=4"};
  const Tensors w{{"layer0.w", tensor({4}, {3e10F, 1.0F, -3e10F, 3.0F})}};
  EXPECT_EQ(sums.value("y", {1}, w), (Floats{4}));
  EXPECT_EQ(sums.value("z", {1}, w), (Floats{1}));
  EXPECT_EQ(sums.value("m", {1}, w), (Floats{3e10F}));
  EXPECT_EQ(sums.value("s", {1}, w), (Floats{3}));  // the 1 is lost beside 3e10
  const double big = 3e10F;
  EXPECT_EQ(sums.value("c", {1}, w), (Floats{static_cast<float>(2 * big * big)}));
}

TEST(Walk, WhatDoesNotExistIsZeroAndNotCounted) {
  const OneLayer model{
      .embedding = "far : BLM = sub(slot, pos)\nsee : BLM = within(far, -1, 0)\n",
      .layer =
          "cache : BME = append(in, pos)\n"
          "pair : BLME where see = einsum(BLE,BME->BLME; add(mul(in, 0), 1), cache)\n"
          "most : BLE = max(sub(pair, 9), M)\n"
          "mean : BLE = mean(pair, M)\n"
          "plus : BLME = add(pair, 1)\n"
          "best : BLME = top(pair, M, 1)\n"
          "out : BLE = in\n"};
  const std::vector<std::int32_t> ids{5, 3, 4};
  EXPECT_EQ(model.value("pair", ids), (Floats{5, 0, 0, 5, 3, 0, 0, 3, 4}));
  EXPECT_EQ(model.value("most", ids), (Floats{-4, -4, -5}));
  EXPECT_EQ(model.value("mean", ids), (Floats{5, 4, 3.5F}));
  EXPECT_EQ(model.value("plus", ids), (Floats{6, 0, 0, 6, 4, 0, 0, 4, 5}));
  EXPECT_EQ(model.value("best", ids), (Floats{1, 0, 0, 1, 0, 0, 0, 0, 1}));
}

TEST(Walk, TheStreamExistsEverywhere) {
  const OneLayer model{.layer =
                           "far : BLE = within(in, 2, inf)\n"
                           "most : BL = max(sub(in, 9), E)\n"
                           "mean : BL = mean(in, E)\n"
                           "out : BLE where far = add(in, 1)\n",
                       .small = ", layers=2"};
  const auto values = model.run({1, 5}, 1, Passes(1, 2, 0, 1)).values;
  EXPECT_EQ(values.at("prefill.c0.layer0.most").data, (Floats{-8, -4}));
  EXPECT_EQ(values.at("prefill.c0.layer1.most").data, (Floats{-9, -3}));
  EXPECT_EQ(values.at("prefill.c0.layer1.mean").data, (Floats{0, 6}));
}

TEST(Walk, TheLargestOfZerosIsPositiveIfAnyIs) {
  const OneLayer model{.layer =
                           "weight w : X\nspread : BLEX = mul(in, w)\n"
                           "y : BLE = max(spread, X)\nz : BLEX = larger(spread, 0)\n"
                           "out : BLE = in\n",
                       .dims = "dim X terms\n",
                       .small = ", X=2"};
  const auto is_negative = [&](const char* name, Floats w) {
    return std::signbit(model.value(name, {1}, {{"layer0.w", tensor({2}, std::move(w))}})[0]);
  };
  EXPECT_FALSE(is_negative("y", {-0.0F, 0.0F}));
  EXPECT_FALSE(is_negative("y", {0.0F, -0.0F}));
  EXPECT_TRUE(is_negative("y", {-0.0F, -0.0F}));
  EXPECT_FALSE(is_negative("z", {-0.0F, -0.0F}));
}

TEST(Walk, TopTakesTheFirstOfEquals) {
  const OneLayer model{.layer =
                           "weight w : X\nspread : BLEX = add(mul(in, 0), w)\n"
                           "y : BLEX = top(spread, X, 2)\nout : BLE = in\n",
                       .dims = "dim X experts\n",
                       .small = ", X=4"};
  EXPECT_EQ(model.value("y", {1}, {{"layer0.w", tensor({4}, {1, 2, 1, 1})}}), (Floats{1, 1, 0, 0}));
  EXPECT_EQ(model.value("y", {1}, {{"layer0.w", tensor({4}, {3, 2, 3, 3})}}), (Floats{1, 0, 1, 0}));
}

TEST(Walk, TurnsPairsOfChannels) {
  const auto turned = [](const std::string& how) {
    const OneLayer model{.layer =
                             "weight w : X\nspread : BLEX = add(mul(in, 0), w)\n"
                             "y : BLEX = turn(spread, X, " +
                             how + ")\nout : BLE = in\n",
                         .dims = "dim X channels\n",
                         .small = ", X=5"};
    return model.value("y", {1}, {{"layer0.w", tensor({5}, {1, 2, 3, 4, 5})}});
  };
  EXPECT_EQ(turned("half 4"), (Floats{-3, -4, 1, 2, 0}));
  EXPECT_EQ(turned("interleaved 4"), (Floats{-2, 1, -4, 3, 0}));
  EXPECT_EQ(turned("half 2"), (Floats{-2, 1, 0, 0, 0}));
}

TEST(Walk, AGatheredZeroIsPositive) {
  const OneLayer model{.embedding = "row : BLE = gather(table, ids, V)\n"};
  const Tensor table = tensor({8, 1}, {-0.0F, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_FALSE(std::signbit(model.value("row", {0, 1}, {{"table", table}})[0]));
}

TEST(Walk, ViewsSplitAndMerge) {
  const OneLayer model{.layer =
                           "weight w : X\nspread : BLEX = add(mul(in, 0), w)\n"
                           "y : BLEYZ = split_dim(spread, X->YZ)\n"
                           "z : BLEZ = sum(y, Y)\n"
                           "m : BLEX = merge_dim(y, YZ->X)\nout : BLE = in\n",
                       .dims = "dim X all\ndim Y blocks\ndim Z of a block\n",
                       .small = ", X=6, Y=2, Z=3"};
  const Tensors w{{"layer0.w", tensor({6}, {1, 2, 3, 10, 20, 30})}};
  EXPECT_EQ(model.value("z", {1}, w), (Floats{11, 22, 33}));
  EXPECT_EQ(model.value("m", {1}, w), w.at("layer0.w").data);
}

/// s(p) = s(p - 1)/2 + in, one row in one pass and in passes of one and two positions.
TEST(Walk, StatesGoOnFromPassToPass) {
  const OneLayer model{.layer =
                           "half : BLE = mul(before(state), 0.5)\nstate : BLE = add(half, in)\n"
                           "last : BLE = before(in2, one)\nin2 : BLE = mul(in, 2)\nweight one : E\n"
                           "out : BLE = in\n"};
  const Tensors w{{"layer0.one", tensor({1}, {9})}};
  const std::vector<std::int32_t> ids{4, 2, 6, 1};
  EXPECT_EQ(model.value("state", ids, w), (Floats{4, 4, 8, 5}));
  EXPECT_EQ(model.value("last", ids, w), (Floats{9, 8, 4, 12}));
  for (const std::int64_t chunk : {1, 2, 3}) {
    const auto answer = model.run(ids, 1, Passes(1, 4, chunk, 1), w);
    for (const char* name : {"state", "last"}) {
      Floats all;
      for (std::int64_t c = 0; c * chunk < 4; ++c) {
        const auto& part =
            answer.values.at("prefill.c" + std::to_string(c) + ".layer0." + name).data;
        all.insert(all.end(), part.begin(), part.end());
      }
      EXPECT_EQ(all, model.value(name, ids, w)) << name << " in chunks of " << chunk;
    }
  }
}

TEST(Walk, RowsHaveStatesOfTheirOwn) {
  const OneLayer model{.layer = "state : BLE = add(mul(before(state), 0.5), in)\nout : BLE = in\n"};
  const auto answer = model.run({4, 2, 6, 2, 4, 0}, 2, Passes({3, 2}, 3, 1, 1));
  EXPECT_EQ(answer.values.at("prefill.c0.layer0.state").data, (Floats{4, 2}));
  EXPECT_EQ(answer.values.at("prefill.c1.layer0.state").data, (Floats{4, 5}));
  EXPECT_EQ(answer.values.at("prefill.c2.layer0.state").data, (Floats{8, 0}));
}

TEST(Walk, CachesKeepARowsSlotsWhereItHasNoToken) {
  const OneLayer model{.layer = "cache : BME = append(in, pos)\nout : BLE = in\n"};
  const auto answer = model.run({4, 2, 6, 2, 0, 0}, 2, Passes({3, 1}, 3, 1, 1));
  EXPECT_EQ(answer.values.at("prefill.c1.layer0.cache").data, (Floats{4, 2, 2, 0}));
  EXPECT_EQ(answer.values.at("prefill.c2.layer0.cache").data, (Floats{4, 2, 6, 2, 0, 0}));
}

TEST(Walk, LinesOfAFlagRunInItsLayers) {
  const OneLayer model{.layer =
                           "y : BLE = add(in, 1) if first\ny : BLE = add(in, 10) unless first\n"
                           "out : BLE = y\n",
                       .dims = "flag first\n",
                       .small = ", layers=3, first=101"};
  const auto answer = model.run({1}, 1, Passes(1, 1, 0, 1));
  EXPECT_EQ(answer.values.at("prefill.c0.layer0.out").data, (Floats{2}));
  EXPECT_EQ(answer.values.at("prefill.c0.layer1.out").data, (Floats{12}));
  EXPECT_EQ(answer.values.at("prefill.c0.layer2.out").data, (Floats{13}));
  EXPECT_EQ(answer.tokens.at("prefill.c0.token").data, (std::vector<std::int32_t>{7}));
}

std::string label_or_none(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.label();
  }
  return "none";
}

TEST(Walk, RefusesWhatHasNoValue) {
  const OneLayer plain{};
  EXPECT_EQ(label_or_none([&] { plain.value("out", {1}); }), "none");
  // oracle_graph: a row beyond the table, the maximum of nothing.
  const OneLayer beyond{.layer = "out : BLE = gather(table, add(ids, 1), V)\n"};
  EXPECT_EQ(label_or_none([&] { beyond.value("out", {6}); }), "none");
  EXPECT_EQ(label_or_none([&] { beyond.value("out", {7}); }), "oracle_graph");
  const OneLayer nothing{.embedding = "far : BLM = sub(slot, pos)\nsee : BLM = within(far, 1, 2)\n",
                         .layer =
                             "cache : BME = append(in, pos)\nx : BLME where see = add(in, cache)\n"
                             "out : BLE = max(x, M)\n"};
  EXPECT_EQ(label_or_none([&] { nothing.value("out", {1}); }), "oracle_graph");
  const OneLayer infinite{.layer = "out : BLE = div(in, 0)\n"};
  EXPECT_EQ(label_or_none([&] { infinite.value("out", {1}); }), "oracle_finite");
  const OneLayer weighed{.layer = "weight w : E\nout : BLE = mul(in, w)\n"};
  EXPECT_EQ(label_or_none([&] { weighed.value("out", {1}); }), "weights_name");
  EXPECT_EQ(label_or_none([&] {
              weighed.value("out", {1}, {{"layer0.w", tensor({2}, {1, 1})}});
            }),
            "weights_shape");
}

}  // namespace
}  // namespace shardproof::oracle
