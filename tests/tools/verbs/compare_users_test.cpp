// What `compare` says to people: of ranks, forms of arrays, files of others, and in which order.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/run/case.h"
#include "golden/memo/oracle_memo.h"
#include "tests/tools/cli_fixture.h"
#include "weights/base/bf16.h"
#include "weights/hdf5/detail/writer.h"

namespace {

using namespace shardproof;

const std::string kUsersCase =
    "torus=4x2x1 model=llama,layers=1,E=16,F=16,H=8,K=2,Q=4,V=24 batch=2 prompt=3 gen=2 seed=3";
const std::string kLayer = "prefill.c0.layer0.";

class CompareUsers : public Cli {
 protected:
  CompareUsers() : known_(OracleMemo().get(parse_case(kUsersCase))) {}

  using Attributes = std::map<std::string, std::string>;
  struct Value {
    std::string name;
    Tensor numbers;
    Attributes attributes = {};
    bool wide = false;  ///< as f64, a little off
  };

  Tensor value(const std::string& id) const { return known_->answer.checkpoints.at(id); }

  std::string trace(const std::string& name, const std::vector<Value>& values,
                    const Attributes& attributes = {{"arithmetic", "f32"}},
                    const std::string& line = kUsersCase) const {
    Hdf5Writer file(path(name), "file_write");
    const auto root = file.root();
    root.put("format", "shardproof trace");
    root.put("version", 1);
    root.put("case", line);
    for (const auto& [key, text] : attributes) root.put(key.c_str(), text);
    for (const Value& v : values) {
      std::vector<double> wide(v.numbers.data.begin(), v.numbers.data.end());
      for (double& x : wide) x *= 1 + 0x1p-40;
      auto made = v.wide ? file.dataset(root, v.name, v.numbers.shape, wide)
                         : file.dataset(root, v.name, v.numbers.shape, v.numbers.data);
      for (const auto& [key, text] : v.attributes) made.put(key.c_str(), text);
    }
    file.write();
    return name;
  }

  /// Each chip's block of F over x and y, stacked y before x.
  static Tensor stacked_yx(const Tensor& whole) {
    Tensor t(Shape{2, 4, 2, 3, 2});
    std::size_t i = 0;
    for (std::size_t y = 0; y < 2; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        for (std::size_t token = 0; token < 6; ++token)
          for (std::size_t f = 0; f < 2; ++f)
            t.data[i++] = whole.data[token * 16 + (x * 2 + y) * 2 + f];
    return t;
  }

  std::string report(const std::string& file, const std::string& flags = "") const {
    return run("compare " + file + " " + flags).out;
  }
  nlohmann::json json(const std::string& file) const {
    return nlohmann::json::parse(run("compare " + file + " --json").out);
  }

  std::shared_ptr<const OracleMemo::Known> known_;
};

/// Without line breaks and their indentation.
std::string flat(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

#define EXPECT_SAYS(text, part) EXPECT_NE(flat(text).find(part), std::string::npos) << (text)

TEST_F(CompareUsers, NamesTheRankByTheMesh) {
  Tensor gate = stacked_yx(value(kLayer + "gate"));
  gate.data[(1 * 4 + 2) * 12 + 5] += 1.0F;  // y=1, x=2
  const std::vector<Value> values{{kLayer + "norm2", value(kLayer + "norm2")},
                                  {kLayer + "gate", gate, {{"layout", "BLF_xy"}}}};
  const std::string file = trace("t.h5", values, {{"arithmetic", "f32"}, {"mesh", "y x"}});
  const std::string said = report(file);
  EXPECT_SAYS(said, "on chip (2,1,0), rank 6: ");
  const auto first = json(file)["first"];
  EXPECT_EQ(first["first"]["chip"], "(2,1,0)");
  EXPECT_EQ(first["first"]["rank"], 6);
  EXPECT_EQ(first["worst"]["rank"], 6);
}

TEST_F(CompareUsers, CountsAddUp) {
  Tensor up = value(kLayer + "up");
  up.data.back() += 1.0F;
  const std::string file =
      trace("t.h5", {{"layer0.w_up", *known_->stored.at("layer0.w_up")},
                     {kLayer + "norm2", value(kLayer + "norm2")},
                     {kLayer + "gate", value(kLayer + "gate")},
                     {kLayer + "again", value(kLayer + "gate"), {{"meaning", "gate"}}},
                     {kLayer + "up", up},
                     {kLayer + "moe", value(kLayer + "ffn_out"), {{"meaning", "ffn_out"}}},
                     {kLayer + "nothing", up}});
  const std::string said = report(file, "--given moe");
  EXPECT_SAYS(said,
              "3 of 50 values compared; 6 rows: 1 equal, 3 within, 1 different, 1 not judged, "
              "of which 1 given; 1 unknown names");
  const auto json = nlohmann::json::parse(run("compare " + file + " --given moe --json").out);
  EXPECT_EQ(json["rows"], 6);
  EXPECT_EQ(json["values"].size(), 6U);
  EXPECT_EQ(json["given"], 1);
}

TEST_F(CompareUsers, FirstIsAlwaysInTheJson) {
  const auto right = json(trace("t.h5", {{kLayer + "norm2", value(kLayer + "norm2")},
                                         {kLayer + "gate", value(kLayer + "gate")}}));
  ASSERT_TRUE(right.contains("first"));
  EXPECT_TRUE(right["first"].is_null());
  EXPECT_TRUE(right["notes"].empty());
  const auto none = json(trace("t.h5", {}));
  EXPECT_TRUE(none.contains("first") && none["first"].is_null());
}

TEST_F(CompareUsers, KvHeadsThatChipsShareAreCutOverFewer) {
  for (const auto& [line, shape, layout, hint] :
       {std::tuple{"torus=4x1x1", Shape{4, 1, 1, 2, 3, 1, 4}, "BLK_xQ",
                   "where chips share a kv head, it is cut over fewer: torus=2x2x1, H_xy, K_x"},
        {"torus=1x8x1", Shape{1, 8, 1, 2, 3, 1, 4}, "BLK_yQ", "torus=4x2x1, H_yx, K_y"},
        {"torus=2x2x2", Shape{2, 2, 2, 2, 3, 1, 4}, "BLK_xyQ", "it is cut over fewer"}}) {
    const std::string of = line + kUsersCase.substr(kUsersCase.find(' '));
    const std::string said =
        report(trace("t.h5", {{kLayer + "k", Tensor(shape), {{"layout", layout}}}},
                     {{"arithmetic", "f32"}}, of));
    EXPECT_SAYS(said, hint);
    EXPECT_EQ(said.find("padded"), std::string::npos) << said;
  }
  // One kv head for all has no axes.
  std::string one = "torus=4x1x1" + kUsersCase.substr(kUsersCase.find(' '));
  one.replace(one.find("K=2"), 3, "K=1");
  EXPECT_SAYS(
      report(trace("t.h5",
                   {{kLayer + "k", Tensor(Shape{4, 1, 1, 2, 3, 1, 4}), {{"layout", "BLK_xQ"}}}}, {},
                   one)),
      "without axes, K");
  // Fused, too.
  const std::string four = "torus=4x1x1" + kUsersCase.substr(kUsersCase.find(' '));
  const std::string fused =
      report(trace("t.h5",
                   {{kLayer + "qkv",
                     Tensor(Shape{4, 1, 1, 2, 3, 4, 4}),
                     {{"fused", "q,k,v"}, {"along", "H"}, {"layout", "BLH_xQ, BLK_xQ, BLK_xQ"}}}},
                   {}, four));
  EXPECT_SAYS(fused,
              "does not divide K 2; where chips share a kv head, it is cut over fewer: "
              "torus=2x2x1, H_xy, K_x");
}

TEST_F(CompareUsers, FlatTokensAreOneRightHint) {
  for (const Shape& shape :
       {Shape{6, 16}, Shape{1, 6, 16}, Shape{6, 1, 16}, Shape{4, 2, 1, 6, 16}}) {
    const std::string said =
        report(trace("t.h5", {{kLayer + "gate", Tensor(shape), {{"layout", "BLF"}}}}));
    EXPECT_SAYS(said, "flat tokens are rows of 3 tokens: reshape 6 to B 2, L 3");
    EXPECT_EQ(said.find("padded"), std::string::npos) << said;
  }
  // What is longer for another reason is not.
  const std::string padded =
      report(trace("t.h5", {{kLayer + "gate", Tensor(Shape{2, 4, 16}), {{"layout", "BLF"}}}}));
  EXPECT_SAYS(padded, "padding is declared: padded=\"L\"");
  EXPECT_EQ(padded.find("flat"), std::string::npos);
}

TEST_F(CompareUsers, NamesTheCommandThatImportsWhatIsNoTrace) {
  fs::create_directories(path("my dumps"));
  write("old.pt", std::string("\x80\x02\x8a\x0al\xfc\x9c"
                              "F\xf9 j\xa8P\x19.",
                              15));
  const std::string local =
      std::string("PK\3\4") + std::string(22, '\0') + std::string("\x10\0\0\0", 4);
  write("new.pt", local + "archive/data.pkl" + std::string(70000, 'x'));
  write("late.pt", local + "archive/version_" + std::string(70000, 'x') + "archive/data.pkl");
  write("m.safetensors", std::string("\x40\0\0\0\0\0\0\0", 8) + R"({"a": {"dtype": "F32"}})");
  write("a.npy", "\x93NUMPY\1");
  const std::pair<std::string, std::string> cases[] = {{"'my dumps'", "a folder"},
                                                       {"old.pt", "a file of torch.save"},
                                                       {"new.pt", "a file of torch.save"},
                                                       {"late.pt", "a file of torch.save"},
                                                       {"m.safetensors", "a safetensors file"},
                                                       {"a.npy", "one array of NumPy"}};
  for (const auto& [word, kind] : cases)
    expect_refused("compare " + word,
                   fmt::format("is {0}, no trace; to judge it: python -m shardproof judge {1} "
                               "--model HFDIR; to make a trace of it: python -m shardproof import "
                               "{1} --out t.h5 (docs/importing.md)\n",
                               kind, word));
  EXPECT_EQ(run("compare 'my dumps'").err.rfind("shardproof: compare_import: \"my dumps\" is", 0),
            0U);
  // What is none of these is what it was.
  write("zip.npz", local + "x.npy" + std::string(100, 'x'));
  write("short.safetensors", std::string("\x40\0\0\0\0\0\0\0", 8));
  write("long.safetensors", "12345678{");
  for (const char* other :
       {"zip.npz", "short.safetensors", "long.safetensors", "none.pt", "/dev/null"})
    expect_refused(std::string("compare ") + other, "shardproof: dump_open: ");
}

TEST_F(CompareUsers, OfF64NumbersClaimsTheLeast) {
  const std::vector<Value> values{{kLayer + "norm2", value(kLayer + "norm2"), {}, true},
                                  {kLayer + "gate", value(kLayer + "gate"), {}, true}};
  const Outcome least = run("compare " + trace("t.h5", values, {}));
  EXPECT_EQ(least.code, 0) << least.out;
  EXPECT_SAYS(least.out,
              "hold numbers that are not f32: without arithmetic they are judged as what "
              "claims least, f32; declare arithmetic=f64");
  const Outcome claimed = run("compare " + trace("t.h5", values));
  EXPECT_EQ(claimed.code, 1);
  EXPECT_SAYS(claimed.out,
              "is within its bound, and no f32 number, which arithmetic=f32 claims: "
              "declare arithmetic=f64");
  // A fault shows all the same.
  std::vector<Value> wrong = values;
  wrong[1].numbers.data.back() *= 1.001F;
  EXPECT_EQ(run("compare " + trace("t.h5", wrong, {})).code, 1);
}

TEST_F(CompareUsers, AnHdf5FileIsReadInTheOrderOfItsPasses) {
  // By the alphabet decode.1 comes before prefill.c0.
  Tensor wrong = value(kLayer + "k_cache");
  for (float& v : wrong.data) v += 1.0F;
  const std::string file =
      trace("t.h5", {{"decode.1.layer0.old", wrong, {{"meaning", "previous k_cache"}}},
                     {kLayer + "q_rot", value(kLayer + "q_rot")},
                     {kLayer + "k_rot", value(kLayer + "k_rot")},
                     {kLayer + "k_cache", value(kLayer + "k_cache")},
                     {kLayer + "score", value(kLayer + "score")}});
  const auto json = this->json(file);
  EXPECT_EQ(json["first"]["name"], "decode.1.layer0.old");
  for (const auto& row : json["values"]) {
    if (row["name"] != kLayer + "k_cache" && row["name"] != kLayer + "score") continue;
    EXPECT_EQ(row["fit"], "within") << row["name"] << ": it is of the prefill's own cache";
  }
  // Of two that are one value the prefill's is first, though it comes last by the alphabet.
  std::vector<std::string> names;
  for (const auto& row : json["values"])
    if (row["id"] == kLayer + "k_cache") names.push_back(row["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{kLayer + "k_cache", "decode.1.layer0.old"}));
}

TEST_F(CompareUsers, SaysThatIdsMayBeForgotten) {
  const Tensor& table = *known_->stored.at("embed");
  const std::vector<std::size_t> ids{5, 17, 2, 9, 0, 23};
  Tensor embed(Shape{2, 3, 16});
  for (std::size_t i = 0; i < embed.data.size(); ++i)
    embed.data[i] = table.data[ids[i / 16] * 16 + i % 16];
  const std::string said = report(trace("t.h5", {{"prefill.c0.embed", embed}}));
  EXPECT_SAYS(said,
              "the trace has no ids, and prefill.c0.embed is of other ids than the seed's "
              "prompt, 5, 17, 2, 9, 0, 23, ...; put prefill.c0.ids in");
  // By its first norm.
  Tensor norm = embed;
  const Tensor& gain = *known_->stored.at("layer0.norm");
  for (std::size_t token = 0; token < 6; ++token) {
    double squares = 0.0;
    for (std::size_t e = 0; e < 16; ++e)
      squares += static_cast<double>(embed.data[token * 16 + e] * embed.data[token * 16 + e]);
    const double r = 1 / std::sqrt(squares / 16 + 1e-5);
    for (std::size_t e = 0; e < 16; ++e)
      norm.data[token * 16 + e] =
          static_cast<float>(static_cast<double>(embed.data[token * 16 + e]) * r) * gain.data[e];
  }
  EXPECT_SAYS(report(trace("t.h5", {{kLayer + "norm", norm}})),
              "prefill.c0.layer0.norm is of other ids than the seed's prompt, 5, 17, 2");
  // What is made of neither is only said to be of the seed's prompt.
  Tensor q = value(kLayer + "q");
  for (float& v : q.data) v = 2.0F - v;
  EXPECT_SAYS(
      report(trace("t.h5", {{kLayer + "q", q}})),
      "the trace has no ids, and is judged as of the seed's prompt; if it is of another, put "
      "prefill.c0.ids in");
  // One wrong number is no other prompt; nor is what stands behind the ids.
  Tensor one = value("prefill.c0.embed");
  one.data[7] += 1.0F;
  EXPECT_EQ(report(trace("t.h5", {{"prefill.c0.embed", one}})).find("no ids"), std::string::npos);
  EXPECT_EQ(report(trace("t.h5", {{"prefill.c0.embed", value("prefill.c0.embed")},
                                  {kLayer + "norm", value(kLayer + "norm")},
                                  {kLayer + "q", q}}))
                .find("no ids"),
            std::string::npos);
}

TEST_F(CompareUsers, GivenIsOfTheCommandLine) {
  Tensor moe = value(kLayer + "ffn_out"), out = value(kLayer + "mid");
  for (std::size_t i = 0; i < moe.data.size(); ++i) {
    moe.data[i] = 1.0F - moe.data[i];
    out.data[i] += moe.data[i];
  }
  const std::string file = trace("t.h5", {{kLayer + "mid", value(kLayer + "mid")},
                                          {kLayer + "moe_out", moe, {{"meaning", "ffn_out"}}},
                                          {kLayer + "out", out}});
  EXPECT_EQ(run("compare " + file).code, 1);
  for (const char* pattern : {"'layers.*.moe_out'", "'*moe_out'", "layer0.moe_out --given mid"}) {
    const Outcome o = run("compare " + file + " --given " + pattern);
    EXPECT_EQ(o.code, 0) << pattern << o.out << o.err;
    EXPECT_SAYS(o.out, "not judged given");
  }
  expect_refused("compare " + file + " --given 'layers.*.router'",
                 "compare_given: given=\"layers.*.router\": no value of the trace has such a name");
}

TEST_F(CompareUsers, FailsFromTheVerdictThatIsAskedFor) {
  const std::string right = trace("t.h5", {{kLayer + "norm2", value(kLayer + "norm2")},
                                           {kLayer + "gate", value(kLayer + "gate")}});
  EXPECT_EQ(run("compare " + right + " --fail-on loose").code, 0);
  EXPECT_EQ(run("compare " + right + " --fail-on within").code, 1) << "its best verdict";
  EXPECT_EQ(run("compare " + right + " --fail-on 'within 1-2^-41'").code, 0);
  for (const char* word : {"equal", "'not judged'", "wrong"})
    expect_refused("compare " + right + " --fail-on " + word, "compare_fail_on: --fail-on ");
}

TEST_F(CompareUsers, SaysHowMuchTheNearestLeave) {
  // Half of it, and a little besides.
  Tensor gate = value(kLayer + "gate");
  for (std::size_t i = 0; i < gate.data.size(); ++i)
    gate.data[i] = gate.data[i] / 2 + (i * 7 % 13 < 6 ? 1e-3F : -1e-3F);
  const std::string file = trace("t.h5", {{kLayer + "norm2", value(kLayer + "norm2")},
                                          {kLayer + "gate", gate, {{"layout", "BLF"}}}});
  EXPECT_SAYS(report(file), "of the difference; ");
  const auto said = json(file)["diagnosis"];
  ASSERT_FALSE(said.empty());
  for (const auto& cause : said) {
    EXPECT_FALSE(cause["explains"]) << cause;
    EXPECT_LE(cause["left"], 0.1) << cause;
  }
}

TEST_F(CompareUsers, NamesTheWayOfRounding) {
  const std::string line = kUsersCase + " act=bf16 weights=bf16";
  const auto known = OracleMemo().get(parse_case(line));
  const Tensor embed = known->answer.checkpoints.at("prefill.c0.embed");
  const Tensor& gain = *known->stored.at("layer0.norm");
  Tensor norm = embed;
  for (std::size_t i = 0; i < norm.data.size(); ++i) {
    float squares = 0;
    for (std::size_t e = 0; e < 16; ++e)
      squares += embed.data[i / 16 * 16 + e] * embed.data[i / 16 * 16 + e];
    norm.data[i] = round_to_bf16(
        round_to_bf16(embed.data[i] * (1 / std::sqrt(squares / 16 + 1e-5F))) * gain.data[i % 16]);
  }
  const std::string said =
      report(trace("t.h5", {{"prefill.c0.embed", embed}, {kLayer + "norm", norm}}, {}, line));
  EXPECT_SAYS(said, "norm (1 value): x·r is rounded; every other way misses at least ");
}

TEST_F(CompareUsers, ReportsFitInEightyColumns) {
  const std::string said =
      report(trace("t.h5",
                   {{kLayer + "gate", Tensor(Shape{6, 16}), {{"layout", "BLF"}}},
                    {kLayer + "up", Tensor(Shape{2, 3, 15})},
                    {kLayer + "norm2", value(kLayer + "norm2"), {}, true}},
                   {}));
  expect_80_columns(said, "$");
  EXPECT_SAYS(said, "not fitting the model");
}

}  // namespace
