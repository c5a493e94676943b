// Runs that round as another engine does, judged as dumps of that engine: the text emulates it, the
// bounds know it, and neither shares a line of code with the other.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

class EngineRounding : public Cli {
 protected:
  /// The values that are different where a run that rounds as `rounding` is judged as a dump of the
  /// keys' model that declares `declared`.
  std::vector<std::string> different(const std::string& model, const std::string& rounding,
                                     const std::string& declared) const {
    const std::string file =
        write("other.model", run("list models --text " + model + " --rounding " + rounding).out);
    const std::string trace = path("t.h5").string();
    const Outcome ran = run("run --model " + file +
                            " --act bf16 --torus 1x2x1 --prefill ws1d:heads --decode ws1d:heads "
                            "--trace " +
                            trace);
    EXPECT_EQ(ran.code, 0) << ran.err;
    write("as_keys.py",
          "import h5py, sys\n"
          "f = h5py.File(sys.argv[1], 'a')\n"
          "del f.attrs['text_of_model']\n"
          "f.attrs['case'] = f.attrs['case'].replace('model=' + sys.argv[2], 'model=' + "
          "sys.argv[3])\n"
          "f.attrs['model'] = sys.argv[3]\n"
          "f.attrs['arithmetic'] = 'bf16'\n"
          "f.attrs['rounding'] = sys.argv[4]\n");
    const std::string command = "/usr/bin/python3 " + path("as_keys.py").string() + " " + trace +
                                " " + file + " " + model + " " + declared;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    const Outcome judged = run("compare --json " + trace);
    std::vector<std::string> found;
    const auto values = nlohmann::json::parse(judged.out)["values"];
    EXPECT_GT(values.size(), 50U) << judged.err;
    for (const auto& value : values)
      if (value["fit"] == "different") found.push_back(value["id"]);
    return found;
  }
};

const std::vector<std::string> kModels{"llama", "gptj", "falcon",
                                       "palm-tiny,ffn=geglu,norm=layernorm,bias=all,rope=alibi"};

TEST_F(EngineRounding, IsRightWhereItIsDeclared) {
  for (const std::string& model : kModels)
    for (const char* rounding : {"hf", "spec", "norm:r+xr+xrg,rope:tables,attn:exp,sum:s",
                                 "exp:difference,embed:scale,norm:mu+d,out:each",
                                 "hidden:act+inner,attn:probs+scores,score:qk"}) {
      if (model == "falcon" && std::string(rounding).starts_with("hidden")) continue;  // gelu-erf
      const bool set = std::string(rounding).find(':') == std::string::npos;
      EXPECT_EQ(different(model, rounding, (set ? "" : "spec,") + std::string(rounding)),
                std::vector<std::string>())
          << model << " " << rounding;
    }
}

// Each place by itself is seen where the declaration says that nothing rounds there.
TEST_F(EngineRounding, IsSeenWhereItIsNotDeclared) {
  const std::string layernorm = "palm-tiny,ffn=geglu,norm=layernorm,bias=all";
  for (const auto& [rounding, value] :
       std::vector<std::pair<std::string, std::string>>{{"norm:mu", "norm"},
                                                        {"norm:d", "norm"},
                                                        {"norm:r", "norm"},
                                                        {"norm:xr", "norm"},
                                                        {"norm:xrg", "norm"},
                                                        {"rope:tables", "q_rot"},
                                                        {"rope:products", "k_rot"},
                                                        {"score:qk", "score"},
                                                        {"exp:difference", "exp"},
                                                        {"attn:exp", "attn"},
                                                        {"attn:probs", "attn"},
                                                        {"hidden:inner", "hidden"},
                                                        {"hidden:act", "hidden"},
                                                        {"sum:s", "q"},
                                                        {"out:each", "out"}}) {
    const std::vector<std::string> found = different(layernorm, rounding, "spec");
    bool seen = false;
    for (const std::string& id : found) seen = seen || id.ends_with("." + value);
    EXPECT_TRUE(seen) << rounding;
  }
}

TEST_F(EngineRounding, IsEqualInEveryLayout) {
  const std::string file = write("hf.model", run("list models --text llama --rounding hf").out);
  for (const char* regime : {"exact", "f32", "field"}) {
    const Outcome proved =
        run("verify --model " + file + " --act bf16 --regime " + regime +
            " --torus 2x1x3 --prefill wg-xyz:batch --decode ws2d:batch --batch 6");
    EXPECT_EQ(proved.code, 0) << regime << proved.out;
  }
  EXPECT_EQ(run("list models --text " + file + " --rounding hf").code, 2);
  EXPECT_EQ(run("list models --rounding hf").code, 2);
}

}  // namespace
