// A value that somebody adds to a model's text: each reader of the text has it, and no line of C++
// names it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

/// A norm more, of the FFN's output, as some models have it.
std::string with_norm3(std::string text) {
  const auto put = [&](const std::string& before, const std::string& lines) {
    const auto at = text.find("\n" + before);
    EXPECT_NE(at, std::string::npos) << before;
    text.insert(at + 1, lines);
  };
  put("out : BLE = ",
      "ss3 : BL = einsum(BLE,BLE->BL; ffn_out, ffn_out)\n"
      "norm3 : BLE = store(mul(mul(ffn_out, div(1, sqrt(add(div(ss3, E), eps)))), "
      "g_norm3))\n");
  put("weight wq : EHQ", "weight g_norm3 : E is gain from norm3\n");
  const std::string out = "out : BLE = store(add(mid, ffn_out))";
  return text.replace(text.find(out), out.size(), "out : BLE = store(add(mid, norm3))");
}

TEST_F(Cli, AValueThatATextAddsIsInEveryReader) {
  const std::string keys = run("list models --text llama,layers=2").out;
  const std::string before = write("before.model", keys);
  const std::string file = write("mine.model", with_norm3(keys));
  const std::string flags = " --torus 2x1x3 --prefill ws2d:batch --decode wg-xyz:batch";
  const auto json_of = [&](const std::string& call) {
    const Outcome o = run(call);
    EXPECT_EQ(o.code, 0) << call << "\n" << o.out << o.err;
    return nlohmann::json::parse(o.out);
  };

  // The oracle and the engine: two values more in each of three passes and two layers, in every
  // regime.
  for (const char* regime : {"exact", "f32", "field"}) {
    const auto values = [&](const std::string& model) {
      const auto verified =
          json_of(fmt::format("verify --json --regime {}{} --model {}", regime, flags, model));
      EXPECT_EQ(verified["cases"][0]["verdict"], "equal");
      return verified["cases"][0]["tensors"].get<int>();
    };
    EXPECT_GE(values(file), values(before) + 3 * 2 * 2) << regime;
  }

  // The trace and the judge: the value has its rows, and a wrong one is found where it is.
  const std::string trace = path("t.h5").string();
  EXPECT_EQ(run("run" + flags + " --model " + file + " --trace " + trace).code, 0);
  int rows = 0;
  const auto compared = json_of("compare --json " + trace);
  for (const auto& value : compared["values"])
    if (value["id"].get<std::string>().ends_with(".norm3")) {
      EXPECT_EQ(value["fit"], "equal") << value;
      ++rows;
    }
  EXPECT_GE(rows, 3 * 2);
  const std::string other = write("other.model", [&] {
    std::string text = with_norm3(keys);
    const std::string line = "mul(mul(ffn_out, div(1, sqrt(add(div(ss3, E), eps)))), g_norm3)";
    return text.replace(text.find(line), line.size(),
                        "mul(div(ffn_out, add(div(ss3, E), eps)), g_norm3)");
  }());
  const Outcome differs = run("compare --quiet " + trace + " --case \"model=" + other +
                              " torus=2x1x3 prefill=ws2d:batch decode=wg-xyz:batch\"");
  EXPECT_EQ(differs.code, 1) << differs.err;
  EXPECT_NE(differs.out.find("first divergence: prefill.c0.layer0.norm3"), std::string::npos)
      << differs.out;

  // The weights and the cost.
  const std::string weights = path("w.h5").string();
  EXPECT_EQ(run("weights generate --model " + file + " --out " + weights).code, 0);
  const auto parameters = [&](const std::string& model) {
    return json_of("cost parameters --json --model " + model)["total"].get<int>();
  };
  EXPECT_EQ(parameters(file), parameters(before) + 2 * 96);
}

}  // namespace
