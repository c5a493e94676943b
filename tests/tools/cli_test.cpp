// The command line as a user meets it: exit codes, one-line refusals, nothing written on failure.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"

namespace {

TEST_F(Cli, SaysWhenItsOutputCannotBeWritten) {
  for (const char* verb : {"verify --torus 1x1x1", "explain ws2d", "--help", "run --json"}) {
    const std::string command = std::string("'" SHARDPROOF_CLI "' ") + verb + " 2>'" +
                                path("err").string() + "' >/dev/full";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << verb;
    EXPECT_NE(slurp(path("err")).find("output_c1"), std::string::npos)
        << verb << slurp(path("err"));
  }
  const int closed = std::system("'" SHARDPROOF_CLI "' verify --torus 1x1x1 >&- 2>&-");
  EXPECT_TRUE(WIFEXITED(closed));
}

TEST_F(Cli, ExplainCountsWhatWireAndCacheSay) {
  // Of each move of explain's programs, by the value: its bytes an element.
  const auto bytes = [&](const std::string& flags) {
    const Outcome o =
        run("explain ws2d:batch --prefill ws2d:heads --json --model palm-tiny,K=24" + flags);
    EXPECT_EQ(o.code, 0) << o.err;
    std::map<std::string, std::string> of;
    const auto json = nlohmann::json::parse(o.out);
    for (const auto& program : json["programs"])
      for (const auto& step : program["steps"])
        if (step.contains("sends"))
          of[step["results"][0]["is"]] += step["sends"]["bytes_per_element"].dump();
    return of;
  };
  const auto f32 = bytes(""), wire = bytes(" --wire bf16");
  EXPECT_EQ(f32.at("gate"), "4");
  EXPECT_EQ(wire.at("gate"), "2");
  EXPECT_EQ(wire.at("raw embed"), "2");
  EXPECT_EQ(wire.at("stat ss"), "4");
  EXPECT_EQ(wire.at("raw logits"), "4");
  EXPECT_EQ(wire.at("k_cache"), f32.at("k_cache"));
  EXPECT_EQ(f32.at("k_cache"), "4");
  EXPECT_EQ(bytes(",cache=bf16").at("k_cache"), "2");
  EXPECT_EQ(bytes(",cache=f32 --act bf16").at("k_cache"), "4");
  EXPECT_EQ(bytes(" --numerics released").at("v_cache"), "2");
  EXPECT_EQ(bytes(" --numerics released").at("raw gate"), "2");
  const Outcome text = run("explain ws2d:batch --wire bf16");
  EXPECT_NE(text.out, run("explain ws2d:batch").out);
}

TEST_F(Cli, ExplainDrawsALayer) {
  const Outcome o = run("explain ws2d:batch --svg layer.svg");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(slurp(path("layer.svg")), slurp(SHARDPROOF_SOURCE "/docs/ws2d-batch-4x2x3.svg"))
      << "if the picture is meant to change: build/shardproof explain ws2d:batch --svg "
         "docs/ws2d-batch-4x2x3.svg";
  int drawn = 0;
  for (const char* strategy : {"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch",
                               "wg-xyz:batch", "ws2d:batch --prefill wg-xyz:batch --paper"})
    for (const char* torus : {"1x1x1", "3x1x2", "4x2x3", "4x4x4"}) {
      const std::string arguments = std::string("explain ") + strategy + " --torus " + torus +
                                    " --model palm-tiny,E=192,F=192,H=192,V=192 --svg " +
                                    std::to_string(drawn++) + ".svg";
      EXPECT_EQ(run(arguments).code, 0) << arguments;
    }
  EXPECT_NE(slurp(path("22.svg")).find("after prefill by wg-xyz:batch; the hand-over is not drawn"),
            std::string::npos);
  if (std::system("command -v python3 >/dev/null") == 0) {
    const std::string read =
        "import glob, xml.etree.ElementTree as t; [t.parse(f) for f in glob.glob(\"*.svg\")]";
    EXPECT_EQ(
        std::system(("cd '" + directory_.string() + "' && python3 -c '" + read + "'").c_str()), 0);
  }
}

}  // namespace
