// The unsharded model of the field regime: what its runs have to do with each other.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/oracle/field/small_run.h"
#include "tests/oracle/random_case.h"
#include "tests/weights/expect_error.h"

namespace shardproof::oracle::field {
namespace {

using std::size_t;

/// Row b's token at a position, in the last pass that holds it: an element of a value of dims BL...
struct Where {
  std::string pass;
  size_t b, i, L;
};

/// All tokens of a run by row and position.
std::map<std::pair<size_t, std::int64_t>, Where> tokens(const Answer& answer) {
  std::map<std::pair<size_t, std::int64_t>, Where> all;
  for (const std::string& pass : answer.passes) {
    const IntTensor& pos = answer.inputs.at(pass + ".pos");
    const auto L = static_cast<size_t>(pos.shape[1]);
    for (size_t n = 0; n < pos.data.size(); ++n)
      all.insert_or_assign({n / L, pos.data[n]}, Where{pass, n / L, n % L, L});
  }
  return all;
}

/// What the value, filed as PASS.NAME, holds of the token; of `M` only the slots it sees.
std::vector<Number> part(const Answer& answer, const Where& where, const std::string& name,
                         bool of_slots, std::int64_t position) {
  const std::string id = where.pass + "." + name;
  const auto found = answer.checkpoints.find(id);
  const Tensor& t = found == answer.checkpoints.end() ? answer.stats.at(id) : found->second;
  size_t width = 1;
  for (size_t d = 2; d < t.shape.size(); ++d) width *= static_cast<size_t>(t.shape[d]);
  const size_t M = of_slots ? static_cast<size_t>(t.shape.back()) : 1;
  std::vector<Number> elements;
  for (size_t n = 0; n < width; ++n)
    if (!of_slots || static_cast<std::int64_t>(n % M) <= position)
      elements.push_back(t.data[(where.b * where.L + where.i) * width + n]);
  return elements;
}

/// Names like "layer0.gate" of all values that have a row for each token, and whether the last dim
/// is of slots.
std::map<std::string, bool> of_tokens(const Answer& answer) {
  std::map<std::string, bool> names;
  const std::string pass = answer.passes.back() + ".";
  const auto add = [&](const std::map<std::string, Tensor>& values) {
    for (const auto& [id, value] : values) {
      if (!id.starts_with(pass)) continue;
      const std::string_view dims = value_row(id.substr(id.rfind('.') + 1))->dims;
      if (dims.starts_with("BL")) names[id.substr(pass.size())] = dims.ends_with("M");
    }
  };
  add(answer.checkpoints);
  add(answer.stats);
  return names;
}

/// Whether all that both runs hold of the same rows' tokens is equal.
bool same_tokens(const Answer& x, const Answer& y) {
  const auto in_x = tokens(x), in_y = tokens(y);
  int compared = 0;
  for (const auto& [token, where] : in_x) {
    const auto found = in_y.find(token);
    if (found == in_y.end()) continue;
    ++compared;
    for (const auto& [name, of_slots] : of_tokens(x))
      if (part(x, where, name, of_slots, token.second) !=
          part(y, found->second, name, of_slots, token.second))
        return false;
  }
  return compared > 0;
}

bool same_end(const Answer& x, const Answer& y) {
  const std::string of_x = x.passes.back(), of_y = y.passes.back();
  for (const char* name : {".logits", ".token", ".layer0.k_cache", ".layer0.v_cache"})
    if (x.checkpoints.at(of_x + name).data != y.checkpoints.at(of_y + name).data) return false;
  return true;
}

/// A small model of any formulas.
Request draw_request() {
  const Drawn d = draw_case();
  Request r;
  r.config = d.config;
  r.weights = d.request.numerics.weights;
  r.act = d.request.numerics.act;
  r.setting.seed = d.seed;
  r.ids = generate_ids(r.config, d.seed, draw(1, 3), draw(3, 6));
  r.passes = Passes(r.ids.shape[0], r.ids.shape[1], 0, 1);
  return r;
}

RC_GTEST_PROP(FieldRun, InChunksIsTheSame, ()) {
  Request r = draw_request();
  const Answer whole = run(r);
  r.passes = Passes(r.ids.shape[0], r.ids.shape[1], draw(1, 3), 1);
  const Answer chunked = run(r);
  RC_ASSERT(same_tokens(whole, chunked));
  RC_ASSERT(same_end(whole, chunked));
}

RC_GTEST_PROP(FieldRun, InDecodeStepsIsTheSame, ()) {
  Request r = draw_request();
  const Answer whole = run(r);
  const std::int64_t gen = draw(2, 3);
  r.passes = Passes(r.ids.shape[0], r.ids.shape[1] - gen + 1, 0, gen);
  const Answer steps = run(r);
  RC_ASSERT(same_tokens(whole, steps));
  RC_ASSERT(same_end(whole, steps));
}

TEST(FieldRun, OfOtherIdsIsAnother) {
  Request r = SmallRun().request();
  const Answer x = run(r);
  EXPECT_TRUE(same_tokens(x, x) && same_end(x, x));
  std::swap(r.ids.data[0], r.ids.data[1]);
  const Answer y = run(r);
  EXPECT_FALSE(same_tokens(x, y));
  EXPECT_FALSE(same_end(x, y));
}

/// Rows of 4 and 2 tokens in one prefill pass, then a decode step of each.
Request unequal_rows() {
  Request r = SmallRun().request();
  r.passes = Passes({{.name = "prefill.c0", .previous = "", .L = 4, .rows = {{1, 0, 4}, {1, 0, 2}}},
                     {.name = "decode.1",
                      .previous = "prefill.c0",
                      .phase = Phase::decode,
                      .cached = 4,
                      .rows = {{1, 4, 1}, {1, 2, 1}}}});
  return r;
}

TEST(FieldRun, OfUnequalRowsIsEachRowsOwn) {
  Request r = unequal_rows();
  const Answer x = run(r);
  EXPECT_EQ(x.last.at("prefill.c0").data, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(x.written.at("decode.1").data, (std::vector<std::int32_t>{5, 3}));  // not its padding
  r.passes = Passes(2, 5, 0, 1);
  const Answer alone = run(r);
  // Row 1's decode step stands at position 2, after its two tokens.
  for (const char* name : {"out", "score", "max", "denom", "attn", "k_rot"}) {
    const std::string id = std::string("layer1.") + name;
    const bool slots = std::string_view(name) == "score";
    EXPECT_EQ(part(x, {"decode.1", 0, 0, 1}, id, slots, 4),
              part(alone, {"prefill.c0", 0, 4, 5}, id, slots, 4))
        << name;
    EXPECT_EQ(part(x, {"decode.1", 1, 0, 1}, id, slots, 2),
              part(alone, {"prefill.c0", 1, 2, 5}, id, slots, 2))
        << name;
  }
  // Logits are of each row's own last token, the fourth and the second.
  const Tensor& logits = x.checkpoints.at("prefill.c0.logits");
  for (const size_t b : {0U, 1U}) {
    r.passes = Passes(2, b == 0 ? 4 : 2, 0, 1);
    const Answer shorter = run(r);
    for (size_t v = b * 24; v < (b + 1) * 24; ++v)
      EXPECT_EQ(logits.data[v], shorter.checkpoints.at("prefill.c0.logits").data[v]);
  }
  // Slots that row 1 has not reached hold 0, and no query sees them.
  const Tensor& cache = x.checkpoints.at("decode.1.layer0.k_cache");
  const size_t width = 2 * 4;
  for (size_t n = 0; n < width; ++n) EXPECT_EQ(cache.data[(5 + 4) * width + n], Number{});
  EXPECT_EQ(x.inputs.at("prefill.c0.ids").data[4 + 2], 0);
}

TEST(FieldRun, HasAllValuesThatTheFloatOracleHas) {
  for (const Block block : {Block::parallel, Block::serial})
    for (const NumberFormat weights : {NumberFormat::f32, NumberFormat::int8})
      for (const char* keys : {"", ",norm=layernorm,bias=all,unembed_bias=true,rope=alibi"}) {
        SmallRun small{.keys = keys, .weights = weights, .act = NumberFormat::bf16, .block = block};
        const Request r = small.request();
        const Answer field = run(r);
        oracle::Request floats;
        floats.numerics.weights = r.weights;
        floats.numerics.act = r.act;
        floats.prompt = generate_prompt(r.config, 1, small.batch, small.prompt);
        floats.passes = r.passes;
        const oracle::Answer answer = oracle::run(generate_weights(r.config, 1), floats);
        const auto names = [](const auto& map) {
          std::map<std::string, Shape> all;
          for (const auto& [id, value] : map) all[id] = value.shape;
          return all;
        };
        auto checkpoints = names(answer.checkpoints);
        checkpoints.merge(names(answer.tokens));
        EXPECT_EQ(names(field.checkpoints), checkpoints) << keys;
        EXPECT_EQ(names(field.stats), names(answer.stats)) << keys;
        EXPECT_EQ(names(field.scaled), names(answer.scaled)) << keys;
        EXPECT_EQ(names(field.inputs), names(answer.inputs)) << keys;
        EXPECT_EQ(field.with_scale, answer.with_scale) << keys;
        EXPECT_EQ(field.passes, answer.passes);
        for (const auto& [id, value] : field.checkpoints) {
          EXPECT_EQ(field.unstored.contains(id),
                    value_row(id.substr(id.rfind('.') + 1))->stored && !id.ends_with("_cache"))
              << id;
          if (const auto raw = answer.raw.find(id); raw != answer.raw.end()) {
            EXPECT_EQ(field.raw_of(id).shape, raw->second.shape) << id;
          }
        }
      }
}

TEST(FieldRun, HoldsNothingButNumbersOfTheLanesInUse) {
  for (const int bits : {61, 31, 13, 5})
    for (const int lanes : {1, 2, 3}) {
      // One token has 8 denominators, of which with 5 bits one is often 0.
      SmallRun small{.batch = 1, .prompt = 1, .gen = 1, .setting = {.bits = bits, .lanes = lanes}};
      Answer answer;
      for (bool good = false; !good; ++small.setting.seed) {
        try {
          answer = small.answer();
          good = true;
        } catch (const Error& error) {
          ASSERT_EQ(error.label(), "field_zero");
          ASSERT_LT(bits, 31);
        }
      }
      bool used = false;
      for (const auto* values : {&answer.checkpoints, &answer.raw, &answer.stats, &answer.weights})
        for (const auto& [id, value] : *values)
          for (const Number& n : value.data)
            for (size_t j = 0; j < 3; ++j) {
              if (static_cast<int>(j) < lanes) {
                ASSERT_LT(n.lane[j], (std::uint64_t{1} << bits) - 1) << id;
                used = used || n.lane[j] > (std::uint64_t{1} << bits) / 2;
              } else {
                ASSERT_EQ(n.lane[j], 0U) << id;
              }
            }
      EXPECT_TRUE(used);
    }
}

TEST(FieldRun, NamesADenominatorOfZeroAndAnotherDrawIsAnotherRun) {
  static const std::regex said(
      R"(field_zero: (prefill.c0|decode.[12]).layer[01].denom\[[01],[0-3],[0-3]\] has no inverse, )"
      R"(lane [012] of it is 0)");
  int refused = 0, cured = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SmallRun small{.setting = {.seed = seed, .bits = 7, .lanes = 1}};
    const std::string what = message_of([&] { small.answer(); });
    if (what.empty()) continue;
    ++refused;
    EXPECT_TRUE(std::regex_match(what, said)) << what;
    small.setting.draw = 1;
    cured += message_of([&] { small.answer(); }) != what ? 1 : 0;
  }
  EXPECT_GT(refused, 5);
  EXPECT_GT(cured, refused / 2);
}

TEST(FieldRun, NamesAnExtentThatPDivides) {
  SmallRun small{.keys = ",norm=layernorm", .setting = {.bits = 5}};
  Request r = small.request();
  r.config.E = 31;
  EXPECT_EQ(message_of([&] { run(r); }),
            "field_zero: prefill.c0.layer0.mu: E=31 has no inverse, lane 0 of it is 0");
}

TEST(FieldRun, RefusesIdsThatAPassReadsBeyond) {
  Request r = SmallRun().request();
  r.passes = Passes(2, 4, 0, 4);
  EXPECT_EQ(message_of([&] { run(r); }),
            "oracle_range: decode.3: reads to position 7, the prompt has 6");
  r.setting.lanes = 4;
  EXPECT_EQ(label_of([&] { run(r); }), "field_setting");
}

TEST(FieldRun, CountsFunctionsAndInverses) {
  // 2 rows, 6 positions, of which a query sees 1, ..., 6 keys; 4 heads, 2 layers, 3 passes sample.
  const Answer answer = SmallRun().answer();
  const std::map<std::string, std::int64_t> applied{
      {"norm E=6 eps=0x1.0c6f7a0b5ed8dp-20", 2 * 6 * (2 + 1)},
      {"swish", 2 * 6 * 10 * 2},
      {"score to max", 2 * 21 * 4 * 2},
      {"score to exp", 2 * 21 * 4 * 2},
      {"max to exp", 2 * 6 * 4 * 2},
      {"logit", 2 * 24 * 3},
      {"id", 24},
      {"candidate to token", 2 * 3},
      {"index to token", 2 * 3}};
  EXPECT_EQ(answer.applied, applied);
  EXPECT_EQ(answer.inverted, (std::map<int, std::int64_t>{{0, 48}, {1, 48}}));
  // Layer 0's v is of degree 4 (embed 1, R, g, matrix 1 each), attn 6 and its denominators, out 7;
  // layer 1's v is 10, its out 13 and either layer's denominators. ss of the final norm is a
  // square.
  EXPECT_TRUE(answer.degrees.contains({26, {2, 2}}));
  EXPECT_TRUE(answer.degrees.contains({24 + 1, {}}));  // of the index to token: V + 1
  EXPECT_EQ(answer.degree({}), 26);
  EXPECT_EQ(answer.degree({{0, 96}, {1, 96}}), 26 + 2 * 2 * (96 + 96));
  EXPECT_EQ(answer.degree({{0, 0}, {1, 7}}), 26 + 2 * 2 * 7);
}

TEST(FieldRun, MakesCandidatesOfEqualBlocksAndSampledPasses) {
  const Answer answer = SmallRun().answer();
  EXPECT_EQ(label_of([&] { answer.candidates("prefill.c0", 5); }), "oracle_range");
  EXPECT_EQ(label_of([&] { answer.candidates("prefill.c0", 0); }), "oracle_range");
  EXPECT_EQ(label_of([&] { answer.indices("prefill.c1", 2); }), "oracle_id");
  // Of a longer vocabulary: blocks as wide, whose last ones have fewer ids, or none.
  const std::int64_t V = answer.config.V;
  EXPECT_EQ(label_of([&] { answer.candidates("decode.2", 1, V - 1); }), "oracle_range");
  EXPECT_EQ(label_of([&] { answer.candidates("decode.2", 2, 2 * V + 1); }), "oracle_range");
  const auto longer = answer.candidates("decode.2", 2, 2 * V),
             all = answer.candidates("decode.2", 1);
  EXPECT_EQ(longer.data[0], all.data[0]);
  EXPECT_EQ(longer.data[2], all.data[1]);
  EXPECT_EQ(longer.data[1], Number{});
  EXPECT_EQ(answer.candidates("decode.2", 6).shape, (Shape{2, 6}));
  EXPECT_NE(answer.candidates("decode.2", 6).data, answer.candidates("decode.1", 6).data);
  EXPECT_NE(answer.candidates("decode.2", 6).data, answer.indices("decode.2", 6).data);
}

TEST(FieldRun, KnowsItsWeights) {
  const Answer answer = SmallRun{.weights = NumberFormat::int8}.answer();
  EXPECT_EQ(answer.weight("layer1.block_out_scale").shape, (Shape{6}));
  EXPECT_EQ(answer.weight("ones").data[5], (Number{{1, 1, 1}}));
  EXPECT_NE(answer.weight("layer0.wq").data, answer.weight("layer1.wq").data);
  EXPECT_EQ(label_of([&] { answer.weight("layer2.wq"); }), "oracle_id");
}

}  // namespace
}  // namespace shardproof::oracle::field
