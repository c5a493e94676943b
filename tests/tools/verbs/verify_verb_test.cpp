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
    std::map<std::string, Tensor> tensors(made.all().begin(), made.all().end());
    change(tensors);
    save_weights(Weights(model, std::move(tensors)), path("w.h5"));
    return "w.h5";
  }
};

TEST_F(VerifyVerb, AWeightsFileIsNotOverruledInSilence) {
  // The file is of a parallel model; what asks for another is refused wherever a case is named.
  weights_file("");
  const std::string rest = " --torus 2x2x3 --prefill ws2d:batch";
  for (const std::string verb : {"verify", "run"}) {
    expect_refused(verb + " --weights w.h5 --block serial" + rest, "weights_model: w.h5 holds");
    EXPECT_EQ(run(verb + " --weights w.h5 --block parallel" + rest).code, 0);
  }
  expect_refused("explain ws2d:batch --torus 2x2x3 --weights w.h5 --block serial",
                 "block=parallel, the case requires palm-tiny");
  expect_refused("verify --weights w.h5 --case 'torus=2x2x3 block=serial'", "weights_model");
  expect_refused("verify --weights w.h5 --case 'torus=2x2x3 model=palm-tiny'", "weights_model");
  const std::string same = std::string("model=") + kTiny;
  EXPECT_EQ(run("verify --weights w.h5 --case 'torus=2x2x3 block=parallel " + same + "'").code, 0);
  expect_refused("verify --weights w.h5 --case 'torus=2x2x3 block=serial " + same + "'",
                 "weights_model");
  write("p.txt", run("explain ws2d:batch --text --torus 2x2x3 --weights w.h5").out);
  for (const std::string verb : {"verify", "explain"})
    expect_refused(verb + " --program p.txt --torus 2x2x3 --weights w.h5 --block serial",
                   "weights_model");
  EXPECT_EQ(run("verify --program p.txt --torus 2x2x3 --weights w.h5").code, 0);
  // And of a serial one, which says nothing of its block in words.
  weights_file(",block=serial");
  for (const std::string verb : {"verify", "run"}) {
    expect_refused(verb + " --weights w.h5 --block parallel" + rest,
                   "block=serial, the case requires");
    EXPECT_EQ(run(verb + " --weights w.h5" + rest).code, 0);
  }
}

TEST_F(VerifyVerb, AWeightsFileWithOneCaseFlagRunsOneCase) {
  weights_file("");
  for (const char* flag :
       {"--torus 2x2x3", "--prefill ws2d:batch", "--decode ws1d:batch", "--gen 2", "--batch 24",
        "--seed 4", "--prompt 3", "--chunk 2", "--act bf16", "--regime f32", "--weights bf16"}) {
    const Outcome o = run(std::string("verify --weights w.h5 ") + flag);
    EXPECT_EQ(rows(o.out), 1U) << flag << "\n" << o.out << o.err;
  }
  EXPECT_GE(rows(run("verify --weights w.h5").out), 20U);
}

TEST_F(VerifyVerb, ACaseThatCannotGoOnIsARowOfItsOwn) {
  const std::string model = std::string("--model ") + kTiny + ",embed_scale=1e25 --torus 2x2x3";
  for (const std::string regime : {"exact", "f32"}) {
    const Outcome o = run("verify --regime " + regime + " " + model);
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_EQ(rows(o.out), 1U) << o.out;
    EXPECT_NE(o.out.find(" refused\n     oracle_finite: stat prefill.c0.layer0.ss[0,0] is inf\n"
                         "     reproduce: shardproof verify --case \"torus=2x2x3"),
              std::string::npos)
        << o.out;
    EXPECT_NE(o.out.find("1 case: 0 equal, 0 different, 0 not judged, 1 refused"),
              std::string::npos)
        << o.out;
    EXPECT_EQ(o.err, "");
  }
  // In a batch the other cases run all the same.
  weights_file(",embed_scale=1e25");
  const Outcome o = run("verify --weights w.h5 --json");
  EXPECT_EQ(o.code, 1) << o.err;
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_GE(json["cases"].size(), 20U);
  EXPECT_EQ(json["totals"]["refused"], json["cases"].size());
  EXPECT_EQ(json["held"], false);
  for (const auto& c : json["cases"]) {
    EXPECT_EQ(c["verdict"], "refused");
    EXPECT_TRUE(std::string(c["reason"]).starts_with("oracle_finite: "));
    EXPECT_TRUE(std::string(c["reproduce"])
                    .starts_with("shardproof verify --weights w.h5 --case \"torus="));
    EXPECT_GE(c["seconds"].get<double>(), 0.0);
  }
  // The command does what it says.
  EXPECT_EQ(run(std::string(json["cases"][0]["reproduce"]).substr(11)).code, 1);
}

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

TEST_F(VerifyVerb, AProgramIsJudgedAsDecodeOrNotAtAll) {
  std::string text = run("explain ws2d:batch --text").out;
  write("p.txt", text);
  Outcome o = run("verify --program p.txt");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_NE(o.out.find("     palm-tiny,embed_scale=0.75\n"), std::string::npos) << o.out;
  for (const char* flags : {"--gen 1", "--gen 1 --prompt 1"}) {
    o = run(std::string("verify --program p.txt ") + flags);
    EXPECT_EQ(o.code, 1) << o.out;
    EXPECT_NE(o.out.find("not judged\n     not judged as decode: no pass reads a filled cache"),
              std::string::npos)
        << o.out;
  }
  // One cache taken for the other.
  text.replace(text.find("append(k_old"), 12, "append(v_tmp");
  text.replace(text.find("append(v_old"), 12, "append(k_old");
  text.replace(text.find("append(v_tmp"), 12, "append(v_old");
  write("swapped.txt", text);
  EXPECT_EQ(run("verify --program swapped.txt --gen 1").code, 1);
  o = run("verify --program swapped.txt --json");
  EXPECT_EQ(o.code, 1);
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["cases"][0]["verdict"], "different");
  EXPECT_EQ(json["cases"][0]["difference"]["reach"]["of_chips"], 24);
}

TEST_F(VerifyVerb, ADifferenceSaysHowFarItReaches) {
  std::string text = run("explain ws2d:batch --text").out;
  text.replace(text.find("add(x, yr)"), 10, "add(yr, yr)");
  write("p.txt", text);
  const Outcome o = run("verify --program p.txt");
  EXPECT_EQ(o.code, 1);
  // BLE_xzy of 24 rows, 4 positions and E=96 on 24 chips.
  EXPECT_NE(o.out.find("\n     on 24 of 24 chips, 9,216 of 9,216 elements, no replicas\n"
                       "     the worst on chip ("),
            std::string::npos)
      << o.out;
  const auto json = nlohmann::json::parse(run("verify --program p.txt --json").out);
  const auto& reach = json["cases"][0]["difference"]["reach"];
  EXPECT_EQ(reach["elements"], 9216);
  EXPECT_EQ(reach["replicas"], "none");
  EXPECT_EQ(reach["worst"]["index"].size(), 3U);
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

TEST_F(VerifyVerb, AllTypeErrorsOfAProgramAreTold) {
  std::string text = run("explain ws2d:batch --text").out;
  const auto change = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  // Two errors, one of them in two steps.
  change("all_gather(ot, H, x)", "all_gather(ot, H, y)");
  change("reduce_scatter(h, F, x)", "reduce_scatter(h, F, y)");
  change("reduce_scatter(u, F, x)", "reduce_scatter(u, F, y)");
  write("p.txt", text);
  const std::string og = "shardproof: all_gather_c3: p.txt line ";
  const std::string sum = "shardproof: reduce_scatter_c2: p.txt line ";
  expect_refused("verify --program p.txt", "all_gather_c3: p.txt line ");
  for (const char* more :
       {"", " --json", " --gen 5 --prompt 5 --chunk 2", " --trace t.h5", " --regime f32"}) {
    const Outcome first = run(std::string("verify --program p.txt") + more);
    const Outcome all = run(std::string("verify --program p.txt --all-findings") + more);
    EXPECT_EQ(all.code, 2) << more;
    EXPECT_EQ(all.out, "") << more;
    EXPECT_TRUE(all.err.starts_with(first.err)) << more << "\n" << all.err;
    EXPECT_EQ(count_of(all.err, "\n"), 3U) << all.err;
    EXPECT_EQ(count_of(all.err, og), 1U) << all.err;
    EXPECT_EQ(count_of(all.err, sum), 2U) << all.err;
    EXPECT_EQ(files(), 1U) << more;
  }
  // As the decode alone, and as both with a file for each.
  const Outcome decode =
      run("verify --program-decode p.txt --prefill ws2d:batch --batch 24 --all-findings");
  EXPECT_EQ(count_of(decode.err, "\n"), 3U) << decode.err;
  write("d.txt", text);
  const Outcome two = run("verify --program-prefill p.txt --program-decode d.txt --all-findings");
  EXPECT_EQ(count_of(two.err, ": p.txt line "), 3U) << two.err;
  EXPECT_EQ(count_of(two.err, ": d.txt line "), 3U) << two.err;
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

TEST_F(VerifyVerb, AllFindingsOfRandomCasesAreNoneWhereTheyAreEqual) {
  const auto in_short = [](const Outcome& o) {  // without the time that it took
    return std::regex_replace(o.out, std::regex(" in [0-9.]+ s"), "");
  };
  const Outcome plain = run("verify --cases 20 --seed 2");
  const Outcome all = run("verify --cases 20 --seed 2 --all-findings");
  EXPECT_EQ(all.code, 0) << all.out;
  EXPECT_EQ(in_short(all), in_short(plain));
  expect_refused("verify --cases 3 --all-findings --trace t.h5", "verify_c4");
}

TEST_F(VerifyVerb, HazardsAreSharedOrFull) {
  const std::string line =
      "--case \"torus=1x2x3 model=palm-tiny,layers=1 prefill=ws2d:heads batch=6 prompt=3 gen=2\"";
  const auto in_short = [](const Outcome& o) {
    return std::regex_replace(o.out, std::regex(" in [0-9.]+ s"), "");
  };
  const Outcome shared = run("verify " + line);
  EXPECT_EQ(shared.code, 0) << shared.out;
  EXPECT_EQ(in_short(run("verify --hazards shared " + line)), in_short(shared));
  EXPECT_EQ(in_short(run("verify --hazards full " + line)), in_short(shared));
  EXPECT_EQ(run("verify --hazards full --cases 5 --seed 2").code, 0);
  expect_refused("verify --hazards half " + line, "verify_c5");
}

TEST_F(VerifyVerb, LinesAboveRowsAreNotRepeated) {
  weights_file(",block=serial,norm=layernorm");
  const Outcome o = run("verify --weights w.h5");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_GE(rows(o.out), 20U);
  EXPECT_EQ(count_of(o.out, "     block=serial\n"), 1U) << o.out;
  EXPECT_EQ(count_of(o.out, ",norm=layernorm\n"), 1U) << o.out;
}

TEST_F(VerifyVerb, RandomCasesAreRowsToo) {
  Outcome o = run("verify --cases 30 --seed 2");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_EQ(rows(o.out), 30U) << o.out;
  o = run("verify --cases 30 --seed 2 --quiet");
  EXPECT_EQ(rows(o.out), 0U) << o.out;
  EXPECT_NE(o.out.find("30 cases: 30 equal, 0 different, 0 not judged, 0 refused"),
            std::string::npos);
  const auto json = nlohmann::json::parse(run("verify --cases 30 --seed 2 --json").out);
  EXPECT_EQ(json["cases"].size(), 30U);
}

}  // namespace
