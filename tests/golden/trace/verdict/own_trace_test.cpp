// Traces that Shardproof writes: each of their values has a verdict, and no change of one stays
// unseen, of partial sums, statistics, last positions and positions, too.
#include "tests/golden/trace/own_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "tests/golden/trace/written.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

const std::string kOwn =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
    "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2 seed=5 ";

const std::string kLayernorm =
    "torus=2x1x3 model=falcon,layers=1,E=12,F=12,H=6,K=1,Q=2,V=12,bias=all prefill=wg-x "
    "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2 seed=5 weights=int8 act=bf16 ";

/// Of heads and ids some are padding.
const std::string kPadded =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=4,K=2,Q=2,V=7 prefill=ws2d:heads "
    "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2 seed=5 pad_heads=6 pad_vocab=12 ";

std::string in_base_two(std::string line) {
  return line.insert(line.find(" prefill"), ",softmax=base2");
}

const std::string kRandom = "top_k=7 top_p=0.8 temperature=0.3";

/// Chunks in which some rows go on, some end and some have no token.
const std::string kRagged =
    "torus=1x1x2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws1d decode=ws1d batch=6 "
    "prompt=6 lengths=3,5,6,2,6,5 chunk=4 gen=3 seed=5 ";

/// Partial sums of int8 products that are sent to other chips before they are added up.
const std::string kMoved =
    "torus=2x2x2 model=palm-tiny,layers=1,E=16,F=32,H=8,K=8,Q=4,V=32 prefill=wg-xy:batch "
    "decode=ws2d:pre-y block=serial weights=int8 batch=8 prompt=3 chunk=2 gen=2 seed=5 ";

/// Of f32 and i32 the last bit; `far`: as much as the largest number there, and one more.
void change_one(dump::StoredArray& s, std::mt19937_64& random, bool far) {
  const std::size_t i = random() % s.size();
  double most = 0.0;
  for (std::size_t k = 0; k < s.size(); ++k) most = std::max(most, std::abs(s.at(k)));
  const double v = s.at(i) + most + 1.0;
  const auto put = [&](auto x) { std::memcpy(own_bytes(s).data() + i * sizeof x, &x, sizeof x); };
  if (s.encoding == NumberFormat::f64) {
    put(v);
  } else if (s.encoding == NumberFormat::int32) {
    put(static_cast<std::int32_t>(s.at(i)) ^ 1);
  } else if (far) {
    put(static_cast<float>(v));
  } else {
    put(std::bit_cast<std::uint32_t>(static_cast<float>(s.at(i))) ^ 1U);
  }
}

TEST(OwnTrace, EachValueHasAVerdict) {
  for (const std::string& line :
       {kOwn, kOwn + "weights=int8 act=bf16", kOwn + "regime=f32",
        kOwn + "regime=f32 act=bf16 wire=bf16", kLayernorm, kLayernorm + "regime=f32", kPadded,
        kPadded + "regime=f32", kPadded + "weights=int8 act=bf16", in_base_two(kOwn),
        in_base_two(kLayernorm), in_base_two(kOwn) + "regime=f32", kOwn + kRandom,
        kOwn + "regime=f32 " + kRandom, kRagged + kRandom, kRagged + "regime=f32 " + kRandom}) {
    const ExactRun run(line);
    const Verdict v = run.judged(own_trace(line));
    EXPECT_EQ(v.compared, v.whole) << line;
    EXPECT_TRUE(v.unknown.empty()) << line << ": " << v.unknown[0].name;
    EXPECT_EQ(v.count(Fit::different), 0) << line;
    for (const Row& row : v.rows) EXPECT_TRUE(row.fit != Fit::not_judged || row.why == "an input");
  }
}

/// Every schedule, loop, format of sums and of what is sent: none is different from what it claims.
TEST(OwnTrace, OfEveryWayToAddIsRight) {
  OneInN take(7, "ways");
  for (const std::string& line : {kOwn, kLayernorm, kPadded, kMoved})
    for (const char* const order :
         {"schedule=group", "schedule=ring", "schedule=tree", "schedule=biring", "loop=one-way",
          "loop=both-full", "loop=both-half"})
      for (const char* const format : {"acc=f32", "acc=bf16", "wire=bf16", "acc=bf16 wire=bf16"}) {
        if (!take()) continue;
        const std::string f32 = fmt::format("{} regime=f32 {} {}", line, order, format);
        const ExactRun run(f32);
        const Verdict v = run.judged(own_trace(f32));
        EXPECT_EQ(v.count(Fit::different), 0)
            << f32 << ": " << (v.first ? v.rows[*v.first].title : std::string());
        EXPECT_EQ(v.count(Fit::unlikely), 0) << f32;
      }
}

/// Each schedule is of the kind of reduction that its name says.
TEST(OwnTrace, OfASchedulePinsItsReduction) {
  OneInN take(5, "schedules");
  for (const std::string& line : {kOwn, kMoved})
    for (const auto& [order, reduction] : {std::pair{"schedule=group", "group"},
                                           {"schedule=ring", "ring"},
                                           {"schedule=tree", "tree"},
                                           {"schedule=biring", "ring"},
                                           {"loop=one-way", "ring"},
                                           {"loop=both-full", "ring"},
                                           {"loop=both-half", "ring"}}) {
      if (!take()) continue;
      const std::string f32 = fmt::format("{} regime=f32 wire=bf16 {}", line, order);
      dump::Dump d = own_trace(f32);
      d.attributes["reduction"] = reduction;
      const Verdict v = ExactRun(f32).judged(d);
      EXPECT_EQ(v.count(Fit::different), 0)
          << f32 << ": " << (v.first ? v.rows[*v.first].title : std::string());
    }
}

/// Of each meaning in either phase a value, of which one number is changed on one chip: its row is
/// different.
void expect_each_change_seen(const std::string& line, bool exact) {
  const ExactRun run(line);
  const dump::Dump right = own_trace(line);
  std::uint64_t seed = 0;
  std::set<std::string> done;
  for (const auto& [name, value] : right.values) {
    const auto meaning = value.attributes.find("meaning");
    if (value.attributes.contains("same_as") || name.ends_with(".ids")) continue;
    const bool partial = value.attributes.at("layout").find("partialsum") != std::string::npos;
    const std::string what = (meaning == value.attributes.end() ? "" : meaning->second) +
                             (partial ? " in partial sums of " : " of ") + name.substr(0, 6);
    if (!done.insert(what).second) continue;
    std::mt19937_64 random(++seed);
    dump::Dump d = right;
    dump::Value& changed = d.values.find(name)->second;
    dump::StoredArray* s = &changed.whole;
    if (changed.in_shards())
      s = &std::next(changed.chips.begin(),
                     static_cast<std::ptrdiff_t>(random() % changed.chips.size()))
               ->second;
    change_one(*s, random, !exact || partial);
    const Verdict v = run.judged(d);
    EXPECT_EQ(v.exit_code(), 1) << what;
    bool seen = false;
    for (const Row& row : v.rows) seen = seen || (row.name == name && row.fit == Fit::different);
    EXPECT_TRUE(seen) << what;
  }
}

/// Returns the axes that a value is partial over; empty if it is not.
std::string partial_axes(const dump::Value& value) {
  static constexpr std::string_view kMark = "partialsum-";
  const std::string& layout = value.attributes.at("layout");
  const std::size_t at = layout.find(kMark);
  return at == std::string::npos ? "" : layout.substr(at + kMark.size());
}

/// Returns the row of a value by its name in the trace.
Row row_named(const Verdict& verdict, const std::string& name) {
  const auto row = std::find_if(verdict.rows.begin(), verdict.rows.end(),
                                [&](const Row& of) { return of.name == name; });
  EXPECT_NE(row, verdict.rows.end()) << name;
  return row == verdict.rows.end() ? Row() : *row;
}

// Chips' partial sums that add up to the right total, but are each another's, where all arrays of
// an operand have one layout: each of them in ws1d, and gate and up in ws2d.
TEST(OwnTrace, OfPartialSumsIsJudgedChipByChip) {
  const std::string one_axis =
      "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws1d:heads "
      "decode=ws1d:heads batch=6 prompt=3 chunk=2 gen=2 seed=5 ";
  int swapped = 0;
  for (const char* how : {"", "act=bf16", "weights=bf16 act=bf16", "regime=f32",
                          "regime=f32 act=bf16", "regime=f32 wire=bf16"})
    for (const std::string& line : {kOwn + "block=serial ", one_axis, one_axis + "block=serial "}) {
      const ExactRun run(line + how);
      const dump::Dump right = own_trace(line + how);
      for (const auto& [name, value] : right.values) {
        const std::string axes = partial_axes(value);
        if (axes.empty() || !name.starts_with("decode.1.layer1.") || name.find(".ss") != name.npos)
          continue;
        if (line.starts_with(kOwn) && !name.ends_with(".h") && !name.ends_with(".u")) continue;
        dump::Dump wrong = right;
        ASSERT_TRUE(value.in_shards()) << name;
        auto& chips = wrong.values.find(name)->second.chips;
        std::swap(chips.at({0, 0, 0}), chips.at({axes.starts_with('x') ? 1 : 0, 0, axes == "z"}));
        ++swapped;
        const Row row = row_named(run.judged(wrong), name);
        EXPECT_EQ(row.fit, Fit::different) << line << how << ' ' << name;
        EXPECT_EQ(row.wrong_parts.size(), 2U) << line << how << ' ' << name;
      }
    }
  EXPECT_EQ(swapped, 6 * (2 + 1 + 2));
}

// Of each chip's partial sum, in the first pass and the last, one element is off by what f32 would
// round away, or no number: that part is wrong, and no other.
TEST(OwnTrace, OfAnExactRunShowsAWrongElementOfEachChip) {
  const std::string line =
      "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws1d:heads "
      "decode=ws1d:heads block=serial batch=6 prompt=3 chunk=2 gen=3 act=bf16 seed=5 ";
  const ExactRun run(line);
  const dump::Dump right = own_trace(line);
  int parts = 0;
  for (const char* pass : {"prefill.c0.", "decode.2."})
    for (const auto& [name, value] : right.values) {
      if (partial_axes(value).empty() || !name.starts_with(std::string(pass) + "layer0.") ||
          name.find(".ss") != name.npos)
        continue;
      for (const auto& [chip, shard] : value.chips) {
        const std::size_t last = shard.size() - 1;
        for (const double v : {shard.at(last) * (1 + 0x1p-26) + 0x1p-40, std::nan(""), -0.0}) {
          dump::Dump wrong = right;
          poke(wrong.values.find(name)->second.chips.at(chip), last, v);
          const Row row = row_named(run.judged(wrong), name);
          EXPECT_EQ(row.fit, Fit::different) << name << ' ' << v;
          EXPECT_EQ(row.wrong, 1) << name << ' ' << v;
          EXPECT_EQ(row.wrong_parts.size(), 1U) << name << ' ' << v;
          ++parts;
        }
      }
    }
  EXPECT_EQ(parts, 2 * 2 * 6 * 3);
}

// In the exact regime no partial sum is rounded, though what follows it is.
TEST(OwnTrace, OfAnExactRunShowsAPartialSumThatIsRounded) {
  const std::string line =
      "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws1d:heads "
      "decode=ws1d:heads block=serial batch=6 prompt=3 gen=1 act=bf16 seed=5 ";
  const ExactRun run(line);
  dump::Dump d = own_trace(line);
  int rounded = 0;
  for (const auto& [name, value] : dump::Dump(d).values) {
    if (partial_axes(value).empty() || name.find(".layer0.") == name.npos) continue;
    if (name.find(".ss") != name.npos) continue;
    dump::Dump wrong = d;
    for (auto& [chip, shard] : wrong.values.find(name)->second.chips)
      for (std::size_t i = 0; i < shard.size(); ++i)
        poke(shard, i, bounds::nearest(shard.at(i), NumberFormat::bf16));
    ++rounded;
    EXPECT_EQ(row_named(run.judged(wrong), name).fit, Fit::different) << name;
  }
  EXPECT_GT(rounded, 1);
}

// As many elements are judged as stand there, whether by chip or in total.
TEST(OwnTrace, OfPartialSumsCountsEachNumber) {
  for (const char* how : {"", "act=bf16", "regime=f32"}) {
    const std::string line = kOwn + how;
    const dump::Dump d = own_trace(line);
    int partial = 0;
    for (const Row& row : ExactRun(line).judged(d).rows) {
      const auto value = d.values.find(row.name);
      if (value == d.values.end() || partial_axes(value->second).empty()) continue;
      ++partial;
      std::int64_t numbers = 0;
      for (const auto& [chip, shard] : value->second.chips)
        numbers += static_cast<std::int64_t>(shard.size());
      EXPECT_EQ(row.elements, numbers) << line << ' ' << row.name;
    }
    EXPECT_GT(partial, 10) << line;
  }
}

TEST(OwnTrace, OfAnExactRunShowsEachChangedBit) {
  expect_each_change_seen(kOwn, true);
  expect_each_change_seen(kLayernorm, true);
  expect_each_change_seen(kOwn + kRandom, true);
}

TEST(OwnTrace, OfAnF32RunShowsEachChange) {
  expect_each_change_seen(kOwn + "regime=f32", false);
  expect_each_change_seen(kLayernorm + "regime=f32", false);
  expect_each_change_seen(kOwn + "regime=f32 " + kRandom, false);
}

/// Of random sampling what there is without f32 logits has no verdict, and says why.
TEST(OwnTrace, WithoutItsLogitsHasNoTokensJudged) {
  const std::string line = kOwn + "regime=f32 " + kRandom;
  dump::Dump d = own_trace(line);
  for (auto at = d.values.begin(); at != d.values.end();)
    at = at->first.find(".head.logits") != std::string::npos ||
                 at->first.find(".head.z") != std::string::npos
             ? d.values.erase(at)
             : std::next(at);
  const Verdict v = ExactRun(line).judged(d);
  int tokens = 0;
  for (const Row& row : v.rows) {
    if (!row.title.ends_with(".token")) continue;
    ++tokens;
    EXPECT_EQ(row.fit, Fit::not_judged) << row.title;
    EXPECT_EQ(row.why, "random sampling is of f32 logits, and the trace has none");
  }
  EXPECT_EQ(tokens, 2);
}

/// Rows that draw by other numbers have other tokens; the trace says by which.
TEST(OwnTrace, SaysWhatItsRowsDrawBy) {
  const std::string line = kOwn + "temperature=3";
  dump::Dump d = own_trace(line);
  d.attributes["rows"] = "5,4,3,2,1,0";
  EXPECT_EQ(ExactRun(line).judged(d).exit_code(), 1);
  d.attributes["rows"] = "0,1,2,3,4,5";
  EXPECT_EQ(ExactRun(line).judged(d).exit_code(), 0);
  for (const char* bad : {"0,1", "0,1,2,3,4,x", ""}) {
    d.attributes["rows"] = bad;
    EXPECT_EQ(label_of([&] { ExactRun(line).judged(d); }), "dump_attribute") << bad;
  }
}

/// Padding is said of each value, and by the case; what stands there means nothing.
TEST(OwnTrace, OfPaddedDimsIsJudgedWithoutPadding) {
  const ExactRun run(kPadded);
  dump::Dump d = own_trace(kPadded);
  EXPECT_EQ(d.values.find("decode.1.layer0.q")->second.attributes.at("padded"), "H");
  EXPECT_EQ(d.values.find("decode.1.layer0.kc")->second.attributes.at("padded"), "K");
  EXPECT_EQ(d.values.find("embed")->second.attributes.at("padded"), "V");
  EXPECT_FALSE(d.values.find("decode.1.layer0.out")->second.attributes.contains("padded"));
  // By the case alone.
  for (auto& [name, value] : d.values) value.attributes.erase("padded");
  const Verdict by_case = run.judged(d);
  EXPECT_EQ(by_case.count(Fit::different), 0);
  EXPECT_EQ(by_case.compared, by_case.whole);
  // The last logit is a padded id's, that of id 6 the model's last.
  dump::StoredArray& logits = d.values.find("decode.1.head.logits")->second.whole;
  ASSERT_EQ(logits.shape, (Shape{6, 12}));
  const float large = 1e6F;
  std::memcpy(own_bytes(logits).data() + 11 * sizeof large, &large, sizeof large);
  EXPECT_EQ(run.judged(d).count(Fit::different), 0);
  std::memcpy(own_bytes(logits).data() + 6 * sizeof large, &large, sizeof large);
  EXPECT_GT(run.judged(d).count(Fit::different), 0);
}

}  // namespace
}  // namespace shardproof::dump
