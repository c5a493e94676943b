// The models of the family: each runs, and each with one formula changed is another.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/numbers.h"
#include "oracle/field/detail/philox.h"
#include "oracle/field/detail/random.h"
#include "tests/oracle/field/small_run.h"

namespace shardproof::oracle::field {
namespace {

using std::size_t;

/// The family, of small dims.
std::vector<SmallRun> family() {
  return {
      {},
      {.block = Block::serial},
      {.keys = ",K=1"},
      {.keys = ",tied=false,eps=1e-5,logit_scale=1", .block = Block::serial},  // llama
      {.keys = ",K=4,Q=8,ffn=gelu,norm=layernorm,bias=ffn,rope=interleaved,rotary=0.5,tied=false,"
               "unembed_bias=true,eps=1e-5,logit_scale=1"},                           // gptj
      {.keys = ",K=1,ffn=gelu-erf,norm=layernorm,bias=norm,eps=1e-5,logit_scale=1"},  // falcon
      {.keys = ",rope=alibi"},
      {.keys = ",rope=none,norm=layernorm,bias=all", .block = Block::serial},
      {.keys = ",bias=qkv,embed_scale=3"},
      {.weights = NumberFormat::int8},
      {.keys = ",bias=all", .weights = NumberFormat::int8, .block = Block::serial},
      {.act = NumberFormat::bf16},
      {.keys = ",cache=bf16"},
      {.keys = ",cache=bf16", .act = NumberFormat::bf16},
      {.keys = ",softmax=base2"},
      {.keys = ",softmax=base2,rope=alibi,bias=all", .weights = NumberFormat::int8},
  };
}

/// A request changed in one formula, where it has it; false where not.
struct Change {
  const char* what;
  std::function<bool(Request&)> make;
};

template <class T>
bool set(T& at, T value) {
  const bool changed = at != value;
  at = value;
  return changed;
}

std::vector<Change> changes() {
  return {
      {"eps", [](Request& r) { return set(r.config.eps, 0.25); }},
      {"block",
       [](Request& r) {
         return set(r.config.block,
                    r.config.block == Block::serial ? Block::parallel : Block::serial);
       }},
      {"norm",
       [](Request& r) {
         if (r.config.bias == Bias::norm) return false;  // layernorm's alone
         return set(r.config.norm,
                    r.config.norm == Norm::layernorm ? Norm::rmsnorm : Norm::layernorm);
       }},
      {"swiglu", [](Request& r) { return set(r.config.ffn, Ffn::swiglu); }},
      {"geglu", [](Request& r) { return set(r.config.ffn, Ffn::geglu); }},
      {"gelu", [](Request& r) { return set(r.config.ffn, Ffn::gelu); }},
      {"gelu-erf", [](Request& r) { return set(r.config.ffn, Ffn::gelu_erf); }},
      {"half", [](Request& r) { return set(r.config.rope, Rope::half); }},
      {"interleaved", [](Request& r) { return set(r.config.rope, Rope::interleaved); }},
      {"alibi",
       [](Request& r) {
         r.config.rotary = 1;
         return set(r.config.rope, Rope::alibi);
       }},
      {"no rope",
       [](Request& r) {
         r.config.rotary = 1;
         return set(r.config.rope, Rope::none);
       }},
      {"rotary",
       [](Request& r) { return rotates(r.config) && set(r.config.rotary, r.config.rotary / 2); }},
      {"tied", [](Request& r) { return set(r.config.tied, !r.config.tied); }},
      {"unembed bias",
       [](Request& r) { return set(r.config.unembed_bias, !r.config.unembed_bias); }},
      {"biases of q, k, v", [](Request& r) { return set(r.config.bias, Bias::qkv); }},
      {"biases of the FFN", [](Request& r) { return set(r.config.bias, Bias::ffn); }},
      {"all biases", [](Request& r) { return set(r.config.bias, Bias::all); }},
      {"embed_scale",
       [](Request& r) {
         return set(r.config.embed_scale, r.config.embed_scale == 1.0F ? 2.0F : 1.0F);
       }},
      {"logit_scale",
       [](Request& r) {
         return set(r.config.logit_scale, r.config.logit_scale == 1.0F ? 2.0F : 1.0F);
       }},
      {"the base",
       [](Request& r) {
         return set(r.config.softmax,
                    r.config.softmax == Softmax::base2 ? Softmax::base_e : Softmax::base2);
       }},
      {"cache=bf16",
       [](Request& r) { return set(r.config.cache, std::optional(NumberFormat::bf16)); }},
      {"act",
       [](Request& r) {
         return set(r.act, r.act == NumberFormat::bf16 ? NumberFormat::f32 : NumberFormat::bf16);
       }},
      {"int8",
       [](Request& r) {
         return set(r.weights,
                    r.weights == NumberFormat::int8 ? NumberFormat::f32 : NumberFormat::int8);
       }},
      {"one layer less", [](Request& r) { return set(r.config.layers, std::int64_t{1}); }},
      {"seed", [](Request& r) { return set(r.setting.seed, std::uint64_t{12345}); }},
      {"draw", [](Request& r) { return set(r.setting.draw, 1); }},
  };
}

TEST(FieldFormulas, OfOneModelChangedAreAnother) {
  int compared = 0;
  for (const SmallRun& member : family()) {
    const Request request = member.request();
    const Answer answer = run(request);
    for (const Change& change : changes()) {
      Request changed = request;
      if (!change.make(changed)) continue;
      ++compared;
      const Answer other = run(changed);
      for (const char* id : {"prefill.c0.logits", "decode.2.logits", "decode.2.token"}) {
        const std::vector<Number>&x = answer.checkpoints.at(id).data,
              &y = other.checkpoints.at(id).data;
        ASSERT_EQ(x.size(), y.size());
        for (size_t n = 0; n < x.size(); ++n)
          for (size_t lane = 0; lane < 3; ++lane)
            ASSERT_NE(x[n].lane[lane], y[n].lane[lane])
                << member.keys << ": " << change.what << " changes nothing in " << id;
      }
    }
  }
  EXPECT_GT(compared, 250);
}

/// The same weights by another name: rounding before the model begins is not seen.
TEST(FieldFormulas, OfWeightsInBf16AreTheSame) {
  Request r = SmallRun().request();
  const Answer f32 = run(r);
  r.weights = NumberFormat::bf16;
  for (const auto& [id, value] : run(r).checkpoints)
    EXPECT_EQ(value.data, f32.checkpoints.at(id).data) << id;
}

TEST(FieldFormulas, ARowOfOtherExtentIsAnother) {
  // E and Q are in the names of the norm's function and of the scores' constant.
  const Request r = SmallRun().request();
  const auto names = [](const Answer& answer) {
    std::set<std::string> all;
    for (const auto& [name, count] : answer.applied) all.insert(name);
    return all;
  };
  Request wider = r;
  wider.config.E = 7;
  wider.config.eps = 0.25;
  EXPECT_TRUE(names(run(r)).contains("norm E=6 eps=0x1.0c6f7a0b5ed8dp-20"));
  EXPECT_TRUE(names(run(wider)).contains("norm E=7 eps=0x1p-2"));
}

TEST(FieldFormulas, RawScaledAndUnstoredLeadToTheCheckpoint) {
  SmallRun small{.keys = ",bias=all,unembed_bias=true,embed_scale=3",
                 .weights = NumberFormat::int8,
                 .act = NumberFormat::bf16,
                 .setting = {.seed = 5}};
  const Answer answer = small.answer();
  const Arithmetic math(answer.setting);
  const Random random(answer.setting);
  const auto first = [](const Tensor& t) { return t.data[0]; };
  const auto bf16 = [&](const Number& v) { return random.function(fnv1a64("bf16"), v); };

  const std::string gate = "decode.1.layer1.gate";
  const Number scaled =
      math.multiply(first(answer.raw_of(gate)), first(answer.weight("layer1.w_gate_scale")));
  EXPECT_EQ(first(answer.scaled_of(gate)), scaled);
  EXPECT_EQ(first(answer.unstored_of(gate)),
            math.add(scaled, first(answer.weight("layer1.b_gate"))));
  EXPECT_EQ(first(answer.checkpoints.at(gate)), bf16(first(answer.unstored_of(gate))));

  const auto constant = [&](const char* name) { return first(random.stream(name, {1})); };
  EXPECT_EQ(
      first(answer.unstored_of("prefill.c0.embed")),
      math.multiply(first(answer.raw_of("prefill.c0.embed")), constant("constant embed_scale")));
  EXPECT_EQ(
      first(answer.scaled_of("decode.1.logits")),
      math.multiply(first(answer.raw_of("decode.1.logits")), constant("constant logit_scale")));
  EXPECT_EQ(
      first(answer.checkpoints.at("decode.1.logits")),
      math.add(first(answer.scaled_of("decode.1.logits")), first(answer.weight("unembed_bias"))));
  EXPECT_EQ(first(answer.checkpoints.at("decode.1.layer0.score")),
            math.multiply(first(answer.raw_of("decode.1.layer0.score")),
                          constant("constant attend_scale Q=4")));
}

TEST(FieldFormulas, CandidatesOfAnyBlocksMakeTheToken) {
  const Answer answer = SmallRun().answer();
  const Arithmetic math(answer.setting);
  const Random random(answer.setting);
  const std::int64_t V = answer.config.V;
  for (const std::int64_t C : {1, 2, 6, 24}) {
    const Tensor candidates = answer.candidates("decode.1", C);
    const Tensor indices = answer.indices("decode.1", C);
    for (size_t b = 0; b < 2; ++b) {
      Number candidate, index, power = math.integer(1);
      for (std::int64_t c = 0; c < C; ++c) {
        const size_t at = b * static_cast<size_t>(C) + static_cast<size_t>(c);
        candidate = math.add(candidate, math.multiply(power, candidates.data[at]));
        index = math.add(index, math.multiply(power, indices.data[at]));
        for (std::int64_t j = 0; j < V / C; ++j) power = math.multiply(power, answer.rho);
      }
      EXPECT_EQ(answer.checkpoints.at("decode.1.token").data[b],
                math.add(random.function(fnv1a64("candidate to token"), candidate),
                         random.function(fnv1a64("index to token"), index)))
          << C;
    }
  }
}

TEST(FieldFormulas, FiveFunctionsKeepZero) {
  const Random random(FieldSetting{});
  std::int64_t applied = 0;
  for (const char* name : {"swish", "swish2", "gelu", "gelu_erf", "bf16"}) {
    const Function f(random, name, applied);
    EXPECT_EQ(f(Number{}), Number{}) << name;
    EXPECT_NE(f({{0, 0, 1}}), Number{}) << name;
  }
  for (const char* name : {"score to max", "logit", "norm E=6 eps=0x1p-2", "id"})
    EXPECT_NE(Function(random, name, applied)(Number{}), Number{}) << name;
  EXPECT_EQ(applied, 14);
}

}  // namespace
}  // namespace shardproof::oracle::field
