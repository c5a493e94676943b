// Traces of some passes alone, and bad values among good ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden/trace/verdict/notes.h"
#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

const std::string kLlama =
    "torus=2x1x1 model=llama,layers=2,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 prompt=8 gen=3 seed=3";

/// The values of a pass alone.
std::vector<Written> of_pass(const ExactRun& run, const std::string& pass) {
  std::vector<Written> values = run.values();
  std::erase_if(values, [&](const Written& w) { return !w.name.starts_with(pass + "."); });
  return values;
}

struct Judged {
  Verdict verdict;
  std::vector<std::string> notes;
};
Judged judged(const ExactRun& run, const dump::Dump& d) {
  ExactRun::Read read(run, d);
  Judged j{judge(read.values, read.claim, read.reference), {}};
  j.notes = notes_of(read.values, read.claim, read.reference, j.verdict);
  return j;
}

bool has_note(const Judged& j, const std::string& part) {
  return std::any_of(j.notes.begin(), j.notes.end(),
                     [&](const std::string& n) { return n.find(part) != n.npos; });
}

TEST(OnePass, OldSlotsOfCachesAreNotJudged) {
  // Of another prompt than the seed's: what the trace does not have nobody can make.
  const ExactRun run(kLlama), other(kLlama.substr(0, kLlama.size() - 1) + "4");
  for (const char* arithmetic : {"f32", "exact"}) {
    const Verdict v = run.judged(run.trace(of_pass(run, "decode.2"), arithmetic));
    EXPECT_EQ(v.count(Fit::different), 0)
        << arithmetic << ": " << (v.first ? v.rows[*v.first].title : std::string());
    EXPECT_EQ(v.exit_code(), 0) << arithmetic;
    for (const char* cache : {"k_cache", "v_cache"}) {
      const Row& row = row_of(v, std::string("decode.2.layer1.") + cache);
      EXPECT_EQ(row.elements, 2 * 1 * 2 * 4) << "the new slot of two rows";
      EXPECT_EQ(row.unknown, 2 * 9 * 2 * 4);
      EXPECT_EQ(row.why, "the trace has no ids of prefill.c0 to decode.1");
      EXPECT_TRUE(row.fit == Fit::within || row.fit == Fit::equal);
    }
    EXPECT_EQ(row_of(v, "decode.2.layer1.attn").unknown, 0);
  }
  // The new slot is judged: its last number.
  std::vector<Written> values = of_pass(run, "decode.2");
  named(values, "decode.2.layer1.v_cache").numbers.back() += 0.5;
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(row_of(v, "decode.2.layer1.v_cache").fit, Fit::different);
}

TEST(OnePass, CachesThatAreHandedInAreOperandsAsTheyAre) {
  const ExactRun run(kLlama);
  std::vector<Written> values = of_pass(run, "decode.2");
  for (const char* layer : {"layer0.", "layer1."})
    for (const char* cache : {"k_cache", "v_cache"}) {
      const std::string id = std::string("decode.1.") + layer + cache;
      values.push_back(written(std::string("decode.2.") + layer + "old_" + cache, "BMKQ",
                               run.value(id), {{"meaning", std::string("previous ") + cache}}));
    }
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(v.count(Fit::different), 0);
  EXPECT_EQ(v.exit_code(), 0);
  const Row& handed = row_of(v, "decode.2.layer0.old_k_cache");
  EXPECT_EQ(handed.fit, Fit::not_judged);
  EXPECT_EQ(handed.why, "handed in: the trace has nothing else of decode.1");
  EXPECT_EQ(row_of(v, "decode.2.layer0.k_cache").unknown, 0);
  // An old slot that is not what was handed in.
  std::vector<Written> wrong = values;
  named(wrong, "decode.2.layer1.k_cache").numbers[3] += 1.0;
  const Verdict w = run.judged(wrong, "f32");
  ASSERT_TRUE(w.first);
  EXPECT_EQ(w.rows[*w.first].name, "decode.2.layer1.k_cache");
  // Handed in with the whole run it is judged as the value that it is.
  std::vector<Written> all = run.values();
  all.push_back(named(values, "decode.2.layer1.old_v_cache"));
  all.back().numbers[1] += 1.0;
  const Verdict in_run = run.judged(all, "f32");
  EXPECT_EQ(row_of(in_run, "decode.2.layer1.old_v_cache").fit, Fit::different);
}

TEST(OnePass, WithoutCachesAttentionIsNotJudged) {
  const ExactRun run(kLlama);
  std::vector<Written> values = of_pass(run, "decode.2");
  std::erase_if(values, [](const Written& w) {
    for (const char* of : {"cache", "score", "max", "exp", "denom"})
      if (w.name.ends_with(of)) return true;
    return false;
  });
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(v.count(Fit::different), 0);
  EXPECT_NE(row_of(v, "decode.2.layer0.attn").fit, Fit::within);
  EXPECT_NE(row_of(v, "decode.2.layer0.attn").fit, Fit::equal);
  EXPECT_EQ(row_of(v, "decode.2.layer0.attn_out").fit, Fit::within);
}

TEST(OnePass, WithoutAnyIdsThePromptIsTheSeeds) {
  const ExactRun run(kLlama);
  std::vector<Written> values = of_pass(run, "decode.1");
  std::erase_if(values, [](const Written& w) { return w.name.ends_with("ids"); });
  const Verdict v = run.judged(values, "f32");
  EXPECT_EQ(v.count(Fit::different), 0);
  EXPECT_EQ(row_of(v, "decode.1.layer1.k_cache").unknown, 0);
  EXPECT_NE(row_of(v, "decode.1.embed").fit, Fit::not_judged);
}

TEST(BadValue, AnIdOfNoTokenCostsItsRowOfTheEmbedding) {
  const ExactRun run(kLlama);
  std::vector<Written> values = run.values();
  named(values, "prefill.c0.token").numbers[1] = 31;  // a padding id's
  named(values, "decode.1.ids").numbers[1] = 31;
  const Judged j = judged(run, run.trace(values, "f32"));
  ASSERT_TRUE(j.verdict.first);
  EXPECT_EQ(j.verdict.rows[*j.verdict.first].name, "prefill.c0.token");
  EXPECT_EQ(j.verdict.count(Fit::different), 1);
  EXPECT_EQ(j.verdict.exit_code(), 1);
  EXPECT_TRUE(has_note(j, "prefill.c0.token: 31 is a padding id: the vocabulary has 30"));
  EXPECT_TRUE(has_note(j, "decode.1.ids: 31 is a padding id"));
  const Row& embed = row_of(j.verdict, "decode.1.embed");
  EXPECT_EQ(embed.unknown, 16);
  EXPECT_EQ(embed.elements, 16);
  EXPECT_EQ(embed.why, "31 of decode.1.ids is not a token id");
  EXPECT_EQ(row_of(j.verdict, "decode.2.layer1.out").unknown, 0);
  // Of a prompt as of what follows it.
  named(values, "prefill.c0.ids").numbers[0] = -4;
  const Judged first = judged(run, run.trace(values, "f32"));
  EXPECT_EQ(row_of(first.verdict, "prefill.c0.ids").fit, Fit::not_judged);
  EXPECT_EQ(row_of(first.verdict, "prefill.c0.ids").why, "-4 is not a token id");
  EXPECT_EQ(row_of(first.verdict, "prefill.c0.embed").unknown, 16);
}

TEST(BadValue, CostsNoOther) {
  const ExactRun run(kLlama);
  const std::vector<Written> values = run.values();
  for (const char* name : {"prefill.c0.layer0.gate", "decode.2.layer1.out", "decode.1.logits"}) {
    dump::Dump d = run.trace(values, "f32");
    dump::Value& value = d.values.find(name)->second;
    const Shape shape = value.whole.shape;
    value.whole.shape = {shape[0], element_count(shape) / shape[0] / 2, 2};
    if (shape.size() == 2) value.whole.shape = {shape[0] * shape[1]};
    const Verdict v = run.judged(d);
    const Row& row = row_of(v, name);
    EXPECT_EQ(row.fit, Fit::not_judged) << name;
    EXPECT_FALSE(row.why.empty()) << name;
    EXPECT_EQ(row.why.find(name), std::string::npos) << row.why;
    EXPECT_EQ(v.misfits, 1);
    EXPECT_EQ(v.exit_code(), 1) << "nobody is told that all is right";
    EXPECT_EQ(v.count(Fit::different), 0) << name;
    EXPECT_EQ(v.rows.size(), values.size());
    dump::Dump of_type = run.trace(values, "f32");
    of_type.values.find(name)->second.unread = "has elements of c128";
    EXPECT_EQ(row_of(run.judged(of_type), name).why, "has elements of c128");
  }
}

TEST(BadValue, LogitsOfAllPositionsAreJudgedAtTheLast) {
  for (const char* of : {"", " lengths=8,5"}) {
    const ExactRun run(kLlama + of);
    for (const bool stacked : {false, true}) {
      std::vector<Written> values = run.values();
      Written all = named(values, "prefill.c0.logits");
      const std::int64_t V = 30, L = 8;
      const std::vector<double> last = all.numbers;
      all.dims = "BLV", all.shape = {2, L, V};
      all.numbers.assign(static_cast<std::size_t>(2 * L * V), 7.0);
      const std::int64_t lengths[] = {8, *of != '\0' ? 5 : 8};
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t v = 0; v < V; ++v)
          all.numbers[static_cast<std::size_t>((b * L + lengths[b] - 1) * V + v)] =
              last[static_cast<std::size_t>(b * V + v)];
      std::erase_if(values, [](const Written& w) { return w.name == "prefill.c0.logits"; });
      const auto trace = [&] {
        dump::Dump d = run.trace(values, "f32");
        dump::Value value;
        value.attributes["layout"] = "BLV_x";
        if (!stacked) value.attributes.clear();
        run.put(value, all, Layout::parse("BLV_x"), Mesh::parse("x y z", run.source_case.torus),
                stacked ? 1 : 0);
        ExactRun::insert(d, all.name, value);
        return d;
      };
      const Judged j = judged(run, trace());
      EXPECT_EQ(j.verdict.count(Fit::different), 0);
      EXPECT_EQ(row_of(j.verdict, all.name).elements, 2 * V);
      EXPECT_EQ(row_of(j.verdict, "prefill.c0.token").fit, Fit::within);
      EXPECT_TRUE(has_note(j, "prefill.c0.logits: of all positions; each row's last"));
      all.numbers[static_cast<std::size_t>((L + lengths[1]) * V - 1)] += 1.0;
      const Verdict wrong = judged(run, trace()).verdict;
      ASSERT_TRUE(wrong.first);
      EXPECT_EQ(wrong.rows[*wrong.first].name, all.name);
      EXPECT_EQ(wrong.rows[*wrong.first].first->index, (Shape{1, V - 1}));
    }
  }
}

/// A trace of weights and of nothing else.
dump::Dump weights_alone(const ExactRun& run) {
  std::vector<Written> values;
  for (const WeightSpec& spec : weight_specs(run.source_case.model))
    values.push_back(written(spec.name, spec.dims, *run.weights().at(spec.name)));
  return run.trace(values, "f32");
}

TEST(WeightsAlone, AreJudged) {
  const ExactRun run("torus=1x1x1 model=llama,layers=1,E=16,F=16,H=4,K=2,Q=4,V=30 batch=1 gen=1");
  const Verdict right = run.judged(weights_alone(run));
  EXPECT_EQ(right.exit_code(), 0);
  EXPECT_EQ(right.compared, 0);
  dump::Dump d = weights_alone(run);
  d.values.find("layer0.w_out")->second.whole.bytes.back() ^= std::byte{1};
  const Verdict wrong = run.judged(d);
  EXPECT_EQ(wrong.exit_code(), 1);
  EXPECT_EQ(wrong.count(Fit::different), 1);
  // Ids with them prove nothing; values that are not right do not become it.
  dump::Dump empty = run.trace({}, "f32");
  EXPECT_EQ(run.judged(empty).exit_code(), 1);
}

TEST(WeightsAlone, ATransposedSquareOneIsSaidToBe) {
  const ExactRun run("torus=1x1x1 model=llama,layers=1,E=16,F=16,H=4,K=2,Q=4,V=30 batch=1 gen=1");
  Written turned =
      transposed(written("layer0.w_gate", "EF", *run.weights().at("layer0.w_gate")), "FE");
  const Judged j = judged(run, run.trace({turned}, "f32"));
  EXPECT_EQ(j.verdict.count(Fit::different), 1);
  EXPECT_TRUE(has_note(j, "layer0.w_gate is transposed: declare layout=FE")) << j.notes.size();
  dump::Dump d = run.trace({turned}, "f32");
  d.values.find("layer0.w_gate")->second.attributes["layout"] = "FE";
  EXPECT_EQ(judged(run, d).verdict.exit_code(), 0);
  turned.numbers[1] += 1.0;
  EXPECT_TRUE(judged(run, run.trace({turned}, "f32")).notes.empty());
}

/// By the first norm, whose gain and bias are taken off, as by the embedding itself.
TEST(OtherIds, AreReadOffTheFirstNorm) {
  for (const std::string norm : {"rmsnorm", "layernorm"}) {
    const ExactRun run(
        "torus=1x1x1 model=llama,norm=" + norm +
        ",bias=all,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 prompt=3 gen=1 seed=3");
    const std::vector<std::size_t> ids{5, 17, 2, 9, 0, 23};
    const Tensor &table = *run.weights().at("embed"), &gain = *run.weights().at("layer0.norm");
    const bool biased = run.weights().contains("layer0.norm_bias");
    std::vector<Written> values = run.values();
    std::erase_if(values, [](const Written& w) { return w.name != "prefill.c0.layer0.norm"; });
    ASSERT_EQ(values.size(), 1U);
    for (std::size_t token = 0; token < ids.size(); ++token) {
      const float* const x = &table.data[ids[token] * 16];
      double mean = 0.0, squares = 0.0;
      for (std::size_t e = 0; e < 16; ++e) mean += static_cast<double>(x[e]) / 16;
      if (norm == "rmsnorm") mean = 0.0;
      for (std::size_t e = 0; e < 16; ++e) squares += std::pow(static_cast<double>(x[e]) - mean, 2);
      for (std::size_t e = 0; e < 16; ++e) {
        double y = (static_cast<double>(x[e]) - mean) / std::sqrt(squares / 16 + 1e-5) *
                   static_cast<double>(gain.data[e]);
        if (biased) y += static_cast<double>(run.weights().at("layer0.norm_bias")->data[e]);
        values[0].numbers[token * 16 + e] = f32(y);
      }
    }
    const Judged j = judged(run, run.trace(values, "f32"));
    EXPECT_TRUE(std::any_of(j.notes.begin(), j.notes.end(), [](const std::string& note) {
      return note.find("of other ids than the seed's prompt, 5, 17, 2, 9, 0, 23") != note.npos;
    })) << norm;
  }
}

}  // namespace
}  // namespace shardproof::dump
