// Traces of rows of unequal length: whatever stands at padding is neither missing nor wrong, and
// all else is judged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/golden/trace/own_trace.h"
#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::int64_t> kLengths{5, 2, 3, 1, 4, 5};
constexpr std::int64_t kChunk = 2;
const std::string kRun = " batch=6 prompt=5 chunk=2 gen=3 seed=5 lengths=5,2,3,1,4,5 ";
const std::string kUnequalRows =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
    "decode=ws2d:batch" +
    kRun;
const std::string kUnequalLayernorm =
    "torus=2x1x3 model=falcon,layers=1,E=12,F=12,H=6,K=1,Q=2,V=12,bias=all prefill=wg-x "
    "decode=ws2d:batch" +
    kRun;

std::int64_t pass_number(const std::string& id) {
  return id[id.starts_with("decode.") ? 7 : 9] - '0';
}

/// The tokens of a row in the pass of a value, and those up to then, counted by hand.
std::int64_t tokens_of(const std::string& id, std::size_t row) {
  if (id.starts_with("decode.")) return 1;
  std::int64_t tokens = 0;
  for (std::int64_t p = pass_number(id) * kChunk; p < (pass_number(id) + 1) * kChunk; ++p)
    tokens += p < kLengths[row] ? 1 : 0;
  return tokens;
}
std::int64_t end_of(const std::string& id, std::size_t row) {
  if (id.starts_with("decode.")) return kLengths[row] + pass_number(id);
  return std::min(kLengths[row], (pass_number(id) + 1) * kChunk);
}
bool samples(const std::string& id, std::size_t row) {
  return id.starts_with("decode.") || (kLengths[row] - 1) / kChunk == pass_number(id);
}

/// Which numbers of a value, with dims in the model's order, are padding.
std::vector<bool> padding_of(const Written& w) {
  std::vector<bool> padding;
  for (std::size_t i = 0; i < w.numbers.size(); ++i) {
    const Shape index = global_index(w.shape, static_cast<std::int64_t>(i));
    const auto row = static_cast<std::size_t>(index[0]);
    if (w.dims.starts_with("BM"))
      padding.push_back(index[1] >= end_of(w.name, row));
    else if (w.dims.starts_with("BL"))
      padding.push_back(index[1] >= tokens_of(w.name, row));
    else if (w.name.ends_with("token"))
      padding.push_back(!samples(w.name, row));
    else
      padding.push_back(tokens_of(w.name, row) == 0);
  }
  return padding;
}

/// All values of a run with this wherever there is padding.
std::vector<Written> with_padding(const ExactRun& run, double number) {
  std::vector<Written> values = run.values();
  for (Written& w : values) {
    const std::vector<bool> padding = padding_of(w);
    for (std::size_t i = 0; i < padding.size(); ++i)
      if (padding[i]) w.numbers[i] = number;
  }
  return values;
}

TEST(UnequalRowsCompared, OfOwnRunsAllIsJudged) {
  for (const std::string& line :
       {kUnequalRows, kUnequalRows + "weights=int8 act=bf16",
        kUnequalRows + "regime=f32 schedule=ring", kUnequalRows + "regime=f32 act=bf16 wire=bf16",
        kUnequalLayernorm, kUnequalLayernorm + "regime=f32 weights=int8"}) {
    const ExactRun run(line);
    expect_all_judged(run.judged(own_trace(line)), line);
  }
}

TEST(UnequalRowsCompared, WhateverStandsAtPaddingIsIgnored) {
  for (const char* keys :
       {"", "block=serial", "act=bf16", "weights=bf16 act=bf16", "weights=int8"}) {
    const ExactRun run(kUnequalRows + keys);
    std::uint64_t seed = 0;
    for (const double number : {0.0, kNaN, 1e30, -3.0}) {
      const std::vector<Written> values = with_padding(run, number);
      for (const char* arithmetic : {"exact", "f32"}) {
        if (arithmetic == std::string("f32") && std::string(keys).find("act") != std::string::npos)
          continue;
        std::mt19937_64 random(++seed);
        const Verdict v = run.judged(run.trace(values, arithmetic, &random));
        expect_all_judged(v, fmt::format("{} {} {}", keys, number, arithmetic));
        EXPECT_EQ(v.count(Fit::loose), 0) << keys << number << arithmetic;
      }
    }
  }
}

/// Every number of a value is another one: those that are not padding are counted as wrong.
TEST(UnequalRowsCompared, EverythingElseIsJudged) {
  std::string line = kUnequalRows;
  line.replace(line.find("layers=2"), 8, "layers=1");
  const ExactRun run(line);
  const std::vector<Written> right = with_padding(run, kNaN);
  std::set<std::string> padded;  // dims of values with padding
  for (const char* arithmetic : {"exact", "f32"})
    for (std::size_t k = 0; k < right.size(); ++k) {
      const bool input = right[k].name.starts_with("prefill") && right[k].name.ends_with(".ids");
      if (input || (arithmetic == std::string("f32") && k % 3 != 0)) continue;
      std::vector<Written> values = right;
      const bool token = values[k].name.ends_with("token"), id = values[k].name.ends_with("ids");
      for (double& v : values[k].numbers) v = token || id ? std::fmod(v + 5, 12) : v + 1e3;
      const std::vector<bool> padding = padding_of(values[k]);
      const auto judged = std::count(padding.begin(), padding.end(), false);
      if (judged < std::ssize(padding)) padded.insert(values[k].dims);
      const Verdict v = run.judged(values, arithmetic);
      ASSERT_TRUE(v.first.has_value()) << arithmetic << " " << values[k].name;
      const Row* row = nullptr;
      for (const Row& r : v.rows)
        if (r.name == values[k].name) row = &r;
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(row->fit, Fit::different) << arithmetic << " " << row->title;
      EXPECT_EQ(row->wrong, judged) << arithmetic << " " << row->title;
      EXPECT_EQ(row->elements, judged) << arithmetic << " " << row->title;
    }
  EXPECT_EQ(padded, (std::set<std::string>{"B", "BV", "BLE", "BLF", "BLH", "BLHM", "BLHQ", "BLKQ",
                                           "BMKQ"}));
}

/// Two values on the chips whose z is one of these.
dump::Dump on_chips(const ExactRun& run, const std::string& arithmetic,
                    const std::set<int>& of_gate, const std::set<int>& of_token) {
  dump::Dump d = run.trace({}, arithmetic);
  for (const Written& w : with_padding(run, kNaN)) {
    const bool token = w.name == "prefill.c0.token";
    if (w.name != "prefill.c2.layer0.gate" && !token) continue;
    dump::Value value;
    const Layout layout = Layout::parse(token ? "B_z" : "B_zLF_x");
    value.attributes["layout"] = layout.to_string();
    run.put(value, w, layout, Mesh::parse("x y z", run.source_case.torus), 2);
    std::erase_if(value.chips, [&](const auto& chip) {
      return !(token ? of_token : of_gate).contains(chip.first[2]);
    });
    ExactRun::insert(d, w.name, std::move(value));
  }
  return d;
}

/// Rows 2 and 3 have no token in the third chunk, rows 4 and 5 none that is sampled in the first.
TEST(UnequalRowsCompared, WhatIsPaddingAloneMayBeAbsentAndProvesNothing) {
  const ExactRun run(kUnequalRows);
  for (const char* arithmetic : {"exact", "f32"}) {
    const Verdict all = run.judged(on_chips(run, arithmetic, {0, 2}, {0, 1}));
    ASSERT_EQ(all.rows.size(), 2U);
    for (const Row& row : all.rows) {
      EXPECT_NE(row.fit, Fit::different) << arithmetic << " " << row.title;
      EXPECT_NE(row.fit, Fit::not_judged) << arithmetic << " " << row.title;
      EXPECT_FALSE(row.incomplete) << arithmetic << " " << row.title;
    }
    for (const Row& row : run.judged(on_chips(run, arithmetic, {1, 2}, {1, 2})).rows)
      EXPECT_TRUE(row.incomplete) << arithmetic << " " << row.title;
    const Verdict none = run.judged(on_chips(run, arithmetic, {1}, {2}));
    for (const Row& row : none.rows) {
      EXPECT_EQ(row.fit, Fit::not_judged) << arithmetic << " " << row.title;
      EXPECT_EQ(row.why, "it holds no number of the model's") << arithmetic;
    }
    EXPECT_FALSE(none.proves());
  }
}

/// The ids of a decode step are of each row the token of the pass in which it ends.
TEST(UnequalRowsCompared, IdsOfADecodeStepAreEachRowsLastToken) {
  const ExactRun run(kUnequalRows);
  std::vector<Written> values = with_padding(run, kNaN);
  std::erase_if(values, [](const Written& w) { return w.name == "decode.1.ids"; });
  expect_all_judged(run.judged(values, "exact"), "without ids");
  for (Written& w : values) {
    if (!w.name.starts_with("prefill.c") || !w.name.ends_with(".token")) continue;
    const std::vector<bool> padding = padding_of(w);
    for (std::size_t row = 0; row < padding.size(); ++row) {
      if (padding[row]) continue;
      const double was = w.numbers[row];
      w.numbers[row] = std::fmod(was + 1, 12);
      const dump::Dump d = run.trace(values, "f32");
      ExactRun::Read read(run, d);
      const IntTensor& right = run.answer().inputs.at("decode.1.ids");
      for (std::size_t r = 0; r < padding.size(); ++r)
        EXPECT_EQ(read.reference.ids("decode.1").data[r],
                  r == row ? static_cast<std::int32_t>(w.numbers[row]) : right.data[r])
            << w.name << " row " << row;
      EXPECT_FALSE(read.reference.on_same_ids("decode.1"));
      w.numbers[row] = was;
    }
  }
}

TEST(UnequalRowsCompared, ThePromptIsEachRowsTokens) {
  const ExactRun run(kUnequalRows);
  std::vector<Written> values = with_padding(run, 11);
  // Another prompt than the case's, at a token and at padding.
  named(values, "prefill.c1.ids").numbers = {1, 2, 7, 7, 3, 7, 7, 7, 4, 5, 6, 7};
  const dump::Dump d = run.trace(values, "f32");
  ExactRun::Read read(run, d);
  EXPECT_EQ(read.reference.ids("prefill.c1").data,
            (std::vector<std::int32_t>{1, 2, 0, 0, 3, 0, 0, 0, 4, 5, 6, 7}));
  EXPECT_EQ(read.reference.ids("prefill.c0").data, run.answer().inputs.at("prefill.c0.ids").data);
}

}  // namespace
}  // namespace shardproof::dump
