// The verb `golden`, and `compare --golden`: what they print and write, and what they refuse.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "golden/corpus/detail/stacked.h"
#include "tests/golden/corpus/goldens.h"
#include "tests/sanitized.h"
#include "tests/tools/cli_fixture.h"

namespace {

using Json = nlohmann::json;

const std::string kGoldenCase =
    "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12,positions=8 "
    "prefill=wg-xyz:batch decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2";
const std::string kCorpus = SHARDPROOF_SOURCE "/golden/v1";

class GoldenVerb : public Cli {
 protected:
  void golden(const std::string& what, const std::string& name) const {
    const Outcome o = run("golden write " + what + " --out " + name);
    ASSERT_EQ(o.code, 0) << what << "\n" << o.out << o.err;
  }
  void model(const std::string& name, const std::string& keys = "") const {
    golden("--case '" + kGoldenCase + " " + keys + "'", name);
  }
  /// One bit of the number at this place of a value of a golden.
  void flip(const std::string& name, const std::string& of, std::size_t element) const {
    using namespace shardproof;
    corpus::save(corpus::flipped(dump::read_dump(path(name)), of, element), path(name));
  }
};

TEST_F(GoldenVerb, ChecksTheReleasedCorpus) {
  if (shardproof::kSanitized) GTEST_SKIP() << "under a sanitizer: long, and of no other code";
  const Outcome o = run("golden check '" + kCorpus + "' --released --quiet");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.out, "57 of 57 goldens equal, 4853 values; released as version 1\n");
  const Json all = Json::parse(run("golden check '" + kCorpus + "' --json").out);
  EXPECT_EQ(all["verdict"], "equal");
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["goldens"].size(), 57U);
  EXPECT_EQ(all["equal"], 57);
  EXPECT_EQ(all["values"], 4853);
}

TEST_F(GoldenVerb, ChecksAZoo) {
  fs::create_directories(path("zoo") / "known");
  fs::copy(SHARDPROOF_SOURCE "/golden/zoo/v1/known/gate-for-up.hooks.npz", path("zoo") / "known");
  const auto with = [&](const std::string& cause, const std::string& flags) {
    write("zoo/FAULTS",
          "fault 1\nsays gate and up are exchanged\nmet converted checkpoint\n"
          "dump known/gate-for-up.hooks\n"
          "case torus=4x1x1 model=llama,layers=1,E=16,F=24,H=8,K=4,Q=4,V=24 batch=2 prompt=5 "
          "chunk=5 gen=1 seed=3\nfirst prefill.c0.layer0.gate\ncause " +
              cause + "\n");
    EXPECT_EQ(run("-c 'cd zoo && sha256sum FAULTS known/* > MANIFEST.sha256'", "bash").code, 0);
    return run("golden check zoo" + flags);
  };
  Outcome o = with("gate and up swapped", "");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.out,
            "known/gate-for-up.hooks                named     gate and up swapped\n"
            "1 faults, 1 dumps: 1 named, 0 not yet, 0 different; not a released zoo\n");
  EXPECT_EQ(run("golden check zoo --released").code, 1);
  o = with("mask", " --quiet");
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(o.out,
            "known/gate-for-up.hooks                different \n"
            "  the cause is \"gate and up swapped\", \"columns of a fused weight\", FAULTS says\n"
            "    \"mask\"\n"
            "1 faults, 1 dumps: 0 named, 0 not yet, 1 different; not a released zoo\n");
  const Json all = Json::parse(run("golden check zoo --json").out);
  EXPECT_EQ(all["verdict"], "different");
  EXPECT_EQ(all["of"], 1);
  EXPECT_EQ(all["dumps"][0]["said"], "gate and up swapped, columns of a fused weight");
  EXPECT_EQ(all["dumps"][0]["verdict"], "different");
  with("a monster", "");
  expect_refused("golden check zoo", "zoo_faults: line 7: \"cause a monster\"");
  fs::remove(path("zoo") / "known" / "gate-for-up.hooks.npz");
  expect_refused("golden check zoo", "corpus_checksum");
}

/// Seen before anything is computed: it takes no time.
TEST_F(GoldenVerb, AFlippedByteOfTheReleasedCorpus) {
  fs::copy(kCorpus, path("v1"), fs::copy_options::recursive);
  for (const char* name : {"CASES", "l0/layouts-4x2x3.h5", "l3/llama.h5"}) {
    const std::string before = slurp(path("v1") / name);
    std::string bytes = before;
    bytes[bytes.size() / 2] ^= 4;
    write(std::string("v1/") + name, bytes);
    expect_refused("golden check v1 --released", "corpus_checksum: \"v1/" + std::string(name));
    expect_refused("golden check v1 --json", "corpus_checksum");
    write(std::string("v1/") + name, before);
  }
  std::string manifest = slurp(path("v1/MANIFEST.sha256"));
  manifest[0] = manifest[0] == '0' ? '1' : '0';
  write("v1/MANIFEST.sha256", manifest);
  expect_refused("golden check v1", "corpus_checksum: ");
}

TEST_F(GoldenVerb, AChangedValueIsSeen) {
  model("g.h5");
  flip("g.h5", "decode.1.layer0.gate", 7);
  const Outcome o = run("golden check g.h5");
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(o.out.find("g.h5: decode.1.layer0.gate [0,0,7] is "), 0U) << o.out;
  const Json said = Json::parse(run("golden check g.h5 --json").out);
  EXPECT_EQ(said["verdict"], "different");
  EXPECT_NE(said["fault"].get<std::string>().find("decode.1.layer0.gate"), std::string::npos);
}

TEST_F(GoldenVerb, WeightsOfAFile) {
  ASSERT_EQ(run("weights generate --model palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12,positions=8 "
                "--seed 5 --out w.h5")
                .code,
            0);
  golden("--case '" + kGoldenCase + "' --weights w.h5", "g.h5");
  EXPECT_EQ(run("golden check g.h5").code, 0);
  EXPECT_EQ(run("compare g.h5 --golden g.h5").code, 0);
  flip("g.h5", "prefill.c0.embed", 0);
  EXPECT_EQ(run("golden check g.h5").code, 1);
}

/// A golden of a text whose rows continue prefixes has the caches of these, and the text itself.
TEST_F(GoldenVerb, OfATextWithPrefixes) {
  const std::string file =
      write("m.model",
            run("list models --text palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12,positions=8").out);
  std::string line = kGoldenCase;
  const auto at = line.find("model=") + 6;
  line.replace(at, line.find(' ', at) - at, file);
  golden("--case '" + line + " prefix=2:3'", "t.h5");
  fs::remove(file);
  const Outcome o = run("golden check t.h5");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  flip("t.h5", "prefix.c0.layer0.v_cache", 1);
  EXPECT_EQ(run("golden check t.h5").code, 1);
}

TEST_F(GoldenVerb, CompareWithAModel) {
  model("g.h5");
  const Outcome same = run("compare g.h5 --golden g.h5 --quiet");
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_NE(same.out.find(" 0 different"), std::string::npos) << same.out;
  model("mine.h5");
  flip("mine.h5", "decode.1.layer0.gate", 7);
  const Outcome o = run("compare mine.h5 --golden g.h5 --quiet");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("first divergence: decode.1.layer0.gate"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("first [0,0,7]: "), std::string::npos) << o.out;
  // By a golden that is damaged nobody is judged.
  expect_refused("compare g.h5 --golden mine.h5", "golden_value: mine.h5 is damaged: ");
}

TEST_F(GoldenVerb, CompareWithOtherIds) {
  model("g.h5");
  model("mine.h5");
  flip("mine.h5", "prefill.c0.ids", 3);
  const Outcome o = run("compare mine.h5 --golden g.h5 --quiet");
  EXPECT_EQ(o.code, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("prefill.c0.ids"), std::string::npos) << o.out;
}

TEST_F(GoldenVerb, CompareWithOtherWeights) {
  model("g.h5");
  model("mine.h5");
  flip("mine.h5", "layer0.wq", 3);
  const Outcome o = run("compare mine.h5 --golden g.h5 --quiet");
  EXPECT_EQ(o.code, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("layer0.wq"), std::string::npos) << o.out;
}

/// Values of somebody's own layouts, stacked.
TEST_F(GoldenVerb, CompareStackedValues) {
  using namespace shardproof;
  model("g.h5");
  dump::Dump file = dump::read_dump(path("g.h5"));
  std::string other = kGoldenCase;
  other.replace(other.find("2x1x3"), 5, "1x3x2");
  file.attributes["case"] = other;
  const Torus torus(1, 3, 2);
  dump::Value& gate = file.values.find("decode.1.layer0.gate")->second;
  const Shape shape = gate.whole.shape;
  std::vector<float> whole;
  for (std::size_t i = 0; i < gate.whole.size(); ++i)
    whole.push_back(static_cast<float>(gate.whole.at(i)));
  const Layout layout = Layout::parse("B_yLF_z");
  const std::vector<float> shards = corpus::stacked<float>(
      layout, shape, torus, [&](int) -> const auto& { return whole; });
  gate.attributes["layout"] = layout.to_string();
  gate.whole.shape = corpus::stacked_shape(torus, judged_block(layout, shape, torus));
  gate.whole.bytes.resize(shards.size() * sizeof(float));
  std::memcpy(gate.whole.bytes.data(), shards.data(), gate.whole.bytes.size());
  corpus::save(file, path("mine.h5"));
  const Outcome o = run("compare mine.h5 --golden g.h5 --quiet");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  flip("mine.h5", "decode.1.layer0.gate", 71);
  EXPECT_NE(run("compare mine.h5 --golden g.h5 --quiet").out.find("on chip (0,2,1)"),
            std::string::npos);
}

TEST_F(GoldenVerb, CompareWithLayoutsAndCollectives) {
  golden("--layouts 2x1x3", "g.h5");
  golden("--layouts 2x1x3", "mine.h5");
  EXPECT_EQ(run("compare mine.h5 --golden g.h5 --quiet").out,
            "106 of 106 values compared; 106 rows: 106 equal, 0 different\n");
  flip("mine.h5", "BLE_xz", 9);
  const Outcome o = run("compare mine.h5 --golden g.h5 --quiet");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("first divergence: BLE_xz\n"), std::string::npos) << o.out;
  const Json said = Json::parse(run("compare mine.h5 --golden g.h5 --json").out);
  EXPECT_EQ(said["verdict"], "different");
  EXPECT_EQ(said["golden"], "g.h5");
  EXPECT_EQ(said["case"], "layouts 2x1x3");
  EXPECT_EQ(said["first"]["name"], "BLE_xz");
  EXPECT_EQ(said["first"]["first"]["chip"], "(0,0,1)");
  EXPECT_EQ(said["compared"], 106);
  expect_refused("compare g.h5 --golden mine.h5", "golden_value: the golden is damaged: BLE_xz");
  golden("--collectives 2x1x3", "c.h5");
  const Outcome none = run("compare g.h5 --golden c.h5 --quiet");
  EXPECT_EQ(none.code, 1) << "a file of other values proves nothing";
}

}  // namespace
