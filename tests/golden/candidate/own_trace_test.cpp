// Traces that Shardproof writes: each of their values has a verdict, and no change of one stays
// unseen, of summands, statistics, last positions and positions, too.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tests/golden/candidate/written.h"
#include "tests/golden/trace/traced_run.h"

namespace shardproof::candidate {
namespace {

const std::string kOwn =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
    "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2 seed=5 ";

const std::string kLayernorm =
    "torus=2x1x3 model=falcon,layers=1,E=12,F=12,H=6,K=1,Q=2,V=12,bias=all prefill=wg-x "
    "decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2 seed=5 weights=int8 act=bf16 ";

dump::Dump own_trace(const std::string& line) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) /
      (std::string("own_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5");
  const Traced traced = trace_case(parse_case(line), file);
  EXPECT_EQ(traced.judgement.verdict, shardproof::Verdict::equal) << line;
  dump::Dump d = dump::read_dump(file.string());
  std::filesystem::remove(file);
  return d;
}

/// Of f32 and i32 the last bit; `far`: as much as the largest number there, and one more.
void change_one(dump::Stored& s, std::mt19937_64& random, bool far) {
  const std::size_t i = random() % s.size();
  double most = 0.0;
  for (std::size_t k = 0; k < s.size(); ++k) most = std::max(most, std::abs(s.at(k)));
  const double v = s.at(i) + most + 1.0;
  const auto put = [&](auto x) { std::memcpy(s.bytes.data() + i * sizeof x, &x, sizeof x); };
  if (s.encoding == dump::Encoding::f64) {
    put(v);
  } else if (s.encoding == dump::Encoding::int32) {
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
        kOwn + "regime=f32 act=bf16 wire=bf16", kLayernorm, kLayernorm + "regime=f32"}) {
    const ExactRun run(line);
    const Verdict v = run.judged(own_trace(line));
    EXPECT_EQ(v.compared, v.whole) << line;
    EXPECT_TRUE(v.unknown.empty()) << line << ": " << v.unknown[0].name;
    EXPECT_EQ(v.count(Fit::different), 0) << line;
    for (const Row& row : v.rows) EXPECT_TRUE(row.fit != Fit::not_judged || row.why == "an input");
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
                             (partial ? " in summands of " : " of ") + name.substr(0, 6);
    if (!done.insert(what).second) continue;
    std::mt19937_64 random(++seed);
    dump::Dump d = right;
    dump::Value& changed = d.values.find(name)->second;
    dump::Stored* s = &changed.whole;
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

TEST(OwnTrace, OfAnExactRunShowsEachChangedBit) {
  expect_each_change_seen(kOwn, true);
  expect_each_change_seen(kLayernorm, true);
}

TEST(OwnTrace, OfAnF32RunShowsEachChange) {
  expect_each_change_seen(kOwn + "regime=f32", false);
  expect_each_change_seen(kLayernorm + "regime=f32", false);
}

}  // namespace
}  // namespace shardproof::candidate
