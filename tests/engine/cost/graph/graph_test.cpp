#include "engine/cost/graph/graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cost/graph/graph_work.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/work/work.h"
#include "tests/engine/cost/cases.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/random_model.h"
#include "weights/base/detail/words.h"

namespace shardproof::cost {
namespace {

/// Two layers, the first with a window of 3 positions; 8 experts in the second, of which 2 are
/// chosen.
constexpr std::string_view kText = R"(model experts
dim E width
dim H heads
dim Q channels
dim V vocabulary
dim X experts
dim D channels of an expert
flag local
number near = 1 - 3
small E=6, H=2, Q=3, V=10, X=8, D=5, layers=3, local=100

embedding
weight table : VE
embed : BLE = gather(table, ids, V)
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)
see_near : BLM = within(far, near, 0)

layer
weight g : E
weight wq : EHQ
weight wk : EQ from w_keys
weight wo : HQE
weight w_router : EX unless local
weight we : XED unless local
weight we_out : XDE unless local
norm : BLE = mul(in, g)
q : BLHQ = einsum(BLE,EHQ->BLHQ; norm, wq)
k_cache : BMQ = append(einsum(BLE,EQ->BLQ; norm, wk), pos)
dot : BLHM where see_near = einsum(BLHQ,BMQ->BLHM; q, k_cache) if local
dot : BLHM where see = einsum(BLHQ,BMQ->BLHM; q, k_cache) unless local
exp : BLHM = exp(sub(dot, max(dot, M)))
mean : BLHQ = einsum(BLHM,BMQ->BLHQ; div(exp, sum(exp, M)), k_cache)
attn : BLE = einsum(BLHQ,HQE->BLE; mean, wo)
chosen : BLX = top(einsum(BLE,EX->BLX; attn, w_router), X, 2) unless local
expert : BLXD where chosen = store(einsum(BLE,XED->BLXD; attn, we)) unless local
e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless local
out : BLE = add(in, sum(e_out, X)) unless local
out : BLE = add(in, attn) if local

head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";

ModelConfig text_model_of(std::string text, const TextKeys& keys = {}) {
  return model_config(
      std::make_shared<const TextModel>(parse_model_text(text), keys, "experts.model"));
}

std::vector<std::string> shown(const std::vector<GraphProduct>& products) {
  std::vector<std::string> lines;
  for (const GraphProduct& one : products)
    lines.push_back(fmt::format("{} {} {}: {}x{}x{} x{} x{}, {}/{} seen, {:.4} read", one.name,
                                to_string(one.section), one.weight ? "weight" : "cache", one.n,
                                one.k, one.m, one.times, one.layers, one.pairs, one.of, one.read));
  return lines;
}

TEST(Graph, ProductsOfATextByHand) {
  const ModelConfig model = text_model_of(std::string(kText));
  // Two rows of 3 new positions behind 2: of 5 slots a window of 3 leaves 9 of 15 pairs, and the
  // causal mask 12; a router sends 6 tokens to 2 of 8 experts each.
  const std::vector<std::string> expected{
      "wq layer weight: 6x6x6 x1 x3, 1/1 seen, 1 read",
      "wk layer weight: 6x6x3 x1 x3, 1/1 seen, 1 read",
      "dot layer cache: 6x3x5 x2 x1, 9/15 seen, 1 read",
      "dot layer cache: 6x3x5 x2 x2, 12/15 seen, 1 read",
      "mean layer cache: 6x5x3 x2 x1, 9/15 seen, 1 read",
      "mean layer cache: 6x5x3 x2 x2, 12/15 seen, 1 read",
      "wo layer weight: 6x6x6 x1 x3, 1/1 seen, 1 read",
      "w_router layer weight: 6x6x8 x1 x2, 1/1 seen, 1 read",
      "we layer weight: 1.5x6x5 x8 x2, 1/1 seen, 0.822 read",
      "we_out layer weight: 1.5x5x6 x8 x2, 1/1 seen, 0.822 read",
      "table head weight: 2x6x10 x1 x1, 1/1 seen, 1 read"};
  EXPECT_EQ(shown(graph_products(*text_model(model), {Phase::prefill, 2, 3, 2})), expected);
  // A window reads the last 3 slots of 9 alone.
  std::vector<double> read;
  for (const GraphProduct& one : graph_products(*text_model(model), {Phase::decode, 1, 1, 8}))
    if (!one.weight) read.push_back(one.read);
  EXPECT_EQ(read, (std::vector<double>{3.0 / 9.0, 1.0, 3.0 / 9.0, 1.0}));
}

TEST(Graph, WeightsOfATextByHand) {
  const ModelConfig model = text_model_of(std::string(kText));
  std::vector<std::string> lines;
  for (const WeightElements& one : weight_elements(*text_model(model)))
    lines.push_back(fmt::format("{} {} {} x{}: {} {}", one.name, one.letters, to_string(one.kind),
                                one.layers, one.elements, one.active));
  const std::vector<std::string> expected{
      "table VE table x1: 60 60",   "g E gain x3: 18 18",           "wq EHQ matrix x3: 108 108",
      "w_keys EQ matrix x3: 54 54", "wo HQE matrix x3: 108 108",    "w_router EX matrix x2: 96 96",
      "we XED matrix x2: 480 120",  "we_out XDE matrix x2: 480 120"};
  EXPECT_EQ(lines, expected);
  EXPECT_EQ(cache_elements(*text_model(model)), 3 * 3);
  // attn in each layer, e_out in two of three.
  EXPECT_EQ(reductions_of_layer(*text_model(model)), 5.0 / 3.0);
}

TEST(Graph, WorkOfATextByHand) {
  const ModelConfig model = text_model_of(std::string(kText));
  const GraphWork work =
      graph_work(model, NumberFormat::int8, NumberFormat::bf16, {Phase::decode, 1, 1, 8});
  // W matrices are of one byte, the table beside them of two, gains f32.
  const double matrices = 108 + 54 + 108 + 96, experts = 480 + 480;
  EXPECT_EQ(work.weight_bytes, 60 * 2 + 18 * 4 + matrices + experts);
  EXPECT_EQ(work.total(&GraphWork::Part::weight_reads), 60 * 2 + 18 * 4 + matrices + experts / 4);
  EXPECT_EQ(work.table_bytes, 0.0);
  EXPECT_EQ(work.cache_bytes, 9.0 * 9 * 2);
  EXPECT_EQ(work.total(&GraphWork::Part::cache_reads), 3.0 * (3 + 9 + 9) * 2);
  EXPECT_EQ(work.total(&GraphWork::Part::needed_flops),
            2 * (60 + matrices + experts / 4) + 4 * 2 * 3 * (3 + 9 + 9));
}

/// The text with one line in place of another.
std::string with_line(const std::string& old_line, const std::string& new_line) {
  std::string text(kText);
  const auto at = text.find("\n" + old_line + "\n");
  EXPECT_NE(at, std::string::npos) << old_line;
  return text.replace(at + 1, old_line.size(), new_line);
}

std::vector<std::string> shown_of(const std::string& text) {
  return shown(graph_products(*text_model(text_model_of(text)), {Phase::prefill, 2, 3, 2}));
}

TEST(Graph, ProductsAreThoseOfOperandsInEitherOrder) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"q : BLHQ = einsum(BLE,EHQ->BLHQ; norm, wq)",
            "q : BLHQ = einsum(EHQ,BLE->BLHQ; wq, norm)"},
           {"mean : BLHQ = einsum(BLHM,BMQ->BLHQ; div(exp, sum(exp, M)), k_cache)",
            "mean : BLHQ = einsum(BMQ,BLHM->BLHQ; k_cache, div(exp, sum(exp, M)))"},
           {"e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless local",
            "e_out : BLXE = einsum(XDE,BLXD->BLXE; we_out, relu(expert)) unless local"}})
    EXPECT_EQ(shown_of(with_line(one, other)), shown_of(std::string(kText))) << other;
}

TEST(Graph, ProductsOfValuesAloneAreNotCounted) {
  for (const char* line : {"norm : BLE = mul(in, div(g, add(einsum(BLE,BLE->BL; in, in), 1)))",
                           "norm : BLE = mul(in, div(g, add(einsum(BLE,BLE->BL; in, embed), 1)))"})
    EXPECT_EQ(shown_of(with_line("norm : BLE = mul(in, g)", line)), shown_of(std::string(kText)));
}

/// Only where every reader leaves the same out, a product is not needed.
TEST(Graph, AProductThatIsReadElsewhereIsNeededWhole) {
  const std::string line =
      "expert : BLXD where chosen = store(einsum(BLE,XED->BLXD; attn, we)) unless local";
  const std::vector<std::string> chosen = shown_of(std::string(kText));
  const std::string whole = "we layer weight: 6x6x40 x1 x2, 1/1 seen, 1 read";
  const std::string raw = "raw : BLXD = einsum(BLE,XED->BLXD; attn, we) unless local\n";
  EXPECT_EQ(shown_of(with_line(line, raw + "expert : BLXD where chosen = raw unless local")),
            chosen);
  for (const char* more :
       {"more : BLXD = raw unless local", "more : BLX = sum(raw, D) unless local"}) {
    std::vector<std::string> products =
        shown_of(with_line(line, raw + more + "\nexpert : BLXD where chosen = raw unless local"));
    EXPECT_EQ(products.at(8), whole) << more;
  }
  // An indicator with a letter more says nothing of where the value is read.
  const std::vector<std::string> products =
      shown_of(with_line(line,
                         "gated : BLH = einsum(BLE,EHQ->BLH; attn, wq) unless local\n"
                         "spread : BLXH where chosen = mul(chosen, gated) unless local\n" +
                             line));
  const std::string gated = "wq layer weight: 6x18x2 x1 x2, 1/1 seen, 1 read";
  EXPECT_EQ(std::count(products.begin(), products.end(), gated), 1);
}

TEST(Graph, ProductsOfTheEmbeddingAreCounted) {
  std::string text = with_line("weight table : VE",
                               "weight table : VE\nweight pixels : VD\n"
                               "weight w_pixels : DE");
  const std::string line = "embed : BLE = gather(table, ids, V)";
  text.replace(text.find(line), line.size(),
               "embed : BLE = add(gather(table, ids, V), einsum(BLD,DE->BLE; gather(pixels, ids, "
               "V), w_pixels))");
  std::vector<std::string> products = shown_of(text);
  EXPECT_EQ(products.front(), "w_pixels embedding weight: 6x5x6 x1 x1, 1/1 seen, 1 read");
  products.erase(products.begin());
  EXPECT_EQ(products, shown_of(std::string(kText)));
}

/// What is chosen is chosen in other letters, too, and of a factor that all share.
TEST(Graph, ALetterThatIsSplitIsStillChosenAmong) {
  std::string text = with_line("dim X experts", "dim X experts\ndim N groups\ndim Y = X // N");
  const auto put = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  put("X=8,", "X=8, N=4,");
  put("weight we_out : XDE unless local", "weight we_out : NYDE unless local");
  put("e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless local",
      "parts : BLNYD = split_dim(relu(expert), X->NY) unless local\n"
      "e_out : BLNYE = einsum(BLNYD,NYDE->BLNYE; parts, we_out) unless local");
  put("sum(e_out, X)", "sum(e_out, NY)");
  EXPECT_EQ(shown_of(text).at(9), "we_out layer weight: 1.5x5x6 x8 x2, 1/1 seen, 0.822 read");
}

TEST(Graph, AFactorThatAllExpertsShareIsReadWhole) {
  std::string text =
      with_line("e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless local",
                "e_out : BLXE = einsum(BLXD,DE->BLXE; relu(expert), we_out) unless local");
  const std::string weight = "weight we_out : XDE unless local";
  text.replace(text.find(weight), weight.size(), "weight we_out : DE unless local");
  EXPECT_EQ(shown_of(text).at(9), "we_out layer weight: 12x5x6 x1 x2, 1/1 seen, 1 read");
}

TEST(Graph, ALetterThatIsMergedIsStillChosenAmong) {
  const std::string line =
      "e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless local";
  // Summed over experts and channels at once: of each expert some tokens.
  std::string text =
      with_line(line, "e_sum : BLE = einsum(BLXD,XDE->BLE; expert, we_out) unless local");
  const std::string out = "out : BLE = add(in, sum(e_out, X)) unless local";
  text.replace(text.find(out), out.size(), "out : BLE = add(in, e_sum) unless local");
  EXPECT_EQ(shown_of(text).at(9), "we_out layer weight: 1.5x40x6 x1 x2, 1/1 seen, 0.822 read");
}

/// A value that a user adds to a text has its cost: no line of C++ names it.
TEST(Graph, AValueMoreHasItsCost) {
  std::string text(kText);
  const auto put = [&](const std::string& before, const std::string& line) {
    text.insert(text.find(before), line);
  };
  put("norm : BLE", "weight g_more : E\nweight w_more : EE\n");
  text = text.replace(text.find("weight w_more : EE"), 18, "weight w_more : EHQ");
  put("dot : BLHM where see_near", "norm_more : BLE = mul(attn_more, g_more)\n");
  put("norm_more : BLE", "attn_more : BLE = einsum(BLHQ,EHQ->BLE; q, w_more)\n");
  const ModelConfig with = text_model_of(text), without = text_model_of(std::string(kText));
  const Pass pass{Phase::prefill, 2, 3, 2};
  const auto work = [&](const ModelConfig& model) {
    return graph_work(model, NumberFormat::f32, NumberFormat::f32, pass);
  };
  EXPECT_EQ(work(with).weight_bytes, work(without).weight_bytes + 4.0 * 3 * (6 + 36));
  EXPECT_EQ(work(with).layers.needed_flops, work(without).layers.needed_flops + 2.0 * 3 * 6 * 36);
  EXPECT_EQ(reductions_of_layer(*text_model(with)), 8.0 / 3.0);
}

/// The other way to count: from the programs of a strategy on one chip.
RC_GTEST_PROP(Graph, OfKeysIsWhatProgramsOfOneChipDo, ()) {
  ModelConfig model = draw_model(12);
  model.cache = *rc::gen::element<std::optional<NumberFormat>>(std::nullopt, NumberFormat::f32,
                                                               NumberFormat::bf16);
  const NumberFormat weights =
      *rc::gen::element(NumberFormat::f32, NumberFormat::bf16, NumberFormat::int8);
  const NumberFormat act = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  const std::int64_t L = *rc::gen::inRange(1, 5);
  const Pass pass{L == 1 ? Phase::decode : Phase::prefill, *rc::gen::inRange(1, 4), L,
                  *rc::gen::inRange(0, 6)};
  Numerics numerics = released_numerics(weights);
  numerics.act = act;
  const Work work =
      work_of(model, numerics, Torus::parse("1x1x1"), Strategy::parse("ws1d:heads"), pass);
  const GraphWork graph = graph_work(model, weights, act, pass);
  RC_ASSERT(graph.weight_bytes == work.total(&PartWork::weight_bytes));
  RC_ASSERT(graph.total(&GraphWork::Part::weight_reads) == work.total(&PartWork::weight_reads));
  RC_ASSERT(graph.cache_bytes == work.total(&PartWork::cache_bytes));
  RC_ASSERT(graph.total(&GraphWork::Part::cache_reads) == work.total(&PartWork::cache_reads));
  RC_ASSERT(graph.total(&GraphWork::Part::needed_flops) == work.total(&PartWork::needed_flops));
  RC_ASSERT(cache_elements(*graph_of(model)) == 2 * model.layers * model.K * model.Q);
  RC_ASSERT(reductions_of_layer(*graph_of(model)) == (model.block == Block::serial ? 2.0 : 1.0));
}

}  // namespace
}  // namespace shardproof::cost
