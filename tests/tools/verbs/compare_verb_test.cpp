// The verb `compare`: what it prints of traces that somebody wrote, and what it refuses.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/run/case.h"
#include "golden/memo/oracle_memo.h"
#include "tests/tools/cli_fixture.h"
#include "weights/hdf5/detail/writer.h"

namespace {

using namespace shardproof;

const std::string kCase =
    "torus=2x1x1 model=palm-tiny,layers=1,E=16,F=16,H=4,Q=4,V=24 batch=2 prompt=3 gen=2 seed=3";

class CompareVerb : public Cli {
 protected:
  CompareVerb() : known_(OracleMemo().get(parse_case(kCase))) {}

  /// A trace of the oracle's gate, and of another value's name if it is given.
  std::string trace(const std::string& name, float added = 0, const std::string& line = kCase,
                    const char* value = "prefill.c0.layer0.gate",
                    const char* layout = "BLF") const {
    Hdf5Writer file(path(name), "file_write");
    const auto root = file.root();
    root.put("format", "shardproof trace");
    root.put("version", 1);
    if (!line.empty()) root.put("case", line);
    root.put("arithmetic", "f32");
    if (std::string(value).empty()) {
      file.write();
      return name;
    }
    for (const char* id : {"prefill.c0.layer0.norm", "prefill.c0.layer0.gate"}) {
      Tensor t = known_->answer.checkpoints.at(id);
      const bool gate = std::string(id).ends_with("gate");
      if (gate) t.data[37] += added;
      auto made = file.dataset(root, gate ? value : id, t.shape, t.data);
      made.put("layout", gate ? layout : "BLE");
    }
    file.write();
    return name;
  }

  std::shared_ptr<const OracleMemo::Known> known_;
};

TEST_F(CompareVerb, OfWhatIsRight) {
  const Outcome o = run("compare " + trace("right.h5"));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("2 of 44 values compared; 2 rows: 2 within, 0 different"), std::string::npos)
      << o.out;
  EXPECT_EQ(run("compare right.h5 --quiet").out,
            "2 of 44 values compared; 2 rows: 2 within, 0 different\n");
  EXPECT_EQ(run("compare right.h5 --case '" + kCase + "'").code, 0);
}

TEST_F(CompareVerb, QuietLeavesOutInputs) {
  const auto trace_of = [&](const char* name, float added) {
    Hdf5Writer file(path(name), "file_write");
    const auto root = file.root();
    root.put("format", "shardproof trace");
    root.put("version", 1);
    root.put("case", kCase);
    const IntTensor& ids = known_->answer.inputs.at("prefill.c0.ids");
    file.dataset(root, "prefill.c0.ids", ids.shape, ids.data);
    Tensor t = known_->answer.checkpoints.at("prefill.c0.embed");
    t.data[3] += added;
    file.dataset(root, "prefill.c0.embed", t.shape, t.data);
    file.write();
    return std::string(name);
  };
  const std::string right = trace_of("right.h5", 0), wrong = trace_of("wrong.h5", 1);
  const std::string row = "prefill.c0.ids   not judged     an input\n";
  EXPECT_NE(run("compare " + right).out.find(row), std::string::npos);
  EXPECT_EQ(run("compare " + right + " --quiet").out,
            "1 of 44 values compared; 2 rows: 1 within, 0 different, 1 not judged\n");
  EXPECT_EQ(nlohmann::json::parse(run("compare " + right + " --quiet --json").out)["values"].size(),
            2U);
  EXPECT_NE(run("compare " + wrong).out.find(row), std::string::npos);
  const std::string said = run("compare " + wrong + " --quiet").out;
  EXPECT_EQ(said.find("an input"), std::string::npos) << said;
  EXPECT_NE(said.find("prefill.c0.embed different"), std::string::npos) << said;
}

TEST_F(CompareVerb, SaysWhichElementsAreWrong) {
  const auto trace_of = [&](const char* name, bool one_more) {
    Hdf5Writer file(path(name), "file_write");
    const auto root = file.root();
    root.put("format", "shardproof trace");
    root.put("version", 1);
    root.put("case", kCase);
    for (const char* value : {"prefill.c0.layer0.k_rot", "prefill.c0.layer0.k_cache"}) {
      Tensor t = known_->answer.checkpoints.at(value);  // [2,3,1,4]
      if (std::string(value).ends_with("cache"))
        for (std::size_t i = 0; i < t.data.size(); ++i)
          if (i / 4 % 3 == 1 || (one_more && i == 0)) t.data[i] = 3.0F + static_cast<float>(i);
      file.dataset(root, value, t.shape, t.data);
    }
    file.write();
    return std::string(name);
  };
  const std::string slot = trace_of("slot.h5", false), other = trace_of("other.h5", true);
  const std::string said = run("compare " + slot).out;
  EXPECT_NE(said.find("first divergence: prefill.c0.layer0.k_cache\n  8 of 24 elements\n"
                      "  wrong is exactly M 1\n"),
            std::string::npos)
      << said;
  const auto json = nlohmann::json::parse(run("compare " + slot + " --json").out);
  EXPECT_EQ(json["first"]["exactly"], nlohmann::json({{"M", {1}}}));
  EXPECT_EQ(run("compare " + other).out.find("exactly"), std::string::npos);
  EXPECT_FALSE(
      nlohmann::json::parse(run("compare " + other + " --json").out)["first"].contains("exactly"));
}

TEST_F(CompareVerb, OfWhatIsNot) {
  const Outcome o = run("compare " + trace("wrong.h5", 1.0F));
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_NE(o.out.find("prefill.c0.layer0.gate different             96 1 wrong"),
            std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("first divergence: prefill.c0.layer0.gate\n  1 of 96 elements\n  first "
                       "[0,2,5]: "),
            std::string::npos)
      << o.out;
  for (std::size_t at = 0; at < o.out.size();) {
    const std::size_t end = o.out.find('\n', at);
    EXPECT_LE(end - at, 80U) << o.out.substr(at, end - at);
    at = end + 1;
  }
  const auto json = nlohmann::json::parse(run("compare wrong.h5 --json").out);
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["first"]["step"], "prefill.c0.layer0.gate");
  EXPECT_EQ(json["first"]["worst"]["index"], nlohmann::json({0, 2, 5}));
  EXPECT_EQ(json["compared"], 2);
  EXPECT_EQ(json["values"].size(), 2U);
}

TEST_F(CompareVerb, NotANumber) {
  const Outcome o = run("compare " + trace("nan.h5", std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("first [0,2,5]: nan, expected"), std::string::npos) << o.out;
}

TEST_F(CompareVerb, NothingJudgedFails) {
  const Outcome empty = run("compare " + trace("empty.h5", 0, kCase, ""));
  EXPECT_EQ(empty.code, 1);
  EXPECT_TRUE(
      empty.out.starts_with("0 of 44 values compared; 0 rows: 0 different; none equal, within or "
                            "near:\n  nothing is proved\n"))
      << empty.out;
}

TEST_F(CompareVerb, WhatDoesNotFitIsNotJudged) {
  const auto expect_said = [&](const std::string& file, const std::string& why) {
    const Outcome o = run("compare " + file);
    EXPECT_EQ(o.code, 1) << o.out << o.err;
    EXPECT_NE(o.out.find(why), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("1 within, 0 different, 1 not judged; 1 not\n  fitting"),
              std::string::npos)
        << o.out;
  };
  expect_said(trace("layout.h5", 0, kCase, "prefill.c0.layer0.gate", "BLE"),
              "prefill.c0.layer0.gate not judged     BLE has not the dims of\n"
              "  prefill.c0.layer0.gate, BLF\n");
  expect_said(trace("shape.h5", 0, kCase, "prefill.c0.layer0.q", "BLHQ"),
              "not judged     an array [2,3,16] is neither whole, of 4\n"
              "  dims, nor stacked, of 3 before them\n");
}

TEST_F(CompareVerb, Refuses) {
  trace("right.h5");
  expect_refused("compare", "flag_c7: compare needs FILE");
  expect_refused("compare none.h5", "dump_open: \"none.h5\": No such file");
  expect_refused("compare " + write("text.h5", "text"),
                 "text.h5\": is neither an HDF5 file nor a NumPy archive");
  expect_refused("compare " + trace("unsaid.h5", 0, ""),
                 "compare_case: the trace has no case; say it with --case LINE");
  std::string other = kCase;
  other.replace(other.find("seed=3"), 6, "seed=4");
  expect_refused("compare right.h5 --case '" + other + "'",
                 "compare_case: the trace is of seed=3, not of seed=4");
  run("weights generate --model palm-tiny --out w.h5");
  expect_refused("compare right.h5 --weights w.h5", "weights_model: w.h5 is of model palm-tiny");
}

}  // namespace
