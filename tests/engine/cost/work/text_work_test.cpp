// The work of a model's text, counted from its own programs, against that of its keys.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>

#include "engine/cost/graph/graph.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/work/bounds.h"
#include "engine/cost/work/work.h"
#include "engine/layouts/table.h"
#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {
namespace {

ModelConfig text_model_of(const std::string& text, const TextKeys& keys = {}) {
  return model_config(std::make_shared<const TextModel>(parse_model_text(text), keys, "m.model"));
}
ModelConfig text_of_keys(const ModelConfig& model) {
  return text_model_of(print_model_text(graph_of(model)->text()));
}

/// The members of both that differ: "sent matmul_flops".
std::string difference(const PartWork& a, const PartWork& b, const Torus& torus) {
  std::string differ;
  const auto compare = [&](const char* name, double of_a, double of_b) {
    if (of_a != of_b) differ += std::string(differ.empty() ? "" : " ") + name;
  };
  compare("attention_flops", a.attention_flops, b.attention_flops);
  compare("needed_flops", a.needed_flops, b.needed_flops);
  compare("weight_reads", a.weight_reads, b.weight_reads);
  compare("cache_bytes", a.cache_bytes, b.cache_bytes);
  compare("cache_reads", a.cache_reads, b.cache_reads);
  compare("elements", a.sum(&Traffic::elements), b.sum(&Traffic::elements));
  compare("sent", a.sent_bytes(), b.sent_bytes());
  for (const char axis : {'x', 'y', 'z'}) {
    if (torus.size(Axes::parse(std::string(1, axis))) == 1) continue;
    const auto over = [&](const PartWork& work) {
      double sent = 0.0;
      for (const Traffic& t : work.traffic)
        if (t.group > 1 && t.axes.has(*Axes::parse(std::string(1, axis)).begin()))
          sent += t.sent_bytes;
      return sent;
    };
    compare(axis == 'x' ? "over x" : axis == 'y' ? "over y" : "over z", over(a), over(b));
  }
  return differ;
}

/// Tables that a text of keys lowers to the very products and collectives of its keys, where the
/// chips that share heads divide those of keys and values, or there is one: the others have lines
/// that texts take otherwise, or refuse (docs/cost.md, "Work of a pass").
constexpr const char* kSame[] = {"ws1d:heads",
                                 "ws1d:batch",
                                 "ws1d:batch-x",
                                 "ws1d:batch-yx",
                                 "ws2d:heads",
                                 "ws2d:batch",
                                 "ws2d:batch-x",
                                 "ws2d:batch-yx",
                                 "ws2d:bfirst-x",
                                 "ws2d:bfirst-xyz",
                                 "ws2d:heads-zy",
                                 "ws2d:norm-first",
                                 "wg-x:natural",
                                 "wg-xy:natural",
                                 "wg-xyz:natural",
                                 "wg-x:batch",
                                 "wg-xy:batch",
                                 "wg-xyz:batch",
                                 "dp",
                                 "fsdp",
                                 "dp-z:1d",
                                 "dp-z:2d"};

RC_GTEST_PROP(TextWork, OfKeysIsThatOfTheirPrograms, ()) {
  ModelConfig model = draw_model(1);
  const Torus torus =
      Torus::parse(*rc::gen::element<std::string>("1x1x1", "2x2x2", "4x2x3", "2x1x4", "1x3x1"));
  const std::int64_t n = torus.chips();
  model.E = n * 4;
  model.F = n * *rc::gen::inRange<std::int64_t>(1, 4);
  model.V = n * *rc::gen::inRange<std::int64_t>(1, 4);
  model.H = n * *rc::gen::inRange<std::int64_t>(1, 3);
  model.K = *rc::gen::arbitrary<bool>() ? 1 : model.H;
  model.positions = 64;
  model.logit_scale = usual_logit_scale(model);
  const Strategy strategy = Strategy::parse(
      *rc::gen::elementOf(std::vector<std::string>(std::begin(kSame), std::end(kSame))));
  const bool decode = *rc::gen::arbitrary<bool>();
  const Pass pass{decode ? Phase::decode : Phase::prefill, n * *rc::gen::inRange(1, 3),
                  decode ? 1 : *rc::gen::inRange(1, 5), *rc::gen::inRange(0, 6)};
  Numerics numerics = released_numerics(*rc::gen::element(NumberFormat::bf16, NumberFormat::f32));
  numerics.act = *rc::gen::element(NumberFormat::bf16, NumberFormat::f32);
  const WorkFormulas of_keys(model, numerics, torus, strategy, pass);
  const WorkFormulas of_text(text_of_keys(model), numerics, torus, strategy, pass);
  const Work keys = of_keys.at(pass), text = of_text.at(pass);
  RC_ASSERT(of_text.caches().size() == of_keys.caches().size());
  for (std::size_t i = 0; i < of_keys.caches().size(); ++i) {
    // Of axes of one chip either may name any.
    const Layout &a = of_text.caches()[i].layout, &b = of_keys.caches()[i].layout;
    RC_ASSERT(a.rank() == b.rank());
    for (std::size_t d = 0; d < a.rank(); ++d)
      RC_ASSERT(torus.size(a.dims()[d].axes) == torus.size(b.dims()[d].axes));
    RC_ASSERT(of_text.caches()[i].elements == of_keys.caches()[i].elements);
  }
  RC_ASSERT(text.layers == keys.layers);
  RC_ASSERT(text.others.empty());
  const std::string about =
      print_model(model) + " " + torus.to_string() + " " + strategy.to_string() + ": ";
  const std::string of_layer = difference(text.layer, keys.layer, torus),
                    of_ends = difference(text.ends, keys.ends, torus);
  if (!of_layer.empty() || !of_ends.empty()) RC_FAIL(about + of_layer + "; ends " + of_ends);
}

/// On one chip all weights are those of keys, and a text's live values no fewer than its outputs.
RC_GTEST_PROP(TextWork, OfOneChipHoldsTheWeightsOfKeys, ()) {
  const ModelConfig model = draw_model(12);
  const Pass pass{Phase::decode, *rc::gen::inRange(1, 4), 1, *rc::gen::inRange(0, 6)};
  const Numerics numerics =
      released_numerics(*rc::gen::element(NumberFormat::bf16, NumberFormat::int8));
  const Strategy strategy = Strategy::parse("ws2d:batch");
  const Torus one = Torus::parse("1x1x1");
  const Work keys = work_of(model, numerics, one, strategy, pass);
  const WorkFormulas formulas(text_of_keys(model), numerics, one, strategy, pass);
  const Work text = formulas.at(pass);
  RC_ASSERT(text.total(&PartWork::weight_bytes) == keys.total(&PartWork::weight_bytes));
  double resting = 0.0;
  for (const auto& [name, bytes] : formulas.resting()) resting += bytes;
  RC_ASSERT(resting == text.total(&PartWork::weight_bytes));
  RC_ASSERT(text.layer.live_bytes >= 2.0 * static_cast<double>(pass.B * model.E));
}

/// Layers of two kinds: one sees a window of three positions, the other has a second FFN matrix.
constexpr const char* kKinds = R"(model kinds
dim E width
dim H heads
dim Q channels
dim F hidden
dim V vocabulary
flag local
number near = 1 - 3
small E=8, H=4, Q=2, F=16, V=8, layers=3, local=100

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)
see_near : BLM = within(far, near, 0)

layer
weight wq : EHQ
weight wk : EHQ
weight wo : HQE
weight w_in : EF unless local
weight w_out : FE unless local
q : BLHQ = store(einsum(BLE,EHQ->BLHQ; in, wq))
k_cache : BMHQ = append(store(einsum(BLE,EHQ->BLHQ; in, wk)), pos)
dot : BLHM where see_near = einsum(BLHQ,BMHQ->BLHM; q, k_cache) if local
dot : BLHM where see = einsum(BLHQ,BMHQ->BLHM; q, k_cache) unless local
exp : BLHM = exp(sub(dot, max(dot, M)))
mean : BLHQ = store(div(einsum(BLHM,BMHQ->BLHQ; exp, k_cache), sum(exp, M)))
attn : BLE = store(einsum(BLHQ,HQE->BLE; mean, wo))
hidden : BLF = store(relu(einsum(BLE,EF->BLF; attn, w_in))) unless local
out : BLE = store(einsum(BLF,FE->BLE; hidden, w_out)) unless local
out : BLE = store(add(in, attn)) if local

head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";

TEST(TextWork, IsOfEachKindOfLayers) {
  const ModelConfig model = text_model_of(kKinds);
  const Pass pass{Phase::prefill, 2, 4, 5};
  const Torus torus = Torus::parse("1x2x1");
  const Numerics numerics = released_numerics(NumberFormat::bf16);
  const WorkFormulas formulas(model, numerics, torus, Strategy::parse("ws1d:heads"), pass);
  const Work work = formulas.at(pass);
  ASSERT_EQ(work.others.size(), 1U);
  EXPECT_EQ(work.layers, 3);
  EXPECT_EQ(work.alike(), 1);
  EXPECT_EQ(work.others[0].layers, 2);
  const PartWork &near = work.layer, &all = work.others[0].layer;
  // Two chips share four heads: 2 rows, 2 heads, 2 channels, 4 positions that see 9 slots.
  EXPECT_EQ(near.attention_flops, 4.0 * 2 * 2 * 2 * 4 * 9);
  EXPECT_EQ(all.attention_flops, near.attention_flops);
  // Three matrices of 8x4x2, halved; of the scores those in the window of 3, or below the diagonal.
  const double products = 2.0 * 3 * 64 / 2 * 8;
  EXPECT_EQ(near.needed_flops, products + 4.0 * 2 * 2 * 2 * (4 * 3));
  EXPECT_EQ(all.needed_flops, products + 2.0 * 2 * 128 / 2 * 8 + 4.0 * 2 * 2 * 2 * (6 + 7 + 8 + 9));
  // Of 9 slots the window of the first new position begins at 3.
  EXPECT_EQ(all.cache_bytes, 2.0 * 2 * 9 * 2 * 2);
  EXPECT_EQ(near.cache_reads, all.cache_bytes * 6 / 9);
  EXPECT_EQ(all.cache_reads, all.cache_bytes);
  EXPECT_EQ(near.weight_bytes, 2.0 * 3 * 64 / 2);
  EXPECT_EQ(all.weight_bytes, 2.0 * (3 * 64 + 2 * 128) / 2);
  EXPECT_EQ(work.of_layers(&PartWork::weight_bytes), near.weight_bytes + 2 * all.weight_bytes);
  EXPECT_EQ(work.live_bytes_of_layer(), std::max(near.live_bytes, all.live_bytes));
  // Scores are not stored: the most is a few vectors of 8 tokens.
  EXPECT_LT(work.live_bytes_of_layer(), 8 * 4 * (8 + 8 + 16));
  ASSERT_EQ(formulas.caches().size(), 2U);
  EXPECT_EQ(formulas.caches()[0].elements, 4.0 * 2);
  EXPECT_EQ(formulas.caches()[1].elements, 4.0 * 2 * 2);
  EXPECT_EQ(formulas.caches()[0].layout.to_string(), "BMH_zyxQ");
  // The head is of one position a row.
  EXPECT_EQ(work.ends.needed_flops, 2.0 * 2 * 8 * 8 / 2);
}

/// Of experts the programs compute all; needed are those that tokens choose, and read as many.
TEST(TextWork, NeedsTheExpertsThatAreChosen) {
  const ModelConfig model = text_model_of(R"(model experts
dim E width
dim H heads
dim V vocabulary
dim X experts
dim D channels of an expert
small E=4, H=2, V=8, X=8, D=6, layers=2

embedding
weight table : VE
embed : BLE = gather(table, ids, V)

layer
weight w_heads : EH
weight w_back : HE
weight w_router : EX
weight we : XED
weight we_out : XDE
mixed : BLE = einsum(BLH,HE->BLE; einsum(BLE,EH->BLH; in, w_heads), w_back)
chosen : BLX = top(einsum(BLE,EX->BLX; mixed, w_router), X, 2)
expert : BLXD where chosen = einsum(BLE,XED->BLXD; mixed, we)
e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out)
out : BLE = add(in, sum(e_out, X))

head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)");
  const LayoutTable table = parse_layouts("layouts t\nin : BLE\nweights : E H\nattend : BLHQ\n")[0];
  const Work work = work_of(model, released_numerics(NumberFormat::bf16), Torus::parse("1x1x1"),
                            Strategy(table), {Phase::decode, 1, 1, 3});
  const double others = 2.0 * 4 * 2 + 4 * 8, expert = 2.0 * 4 * 6;
  EXPECT_EQ(work.layer.matmul_flops, 2 * (others + 8 * expert));
  EXPECT_EQ(work.layer.needed_flops, 2 * (others + 2 * expert));
  EXPECT_EQ(work.layer.weight_bytes, 2 * (others + 8 * expert));
  EXPECT_EQ(work.layer.weight_reads, 2 * (others + 2 * expert));
  EXPECT_EQ(work.ends.needed_flops, 2.0 * 4 * 8);
}

TEST(TextWork, OfLayersThatDifferIsTheirMeanInABound) {
  const ModelConfig model = text_model_of(kKinds);
  const Pass pass{Phase::decode, 2, 1, 5};
  const Work work = work_of(model, released_numerics(NumberFormat::bf16), Torus::parse("1x2x1"),
                            Strategy::parse("ws1d:heads"), pass);
  const Chip& chip = find_chip("tpu-v4");
  const Bounds bounds = bounds_of(work, chip, NumberFormat::bf16);
  const double peak = chip.peak(NumberFormat::bf16);
  EXPECT_DOUBLE_EQ(bounds.total().compute, work.flops() / peak);
  EXPECT_DOUBLE_EQ(bounds.total().needed, work.total(&PartWork::needed_flops) / peak);
  EXPECT_DOUBLE_EQ(bounds.total().memory,
                   (work.total(&PartWork::weight_reads) + work.total(&PartWork::cache_reads)) /
                       chip.hbm_bandwidth);
  EXPECT_DOUBLE_EQ(bounds.total().communication, work.sent_bytes() / chip.sends(1));
  EXPECT_DOUBLE_EQ(
      elements_of_layer(work) * 3,
      work.layer.sum(&Traffic::elements) + 2 * work.others[0].layer.sum(&Traffic::elements));
}

TEST(TextWork, IsRefusedWithItsTable) {
  const ModelConfig model = text_model_of(kKinds);
  const auto label = [&](const char* strategy, const Pass& pass) {
    return label_of(
        [&] { work_of(model, {}, Torus::parse("1x2x1"), Strategy::parse(strategy), pass); });
  };
  EXPECT_EQ(label("mixed:1d-2d", {Phase::decode, 2, 1, 5}), "layouts_c11");
  EXPECT_EQ(label("sp:1d", {Phase::decode, 2, 1, 5}), "strategy_c2");
  EXPECT_EQ(label("context", {Phase::prefill, 2, 4, 0}), "layouts_c12");
}

}  // namespace
}  // namespace shardproof::cost
