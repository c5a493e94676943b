// The verb `weights`, and what a file of int8 weights means to the verbs that read one.
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/ops/int8_weights.h"
#include "tests/tools/cli_fixture.h"
#include "weights/storage/fold.h"
#include "weights/storage/store.h"

namespace {

using namespace shardproof;

class WeightsVerb : public Cli {
 protected:
  /// w.h5 of f32 weights, and w8.h5 of them as int8.
  void make(const std::string& more = "") const {
    const Outcome o = run("weights generate --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264" +
                          more + " --seed 5 --out w.h5");
    ASSERT_EQ(o.code, 0) << o.err;
    const Outcome q = run("weights quantize w.h5 w8.h5");
    ASSERT_EQ(q.code, 0) << q.err;
  }
};

TEST_F(WeightsVerb, QuantizesAFile) {
  for (const char* more : {"", ",block=serial", ",norm=layernorm,bias=all,K=4", ",tied=false"}) {
    make(more);
    const Weights expected = int8_weights(load_weights(path("w.h5")));
    const Weights found = load_weights(path("w8.h5"));
    EXPECT_EQ(found.stored_type(), WeightType::int8);
    EXPECT_EQ(found.config(), expected.config());
    ASSERT_EQ(found.all().size(), expected.all().size());
    for (const auto& [name, tensor] : expected.all())
      EXPECT_EQ(found.at(name).data, tensor.data) << name << more;
    EXPECT_EQ(files(), 2U);
    const std::string bytes = slurp(path("w8.h5"));
    EXPECT_EQ(run("weights quantize w.h5 w8.h5").code, 0);
    EXPECT_TRUE(slurp(path("w8.h5")) == bytes) << "equal weights are equal bytes";
    EXPECT_LT(bytes.size(), slurp(path("w.h5")).size());
  }
}

TEST_F(WeightsVerb, QuantizesF32WeightsOnly) {
  make();
  expect_refused("weights quantize w8.h5 again.h5",
                 "weights_int8: w8.h5 holds int8 weights already; legal: a file of f32 weights, "
                 "version 1");
  expect_refused("weights quantize none.h5 out.h5", "weights_open: \"none.h5\"");
  expect_refused("weights quantize " + write("text.h5", "text") + " out.h5", "weights_open");
  expect_refused("weights quantize w.h5", "flag_c7: weights quantize needs OUT");
  expect_refused("weights quantize", "flag_c7: weights quantize needs IN");
}

TEST_F(WeightsVerb, FoldsAFileOfEitherVersion) {
  for (const char* more : {"", ",block=serial", ",norm=layernorm,bias=all,K=4", ",tied=false"}) {
    make(more);
    for (const std::string from : {"w.h5", "w8.h5"}) {
      const Outcome o = run("weights fold " + from + " w2.h5");
      EXPECT_EQ(o.code, 0) << o.err;
      EXPECT_NE(o.out.find(",softmax=base2"), std::string::npos) << o.out;
      const Weights expected = fold(load_weights(path(from)));
      const Weights found = load_weights(path("w2.h5"));
      EXPECT_EQ(found.stored_type(), expected.stored_type());
      EXPECT_EQ(found.config(), expected.config());
      for (const auto& [name, tensor] : expected.all())
        EXPECT_EQ(found.at(name).data, tensor.data) << name << more;
      const Outcome judged = run("verify --weights w2.h5 --torus 2x2x3 --prefill ws2d:batch");
      EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
      EXPECT_EQ(judged.out.find("from the plain model"), std::string::npos);
      expect_refused("weights fold w2.h5 again.h5", "weights_fold: palm-tiny,layers=1");
    }
  }
  expect_refused("weights fold none.h5 out.h5", "weights_open: \"none.h5\"");
  expect_refused("weights fold w.h5 w.h5", "output_c2: OUT ");
}

TEST_F(WeightsVerb, WhatIsRefusedLeavesEverythingAsItWas) {
  make();
  fs::create_symlink("w.h5", path("soft.h5"));
  fs::create_hard_link(path("w.h5"), path("hard.h5"));
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  write("old", "old");
  const std::string before = slurp(path("w.h5"));
  for (const char* out : {"w.h5", "./w.h5", "folder/../w.h5", "soft.h5", "hard.h5"})
    expect_refused(std::string("weights quantize w.h5 ") + out, "output_c2: OUT ");
  expect_refused("weights quantize soft.h5 w.h5",
                 "output_c2: OUT w.h5 is the file that IN soft.h5");
  expect_refused("weights quantize w.h5 folder", "weights_write");
  expect_refused("weights quantize w.h5 pipe", "not a regular file");
  expect_refused("weights quantize w.h5 nowhere/w8.h5", "weights_write");
  expect_refused("weights quantize w8.h5 old", "weights_int8");
  expect_refused("weights quantize " + write("text.h5", "text") + " old", "weights_open");
  EXPECT_EQ(slurp(path("old")), "old");
  EXPECT_TRUE(slurp(path("w.h5")) == before);
  // Another file is replaced, and keeps its mode.
  ASSERT_EQ(::chmod(path("old").c_str(), 0640), 0);
  EXPECT_EQ(run("weights quantize w.h5 old").code, 0);
  struct stat found {};
  ASSERT_EQ(::stat(path("old").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0640U);
  EXPECT_TRUE(slurp(path("old")) == slurp(path("w8.h5")));
}

TEST_F(WeightsVerb, InspectShowsCodesAndScales) {
  make();
  const auto types = [&](const char* file) {
    const Outcome o = run(std::string("weights inspect --json ") + file);
    EXPECT_EQ(o.code, 0) << o.err;
    const auto json = nlohmann::json::parse(o.out);
    std::string text = std::to_string(json["version"].get<int>());
    for (const auto& tensor : json["tensors"])
      if (tensor["name"] == "embed" || tensor["name"] == "layer0.wo" ||
          tensor["name"] == "layer0.block_out_scale")
        text += " " + tensor["name"].get<std::string>() + " " + tensor["type"].get<std::string>();
    return text;
  };
  EXPECT_EQ(types("w.h5"), "1 embed f32 layer0.wo f32");
  EXPECT_EQ(types("w8.h5"), "2 embed f32 layer0.wo int8 layer0.block_out_scale f32");
  for (const char* file : {"w.h5", "w8.h5"}) {
    const Outcome o = run(std::string("weights inspect ") + file);
    std::istringstream lines(o.out);
    std::size_t width = 0;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      EXPECT_LE(line.size(), 80U) << line;
      if (width == 0) width = line.size();
      EXPECT_EQ(line.size(), width) << "not in columns: " << line;
    }
  }
}

TEST_F(WeightsVerb, AnInt8FileFixesTheType) {
  make();
  const std::string rest = " --torus 2x2x3 --prefill ws2d:batch";
  const std::string legal = "; legal: int8, or leave weights out";
  for (const char* type : {"f32", "bf16"}) {
    const std::string says =
        "weights_int8: w8.h5 holds int8 weights, the case says weights=" + std::string(type) +
        legal;
    for (const char* verb : {"verify", "run"}) {
      expect_refused(std::string(verb) + " --weights w8.h5 --weights " + type + rest, says);
      expect_refused(std::string(verb) + " --weights " + type + rest + " --weights w8.h5", says);
      expect_refused(
          std::string(verb) + " --weights w8.h5 --case 'torus=2x2x3 weights=" + type + "'", says);
    }
    expect_refused(
        "explain ws2d:batch --torus 2x2x3 --weights w8.h5 --weights " + std::string(type), says);
    expect_refused("run --trace t.h5 --weights w8.h5 --weights " + std::string(type) + rest, says);
  }
  // Said or not, it is int8, and the same as weights=int8 makes of the f32 file.
  const std::string json = "run --json --checkpoints" + rest;
  const Outcome silent = run(json + " --weights w8.h5");
  EXPECT_EQ(silent.code, 0) << silent.err;
  EXPECT_NE(silent.out.find(" weights=int8 "), std::string::npos);
  EXPECT_EQ(run(json + " --weights w8.h5 --weights int8").out, silent.out);
  EXPECT_EQ(run(json + " --weights w.h5 --weights int8").out, silent.out);
  EXPECT_NE(run(json + " --weights w.h5").out, silent.out);
  const auto bytes = [&](const std::string& weights) {
    const Outcome o = run("explain wg-xyz:batch --json --torus 2x2x3" + weights);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_EQ(bytes(" --weights w8.h5"), bytes(" --weights w.h5 --weights int8"));
  EXPECT_NE(bytes(" --weights w8.h5"), bytes(" --weights w.h5"));
}

TEST_F(WeightsVerb, TheCachesAreTheCasesWhateverTheFileSays) {
  make("");
  const std::string rest = " --torus 1x2x3 --prefill ws1d";
  const std::string model = " --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2";
  for (const std::string& more : {model + ",cache=bf16", std::string(" --numerics released")}) {
    const Outcome o = run("verify --json --weights w.h5" + rest + more);
    EXPECT_EQ(o.code, 0) << o.err << o.out;
    EXPECT_NE(o.out.find(",cache=bf16 "), std::string::npos) << o.out;
  }
  expect_refused("verify --weights w.h5" + rest + model + ",eps=1e-5", "weights_model");
  expect_refused("verify --weights w8.h5 --numerics released" + rest, "weights_int8");
  expect_refused("verify --weights w.h5 --weights f32 --numerics released" + rest, "case_numerics");
}

TEST_F(WeightsVerb, AnInt8FileIsVerified) {
  make(",block=serial");
  for (const char* more : {"", " --torus 2x2x3 --prefill wg-xy:batch --decode ws2d:batch",
                           " --weights int8 --torus 2x2x3 --regime f32 --schedule ring",
                           " --case 'torus=1x2x3 prefill=ws1d weights=int8 act=bf16'"}) {
    const Outcome o = run("verify --json --weights w8.h5" + std::string(more));
    EXPECT_EQ(o.code, 0) << o.err << o.out;
    const auto json = nlohmann::json::parse(o.out);
    EXPECT_EQ(json["held"], true) << more;
    for (const auto& one : json["cases"])
      EXPECT_NE(one["case"].get<std::string>().find(" weights=int8 "), std::string::npos) << one;
  }
}

TEST_F(WeightsVerb, ALayerForInt8IsAProgramFile) {
  // The command that its own text names judges it.
  const auto named = [&](const std::string& text) {
    const auto from = text.find("# Judge it: shardproof ") + 23;
    const std::string line = text.substr(from, text.find('\n', from) - from);
    const auto file = line.find(" FILE ");
    return file == std::string::npos ? line
                                     : line.substr(0, file) + " p.txt " + line.substr(file + 6);
  };
  const std::string model = " --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264";
  int judged = 0;
  for (const char* name : {"ws2d:batch", "ws1d:heads", "wg-xy:batch", "ws2d:bfirst-xy", "sp:2d"})
    for (const char* more :
         {"", ",bias=all,norm=layernorm", ",block=serial", ",block=serial,bias=qkv,K=3"}) {
      const char* const act = (judged + judged / 4) % 2 == 0 ? "f32" : "bf16";
      const std::string flags = model + more + " --torus 2x2x3 --weights int8 --act " + act;
      const Outcome text = run("explain " + std::string(name) + " --text" + flags);
      ASSERT_EQ(text.code, 0) << text.err;
      EXPECT_NE(text.out.find("_scale : "), std::string::npos) << text.out;
      EXPECT_EQ(text.out.find(" is scaled ") != std::string::npos,
                std::string(more).find("bias") != std::string::npos)
          << flags;
      write("p.txt", text.out);
      const Outcome o = run(named(text.out) + " --json");
      EXPECT_EQ(o.code, 0) << named(text.out) << o.out << o.err;
      const auto json = nlohmann::json::parse(o.out);
      const std::string line = json["cases"][0]["case"];
      EXPECT_NE(line.find(" weights=int8 act=" + std::string(act)), std::string::npos) << line;
      EXPECT_EQ(json["cases"][0]["verdict"], "equal") << named(text.out);
      ++judged;
    }
  EXPECT_EQ(judged, 20);
  // Elsewhere it has no scales to take, and a layer without them none to give.
  const std::string flags = model + " --torus 2x2x3";
  write("p.txt", run("explain ws2d:batch --text --weights int8" + flags).out);
  for (const char* type : {"", " --weights f32", " --weights bf16"})
    expect_refused("verify --program p.txt" + flags + type,
                   "layer_c1: p.txt line 8: wq_scale: 'wq_scale' is a weight of weights=int8 "
                   "alone; the case says weights=" +
                       std::string(*type == '\0' ? "f32" : type + 11) + " (docs/program.md)");
  write("p.txt", run("explain ws2d:batch --text" + flags).out);
  expect_refused("verify --program p.txt --weights int8" + flags,
                 "layer_c4: p.txt: weights=int8 multiplies every projection by its scale");
}

TEST_F(WeightsVerb, ExplainShowsScalesInColumns) {
  for (const char* name : {"ws2d:batch", "wg-xyz:batch", "ws2d:bfirst-xy", "sp:2d"})
    for (const char* more : {"", " --model palm-tiny,bias=all,norm=layernorm --block serial"}) {
      const Outcome o = run("explain " + std::string(name) + " --weights int8" + more);
      ASSERT_EQ(o.code, 0) << o.err;
      std::istringstream lines(o.out);
      std::size_t roles = 0, scales = 0;
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("input ")) {
          roles = 0;  // another program
          continue;
        }
        EXPECT_LE(line.size(), 80U) << line;
        const auto role = line.rfind("  ") + 2;
        if (roles == 0) roles = role;
        EXPECT_EQ(role, roles) << "not in columns: " << line;
        if (line.ends_with("_scale")) ++scales;
      }
      EXPECT_EQ(scales, *more == '\0' ? 6U : 7U) << o.out;
    }
}

TEST_F(WeightsVerb, ALayerIsJudgedWithAnInt8File) {
  make(",bias=all");
  const std::string of_file = run("explain ws2d:batch --text --torus 2x2x3 --weights w8.h5").out;
  const std::string of_type =
      run("explain ws2d:batch --text --torus 2x2x3 --weights w.h5 --weights int8").out;
  EXPECT_EQ(of_file, of_type);
  write("p.txt", of_file);
  EXPECT_EQ(run("verify --program p.txt --torus 2x2x3 --weights w8.h5").code, 0);
  EXPECT_EQ(run("verify --program p.txt --torus 2x2x3 --weights w.h5 --weights int8").code, 0);
  expect_refused("verify --program p.txt --torus 2x2x3 --weights w.h5", "layer_c1: p.txt line ");
  // Legal, and wrong: the scale of another matrix of the same channels.
  std::string swapped = of_file;
  const std::string gate = "is weight w_gate_scale", up = "is weight w_up_scale";
  const auto at_gate = swapped.find(gate);
  ASSERT_NE(at_gate, std::string::npos);
  swapped.replace(swapped.find(up), up.size(), gate);
  swapped.replace(at_gate, gate.size(), up);
  write("q.txt", swapped);
  const Outcome o = run("verify --program q.txt --torus 2x2x3 --weights w8.h5");
  EXPECT_EQ(o.code, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("= scale("), std::string::npos) << o.out;
}

TEST_F(WeightsVerb, AScaleBeforeTheReductionIsRefused) {
  std::string text = run("explain ws2d:batch --text --torus 2x2x3 --weights int8").out;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"input w_gate_scale : F_zyx is", "input w_gate_scale : F_zy is"},
           {"hr : BLF_zyx = reduce_scatter(h, F, x) is raw gate",
            "hr : BLF_zy partialsum-x = scale(h, w_gate_scale) is gate"},
           {"hr_s : BLF_zyx = scale(hr, w_gate_scale) is gate",
            "hr_s : BLF_zyx = reduce_scatter(hr, F, x) is gate"}}) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  write("p.txt", text);
  const std::string says = "scale_c1: p.txt line 50: hr: operand h is BLF_zy partialsum-x";
  const std::string flags = " --program p.txt --torus 2x2x3 --weights int8";
  for (const char* regime : {"exact", "f32"})
    expect_refused("verify" + flags + " --regime " + regime, says);
  expect_refused("explain" + flags, says);
}

}  // namespace
