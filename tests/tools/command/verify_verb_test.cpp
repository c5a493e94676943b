// The verb `verify` as a user meets it: what it claims and what it prints.
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/verify_output.h"
#include "weights/storage/generator.h"
#include "weights/storage/store.h"

namespace {

using namespace shardproof;

constexpr const char* kTiny = "palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=264";

class VerifyVerb : public Cli {
 protected:
  /// A weights file of kTiny and `keys`, changed by `change` before it is written.
  std::string weights_file(
      const std::string& keys, const std::function<void(std::map<std::string, Tensor>&)>& change =
                                   [](std::map<std::string, Tensor>&) {}) const {
    const ModelConfig model = parse_model(kTiny + keys);
    const Weights made = generate_weights(model, 3);
    std::map<std::string, Tensor> tensors = made.tensors();
    change(tensors);
    save_weights(Weights(model, std::move(tensors)), path("w.h5"));
    return "w.h5";
  }
};

/// One weight whose elements are all the same.
struct Constant {
  std::string weight;
  void operator()(std::map<std::string, Tensor>& tensors) const {
    std::vector<float>& data = tensors.at(weight).data;
    std::fill(data.begin(), data.end(), 0.125F);
  }
};

TEST_F(VerifyVerb, EqualBlocksAreNoProof) {
  const std::string judge = "verify --weights w.h5 --torus 2x2x3 --prefill ws2d:batch";
  weights_file("", Constant{"layer0.w_gate"});
  Outcome o = run(judge);
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_NE(o.out.find("not judged\n     weight layer0.w_gate: all 12 blocks of E_xF_zy hold"),
            std::string::npos)
      << o.out;
  weights_file("", Constant{"layer0.norm"});
  o = run(judge);
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_EQ(count_of(o.out, "\nnote: all blocks of layer0.norm hold the same bits"), 1U) << o.out;
  const auto json = nlohmann::json::parse(run(judge + " --json").out);
  EXPECT_EQ(json["cases"][0]["notes"].size(), 1U);
  // The same note of many cases is printed once, with how many there are and the first.
  const auto listed = nlohmann::json::parse(run("verify --weights w.h5 --json").out);
  const auto& all = listed["cases"];
  const auto& skipped = listed["skipped"];
  int noted = 0;
  int first = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::string(all[i]["notes"][0]).starts_with("all blocks of layer0.norm") && ++noted == 1)
      first = static_cast<int>(i) + 1;
  EXPECT_GT(noted, 1);
  EXPECT_LT(noted, static_cast<int>(all.size()));
  for (const char* quiet : {"", " --quiet"}) {
    o = run(std::string("verify --weights w.h5") + quiet);
    EXPECT_EQ(count_of(o.out, "\nnote on "), 2U) << o.out;
    // Where it is not cut it is degenerate all the same.
    EXPECT_NE(o.out.find("\nnote on " + std::to_string(static_cast<int>(all.size()) - noted) +
                         " of " + std::to_string(all.size()) + " cases, first on "),
              std::string::npos);
    EXPECT_EQ(count_of(o.out, ": degenerate data: layer0.norm is equal along E, and "), 1U);
    // Of the strategies on six tori, those that do not divide the file's model.
    EXPECT_GT(skipped.size(), 0U);
    EXPECT_EQ(count_of(o.out, "not legal: "), skipped.size()) << o.out;
    EXPECT_NE(
        o.out.find("\nnote on " + std::to_string(noted) + " of " + std::to_string(all.size()) +
                   " cases, first on " + std::to_string(first) + ": all blocks of layer0.norm"),
        std::string::npos)
        << o.out;
  }
  // And what a run without a decode step leaves unsaid.
  o = run("verify --torus 1x1x2 --prefill ws2d --decode ws1d --gen 1");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_EQ(count_of(o.out, "\nnote: gen=1 has no decode step"), 1U) << o.out;
}

TEST_F(VerifyVerb, OfWeightsThatShowLittleTheFieldHasTheAnswer) {
  weights_file("", [](std::map<std::string, Tensor>& tensors) {
    for (auto& [name, tensor] : tensors) std::fill(tensor.data.begin(), tensor.data.end(), 1.0F);
  });
  const std::string of = "verify --weights w.h5 --torus 2x2x3 --program ";
  std::string text = run("explain ws2d:batch --text --torus 2x2x3 --weights w.h5").out;
  write("p.txt", text);
  Outcome o = run(of + "p.txt");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("equal bits on this input; equal for all inputs"), std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("note: equal bits on this input show little: weight "), std::string::npos)
      << o.out;
  // What its run leaves out the field leaves out, too.
  o = run(of + "p.txt --gen 1");
  EXPECT_EQ(o.code, 1) << o.out;
  EXPECT_NE(o.out.find("not judged"), std::string::npos) << o.out;
  // A fault that such weights hide: the caches change places.
  text.replace(text.find("append(k_old"), 12, "append(v_tmp");
  text.replace(text.find("append(v_old"), 12, "append(k_old");
  text.replace(text.find("append(v_tmp"), 12, "append(v_old");
  write("swapped.txt", text);
  o = run(of + "swapped.txt");
  EXPECT_EQ(o.code, 1) << o.out;
  EXPECT_NE(o.out.find("another formula"), std::string::npos) << o.out;
}

TEST_F(VerifyVerb, AllFindingsAreAskedForByAFlag) {
  std::string text = run("explain ws2d:batch --text").out;
  text.replace(text.find("add(x, yr)"), 10, "add(yr, yr)");
  write("p.txt", text);
  const auto steps = [](const std::string& out) {
    static const std::regex line("\n     (p\\.txt line \\d+: )?step ");
    return static_cast<std::size_t>(
        std::distance(std::sregex_iterator(out.begin(), out.end(), line), std::sregex_iterator()));
  };
  const Outcome first = run("verify --program p.txt");
  const Outcome all = run("verify --program p.txt --all-findings");
  EXPECT_EQ(all.code, 1);
  EXPECT_EQ(steps(first.out), 1U) << first.out;
  EXPECT_GT(steps(all.out), 10U) << all.out;
  const auto told = first.out.find("     p.txt line ");
  EXPECT_NE(all.out.find(first.out.substr(told, first.out.find("reproduce: ") - told)),
            std::string::npos)
      << all.out;
  const auto json = nlohmann::json::parse(run("verify --program p.txt --all-findings --json").out);
  const auto& findings = json["cases"][0]["findings"];
  EXPECT_EQ(findings.size(), steps(all.out));
  EXPECT_EQ(findings[0]["detector"], "values");
  EXPECT_TRUE(findings[0]["said"].get<std::string>().starts_with("p.txt line "));
  const auto one = nlohmann::json::parse(run("verify --program p.txt --json").out);
  EXPECT_EQ(one["cases"][0]["difference"], json["cases"][0]["difference"]);
  EXPECT_FALSE(one["cases"][0].contains("findings"));
}

TEST_F(VerifyVerb, EachOfAllFindingsIsToldOnce) {
  std::string text = run("explain ws2d:batch --text").out;
  text.replace(text.find("swiglu(hr, ur)"), 14, "swiglu(ur, hr)");
  write("p.txt", text);
  for (const char* regime : {"exact", "f32"}) {
    const std::string call =
        std::string("verify --program p.txt --all-findings --seed 1 --regime ") + regime;
    const auto json = nlohmann::json::parse(run(call + " --json").out);
    const std::string out = run(call).out;
    const auto& findings = json["cases"][0]["findings"];
    ASSERT_GT(findings.size(), 10U);
    for (const auto& finding : findings) {
      const auto said = finding["said"].get<std::string>();
      EXPECT_EQ(count_of(out, "     " + said + "\n"), 1U) << said;
      EXPECT_EQ(std::count(findings.begin(), findings.end(), finding), 1) << said;
    }
  }
}

TEST_F(VerifyVerb, SaysHowFarABaseTwoModelIsFromThePlainOne) {
  const std::string call =
      "verify --torus 1x2x3 --model palm-tiny,layers=1,softmax=base2 --prefill ws2d:heads";
  const Outcome o = run(call);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(count_of(o.out, "\nfrom the plain model (not judged): logits "), 1U) << o.out;
  EXPECT_NE(o.out.find("palm-tiny,layers=1,softmax=base2\n"), std::string::npos) << o.out;
  const auto json = nlohmann::json::parse(run(call + " --json").out)["cases"][0]["from_plain"];
  EXPECT_GT(json["logits"], 0.0);
  EXPECT_LT(json["logits"], 1e-4);
  EXPECT_GE(json["tokens"], json["equal_tokens"]);
  EXPECT_EQ(json["apart"] == "", json["tokens"] == json["equal_tokens"]);
}

TEST_F(VerifyVerb, TheTraceOfAllFindingsIsOfTheWholeRun) {
  std::string text = run("explain ws2d:batch --text").out;
  write("right.txt", text);
  text.replace(text.find("swiglu(hr, ur)"), 14, "swiglu(ur, hr)");
  write("p.txt", text);
  EXPECT_EQ(run("verify --program right.txt --trace right.h5").code, 0);
  EXPECT_EQ(run("verify --program p.txt --trace first.h5").code, 1);
  EXPECT_EQ(run("verify --program p.txt --all-findings --trace all.h5").code, 1);
  const auto steps = [&](const std::string& file) {
    // A name stands in the file for each group it is in, and for nothing else.
    return count_of(slurp(path(file)), "decode.2.layer");
  };
  EXPECT_EQ(steps("first.h5"), 0U);
  EXPECT_GT(steps("all.h5"), 100U);
  EXPECT_EQ(steps("all.h5"), steps("right.h5"));
}

/// What tools/verify builds first is the same verb.
TEST_F(VerifyVerb, AloneSaysWhatTheProgramSays) {
  for (const char* words :
       {"verify --cases 3 --seed 5", "verify --cases 2 --seed 5 --json", "verify --help",
        "verify --torus 2x1x3 --prefill ws9d", "verify --torus", "verify --case 'torus=0x1x1'",
        "--version", "verify --torus 1x2x1 --model no.model"}) {
    const Outcome all = run(words), alone = run(words, SHARDPROOF_VERIFY_ALONE);
    const std::regex seconds("[0-9.]+(?= s\\b)|(\"seconds\": )[0-9.e-]+");
    EXPECT_EQ(alone.code, all.code) << words;
    EXPECT_EQ(std::regex_replace(alone.out, seconds, ""), std::regex_replace(all.out, seconds, ""));
    EXPECT_EQ(alone.err, all.err) << words;
  }
  const Outcome other = run("run", SHARDPROOF_VERIFY_ALONE);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("has no verb 'run'"), std::string::npos) << other.err;
}

}  // namespace
