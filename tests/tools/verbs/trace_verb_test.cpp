// `trace inspect`.
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

}  // namespace
