// Traces of the oracle's values in any layout and form are right, and no change of one stays
// unseen: at every pass, name and kind of number.
#include "golden/trace/verdict/verdict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/golden/trace/written.h"
#include "tests/sanitized.h"
#include "tests/weights/on_demand.h"

namespace shardproof::dump {
namespace {

TEST(Verdict, OfRightValuesInAnyFormIsEqualOrWithin) {
  for (const char* keys :
       {"", " block=serial", " weights=int8", " act=bf16", " weights=bf16 act=bf16"}) {
    const ExactRun run(kLine + keys);
    const bool floats = std::string(keys).find("act") == std::string::npos;
    for (std::uint64_t seed = 0; seed < (floats ? 6 : 5); ++seed) {
      std::mt19937_64 random(seed);
      const bool exact = seed < 5;  // the last as floats
      const Verdict v = run.judged(run.trace(run.values(), exact ? "exact" : "f32", &random));
      EXPECT_EQ(v.compared, v.whole) << keys;
      EXPECT_EQ(v.count(Fit::different) + v.count(Fit::loose), 0) << keys << " " << seed;
      if (exact) {
        EXPECT_EQ(v.count(Fit::equal) + v.count(Fit::not_judged), std::ssize(v.rows));
      }
      EXPECT_EQ(v.exit_code(), 0);
    }
  }
}

/// What a verdict says, with all numbers.
std::vector<std::string> lines(const Verdict& v) {
  std::vector<std::string> all{fmt::format("{} of {}", v.compared, v.whole)};
  for (const Row& row : v.rows)
    all.push_back(fmt::format("{} {} {} {} {} {} {} {}", row.title, static_cast<int>(row.fit),
                              row.elements, row.wrong, row.extent.worst, row.extent.found,
                              row.drift, row.why));
  all.insert(all.end(), v.not_shown.begin(), v.not_shown.end());
  return all;
}

/// Large models: weights are read for each value that needs them.
TEST(Verdict, OfWeightsOnDemandIsTheSame) {
  for (const char* keys : {"", " block=serial", " weights=int8", " weights=bf16 act=bf16"})
    for (const char* arithmetic : {"exact", "f32"}) {
      const ExactRun run(kLine + keys);
      dump::Dump d = run.trace(run.values(), arithmetic);
      for (const std::string& name : run.weights().names()) {
        const auto tensor = run.weights().at(name);
        d.values[name].whole = stored(tensor->shape, {tensor->data.begin(), tensor->data.end()});
        d.order.push_back(name);
      }
      const Weights each = on_demand(run.weights());
      const Claim claim = read_claim(d.attributes, std::nullopt);
      const Values values = read_values(d, claim, each);
      Reference reference(values, claim, each);
      const Verdict of_each = judge(values, claim, reference);
      EXPECT_EQ(lines(of_each), lines(run.judged(d))) << keys << arithmetic;
      EXPECT_GT(of_each.rows.size(), run.weights().names().size());
    }
}

/// The number of a value that is changed, by place in the array, and the change.
struct Change {
  const char* what;
  std::function<double(double)> to;
};
const Change kChanges[] = {
    {"a bit",
     [](double v) {
       return std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) ^ (std::uint64_t{1} << 29));
     }},
    {"NaN", [](double) { return std::numeric_limits<double>::quiet_NaN(); }},
    {"the sign", [](double v) { return -v; }},
    {"infinity", [](double) { return std::numeric_limits<double>::infinity(); }}};

/// One number of a value, on one chip.
void change(dump::Value& value, std::mt19937_64& random, const std::function<double(double)>& to) {
  dump::StoredArray* s = &value.whole;
  if (value.in_shards())
    s = &std::next(value.chips.begin(), static_cast<std::ptrdiff_t>(random() % value.chips.size()))
             ->second;
  const std::size_t i = random() % s->size();
  poke(*s, i, to(s->at(i)));
}

TEST(Verdict, OfOneChangedNumberNamesItsValue) {
  const ExactRun run(kLine);
  const std::vector<Written> values = run.values();
  std::uint64_t seed = 0;
  for (const bool exact : {true, false}) {
    OneInN next(9, "changes");
    for (const Written& w : values) {
      if (w.name.starts_with("prefill") && w.name.ends_with(".ids")) continue;  // the input itself
      const bool integer = w.name.ends_with("ids") || w.name.ends_with("token");
      double squares = 0.0;
      for (const double v : w.numbers) squares += v * v;
      const double rms = std::sqrt(squares / static_cast<double>(w.numbers.size()));
      const Change by_rms{"a tenth of the rms", [&](double v) { return v + 0.1 * rms; }};
      for (const Change& c : exact ? std::vector<Change>(std::begin(kChanges), std::end(kChanges))
                                   : std::vector<Change>{by_rms, kChanges[1], kChanges[3]}) {
        if ((integer && !exact) || !next()) continue;
        std::mt19937_64 random(++seed);
        dump::Dump d = run.trace(values, exact ? "exact" : "f32", &random);
        change(d.values.find(w.name)->second, random, c.to);
        const Verdict v = run.judged(d);
        EXPECT_EQ(v.exit_code(), 1) << w.name << " " << c.what;
        if (integer) continue;
        EXPECT_EQ(first_of(v), w.name) << c.what;
        if (!exact || !v.first) continue;
        EXPECT_EQ(v.count(Fit::different), 1) << w.name << " " << c.what;
        EXPECT_GE(v.rows[*v.first].wrong, 1);
        EXPECT_TRUE(v.rows[*v.first].worst.has_value());
      }
    }
  }
}

/// Sums before and after their scale, and what is stored of them, in any layout.
std::vector<Written> stages(const ExactRun& run) {
  std::vector<Written> all;
  const std::string at = "decode.1.layer1.";
  const auto add = [&](const char* kind, const Tensor& t, const char* name) {
    all.push_back(written(at + "v" + std::to_string(all.size()), std::string(value_row(name)->dims),
                          t, {{"meaning", std::string(kind) + name}}));
  };
  const oracle::Answer& a = run.answer();
  for (const char* name : {"q", "score", "attn", "denom", "gate", "block_out"})
    add("raw ", a.raw_of(at + name), name);
  for (const char* name : {"q", "block_out"}) add("scaled ", a.scaled_of(at + name), name);
  for (const char* name : {"norm", "k", "k_rot", "k_cache", "attn", "out"})
    add("unstored ", a.unstored_of(at + name), name);
  return all;
}

TEST(Verdict, OfEachStageOfAContraction) {
  const ExactRun run(kLine + " weights=int8 act=bf16");
  const std::vector<Written> values = run.values(), more = stages(run);
  for (const char* arithmetic : {"exact", "f32"})
    for (std::size_t i = 0; i <= more.size(); ++i) {
      std::mt19937_64 random(i);
      std::vector<Written> all = values;
      for (const Written& w : more) all.push_back(w);
      double most = 0.0;
      if (i < more.size()) {  // one number of one of them
        Written& wrong = all[values.size() + i];
        for (const double v : wrong.numbers) most = std::max(most, std::abs(v));
        wrong.numbers[random() % wrong.numbers.size()] += most;
      }
      const Verdict v = run.judged(run.trace(all, arithmetic, &random));
      EXPECT_EQ(v.count(Fit::different), i < more.size() ? 1 : 0) << arithmetic;
      EXPECT_EQ(v.count(Fit::loose), 0);
      EXPECT_TRUE(std::all_of(v.rows.begin(), v.rows.end(), [](const Row& row) {
        return row.fit != Fit::not_judged || row.why.starts_with("an input");
      }));
      if (i < more.size()) {
        EXPECT_TRUE(v.first && v.rows[*v.first].name == more[i].name) << first_of(v);
      }
    }
}

/// The numbers of the last position of every row.
Written last_of(const ExactRun& run, const std::string& id, const std::string& name) {
  const Tensor whole = run.value(id);
  const auto inner = static_cast<std::size_t>(whole.shape[2]);
  Written w{name, "BE", {whole.shape[0], whole.shape[2]}, {}, {}};
  const std::size_t row = inner * static_cast<std::size_t>(whole.shape[1]);
  for (std::size_t i = 0; i < whole.data.size(); ++i)
    if (i % row >= row - inner) w.numbers.push_back(static_cast<double>(whole.data[i]));
  w.attributes["meaning"] = "last " + last_word(id);
  return w;
}

TEST(Verdict, OfLastPositionsIsThatOfTheWholeValueExactly) {
  const ExactRun run(kLine);
  for (const char* arithmetic : {"exact", "f32"})
    for (const bool wrong : {false, true}) {
      std::vector<Written> values = run.values();
      values.push_back(last_of(run, "prefill.c0.layer1.out", "prefill.c0.head.x"));
      double& v = values.back().numbers[17];
      if (wrong) v = static_cast<double>(std::nextafter(static_cast<float>(v), 9e9F));
      const Verdict verdict = run.judged(values, arithmetic);
      EXPECT_EQ(verdict.exit_code(), wrong ? 1 : 0);
      if (wrong) {
        EXPECT_EQ(verdict.rows[verdict.first.value()].name, "prefill.c0.head.x");
      }
    }
}

TEST(Verdict, OfLogitsIsByTheLastPositionsOfTheTrace) {
  const ExactRun run(kLine);
  std::vector<Written> values;
  for (const Written& w : run.values())
    if (w.name != "prefill.c0.final_norm") values.push_back(w);
  values.push_back(last_of(run, "prefill.c0.final_norm", "prefill.c0.head.xn"));
  Verdict v = run.judged(values, "f32");
  EXPECT_EQ(v.exit_code(), 0);
  EXPECT_EQ(v.compared, v.whole);
  // Twice the norm, and logits of it: only the norm is wrong.
  for (Written& w : values)
    if (w.name == "prefill.c0.head.xn" || w.name == "prefill.c0.logits")
      for (double& x : w.numbers) x *= 2;
  v = run.judged(values, "f32");
  ASSERT_TRUE(v.first.has_value());
  EXPECT_EQ(v.rows[*v.first].name, "prefill.c0.head.xn");
  EXPECT_EQ(v.count(Fit::different), 1);
}

TEST(Verdict, OfAMinusZero) {
  const ExactRun run(kLine);
  for (const char* name : {"prefill.c0.layer0.exp", "decode.1.layer1.score"}) {
    dump::Dump d = run.trace(run.values(), "exact");
    dump::StoredArray& s = d.values.find(name)->second.whole;
    std::size_t i = 0;
    while (i < s.size() && s.at(i) != 0.0) ++i;
    if (i == s.size()) continue;  // a decode step masks nothing
    poke(s, i, -0.0);
    EXPECT_EQ(first_of(run.judged(d)), name);
  }
}

TEST(Verdict, NamesChipAndIndex) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace({}, "exact");
  const Written w = run.whole("decode.1.layer1.gate");
  dump::Value& value = run.add(d, w, "B_zLF_x", 2);
  poke(value.chips.at({1, 0, 1}), 12 + 5, 1e3);  // rows 3 to 5, channels 12 to 23
  const Verdict v = run.judged(d);
  ASSERT_TRUE(v.first.has_value());
  const Row& row = v.rows[*v.first];
  EXPECT_EQ(row.first->chip, 1 * 2 + 1);
  EXPECT_EQ(row.first->index, (Shape{4, 0, 17}));
  EXPECT_EQ(row.first->actual, 1e3);
  EXPECT_EQ(row.first->low, w.numbers[4 * 36 + 17]);
  EXPECT_EQ(row.wrong, 1);
  EXPECT_EQ(row.wrong_parts.size(), 1U);
  EXPECT_EQ(row.chips, 6);
  EXPECT_EQ(v.compared, 1);
}

TEST(Verdict, OfNothingFails) {
  const ExactRun run(kLine);
  EXPECT_EQ(run.judged(run.trace({}, "exact")).exit_code(), 1);
  dump::Dump unknown = run.trace({{"somebody.value", "BL", {1, 1}, {1.0}, {}}}, "exact");
  const Verdict v = run.judged(unknown);
  EXPECT_EQ(v.exit_code(), 1);
  ASSERT_EQ(v.unknown.size(), 1u);
  EXPECT_EQ(v.unknown[0].name, "somebody.value");
}

TEST(Verdict, OfLooseValuesAloneFails) {
  const ExactRun run(kLine);
  std::vector<Written> values;
  for (Written w : run.values()) {
    const bool exponentials = w.name.ends_with("2.layer1.exp");
    if (!exponentials && !w.name.ends_with("2.layer1.score") && !w.name.ends_with("2.layer1.max"))
      continue;
    if (exponentials)
      for (double& v : w.numbers) v = f32(v * 1.03);
    else
      w.attributes["given"] = "true";
    values.push_back(std::move(w));
  }
  dump::Dump d = run.trace(values, "f32");
  d.attributes["ulp"] = "1000000";
  const Verdict v = run.judged(d);
  EXPECT_EQ(v.count(Fit::loose), 1);
  EXPECT_FALSE(v.proves());
  EXPECT_EQ(v.exit_code(), 1);
}

TEST(Verdict, OfWeightsAloneProvesAndOfIdsAloneFails) {
  const ExactRun run(kLine);
  std::vector<Written> values{
      written("layer1.wq", "EHQ", *run.weights().at("layer1.wq"), {{"layout", "EHQ"}})};
  for (const Written& w : run.values())
    if (w.name.ends_with(".ids")) values.push_back(w);
  const Verdict v = run.judged(values, "exact");
  EXPECT_EQ(v.count(Fit::different), 0);
  EXPECT_EQ(v.exit_code(), 0);
  std::erase_if(values, [](const Written& w) { return w.name == "layer1.wq"; });
  EXPECT_EQ(run.judged(values, "exact").exit_code(), 1);  // of ids alone
}

TEST(Verdict, CountsNoValueOfWhichAPartIsMissing) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace({}, "exact");
  run.add(d, run.whole("decode.1.layer0.gate"), "BLF_zx", 2).chips.erase({1, 0, 1});
  const Verdict v = run.judged(d);
  EXPECT_EQ(v.compared, 0);
  ASSERT_EQ(v.rows.size(), 1U);
  EXPECT_TRUE(v.rows[0].incomplete);
  EXPECT_EQ(v.rows[0].fit, Fit::equal);
}

TEST(Verdict, SaysWhatFollowsFromAWrongOperand) {
  const ExactRun run(kLine);
  std::vector<Written> values = run.values();
  // A gate that is twice what it should be, and all that an exact run would make of it next.
  for (const char* name : {"norm", "gate", "up"})
    for (double& v : named(values, std::string("decode.1.layer1.") + name).numbers) v *= 2;
  const Verdict v = run.judged(values, "exact");
  EXPECT_EQ(first_of(v), "decode.1.layer1.norm");
  const Row& gate = row_of(v, "decode.1.layer1.gate");
  EXPECT_EQ(gate.fit, Fit::different);
  EXPECT_TRUE(gate.follows);
}

TEST(Verdict, HoldsADecodeStepsIdsAgainstTheTokens) {
  const ExactRun run(kLine);
  std::vector<Written> values = run.values();
  double& id = named(values, "decode.1.ids").numbers[2];
  id = id == 0 ? 1 : 0;
  EXPECT_EQ(first_of(run.judged(values, "f32")), "decode.1.ids");
}

TEST(Verdict, TakesTheDumpsOwnPrompt) {
  const ExactRun run(kLine);
  const ExactRun other(kLine.substr(0, kLine.rfind("seed")) + "seed=6");
  // Values of seed 6, with its weights, judged as of its own prompt: the ids are in the trace.
  dump::Dump d = other.trace(other.values(), "exact");
  EXPECT_EQ(other.judged(d).exit_code(), 0);
  // The same prompt under the other case: weights of seed 5, values of seed 6.
  d.attributes["case"] = print_case(run.source_case);
  EXPECT_EQ(run.judged(d).exit_code(), 1);
}

TEST(Verdict, CountsCopiesThatDiffer) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace({}, "f32");
  dump::StoredArray& shard =
      run.add(d, run.whole("prefill.c0.layer0.k"), "BLKQ", 2).chips.at({2, 0, 1});
  poke(shard, 7, shard.at(7) * (1 + 0x1p-22));
  const Verdict v = run.judged(d);
  ASSERT_EQ(v.rows.size(), 1u);
  EXPECT_TRUE(v.rows[0].copies_differ);
}

}  // namespace
}  // namespace shardproof::dump
