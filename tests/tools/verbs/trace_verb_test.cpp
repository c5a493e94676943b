// `trace inspect` and `trace diff`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

class TraceVerb : public Cli {
 protected:
  void trace(const std::string& file, const std::string& flags = "") const {
    const Outcome o = run("run " + std::string(kSmall) + " --prompt 2 --gen 2 --batch 12 --trace " +
                          file + flags);
    ASSERT_EQ(o.code, 0) << o.err;
  }
};

TEST_F(TraceVerb, InspectListsWhatThereIs) {
  trace("t.h5");
  const std::string text = run("trace inspect t.h5").out;
  EXPECT_EQ(text.rfind("case: torus=2x2x3 model=", 0), 0U) << text;
  EXPECT_NE(text.find("\narithmetic: exact\nended: complete\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" values: "), std::string::npos);
  const auto json = nlohmann::json::parse(run("trace inspect t.h5 --json").out);
  EXPECT_EQ(json["attributes"]["version"], "1");
  int partial = 0, same = 0;
  for (const auto& value : json["values"]) {
    const std::string name = value["name"];
    EXPECT_NE(text.find("\n" + name + " "), std::string::npos) << name;
    partial += value.contains("chips") ? 1 : 0;
    same += value["attributes"].contains("same_as") ? 1 : 0;
  }
  EXPECT_GT(partial, 0);
  EXPECT_GT(same, 0);
  EXPECT_NE(text.find(std::to_string(partial) + " as shards, " + std::to_string(same) +
                      " the same as another\n"),
            std::string::npos)
      << text;
}

TEST_F(TraceVerb, DiffEndsAsItFinds) {
  trace("a.h5");
  trace("b.h5");
  trace("f32.h5", " --regime f32 --schedule ring");
  trace("other.h5", " --seed 2");
  Outcome o = run("trace diff a.h5 b.h5");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_NE(o.out.find(" values equal, 0 different; 0 only in the first, 0 only in the second\n"),
            std::string::npos)
      << o.out;
  o = run("trace diff a.h5 f32.h5");
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_NE(o.out.find("\nfirst difference: "), std::string::npos) << o.out;
  o = run("trace diff a.h5 f32.h5 --json");
  EXPECT_EQ(o.code, 1) << o.err;
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["different"][0], json["difference"]["name"]);
  expect_refused("trace diff a.h5 other.h5", "compare_case: the trace is of seed=2, not of seed=1");
  write("none.h5", "nothing");
  expect_refused("trace diff a.h5 none.h5", "dump_open");
  expect_refused("trace inspect none.h5", "dump_open");
  expect_refused("trace", "verb_c1");
  expect_refused("trace diff a.h5", "flag_c7");
}

}  // namespace
