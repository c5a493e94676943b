#include "engine/strategies/layer_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/strategies/strategy.h"
#include "tests/engine/strategy_sample.h"
#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

class LayerFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shardproof-layer-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  /// What loading a file of this text, as a layer of the model, says; the file's name left out.
  std::string said(const std::string& text, ActType act = ActType::f32,
                   const ModelConfig& model = parse_model("palm-tiny"),
                   WeightType weights = WeightType::f32) const {
    const std::string path = (directory_ / "p.txt").string();
    std::ofstream(path, std::ios::binary) << text;
    std::string message = message_of(
        [&] { require_layer(load_layer(path), model, {.weights = weights, .act = act}); });
    if (const auto at = message.find(path); at != std::string::npos)
      message.replace(at, path.size(), "p.txt");
    return message;
  }

  static std::string whole(ActType act = ActType::f32) {
    return text_of(Strategy::parse("ws2d:batch"), parse_model("palm-tiny"), act);
  }
  static std::string text_of(const Strategy& strategy, const ModelConfig& model, ActType act) {
    return print_program(phase_under(strategy, model, Torus(4, 2, 3), act).layer);
  }
  static std::string with(const std::string& from, const std::string& to,
                          ActType act = ActType::f32) {
    std::string text = whole(act);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  fs::path directory_;
};

TEST_F(LayerFile, TakesEveryStrategy) {
  for (const Strategy& strategy : all_strategies())
    for (ActType act : {ActType::f32, ActType::bf16}) {
      const ModelConfig model =
          parse_model(serial_only(strategy) ? "palm-tiny,block=serial" : "palm-tiny");
      EXPECT_EQ(said(text_of(strategy, model, act), act, model), "") << strategy.to_string();
    }
}

TEST_F(LayerFile, RefusesWhatIsNoTextFile) {
  EXPECT_EQ(label_of([&] { load_layer((directory_ / "none").string()); }), "program_f1");
  EXPECT_EQ(label_of([&] { load_layer(directory_.string()); }), "program_f1");
  EXPECT_TRUE(said("").starts_with("program_f2: p.txt holds no statement")) << said("");
  EXPECT_TRUE(said("# nothing\n\n").starts_with("program_f2: ")) << said("# nothing\n\n");
  EXPECT_TRUE(
      said(std::string("input\0x", 7)).starts_with("program_f3: p.txt is not text: byte 5"));
  EXPECT_TRUE(said(std::string((1 << 20) + 1, '\n')).starts_with("program_f3: ")) << "too large";
  EXPECT_EQ(message_of([&] { load_layer(""); }), "program_f1: no file is named");
  EXPECT_TRUE(said("\xef\xbb\xbf" + whole()).starts_with("program_f3: p.txt begins with a byte o"));
  EXPECT_TRUE(
      said("input x : BLE is in\rinput").starts_with("program_f3: p.txt: byte 19 is a car"));
  std::string windows;
  for (char c : whole()) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(said(windows), "");
}

TEST_F(LayerFile, SaysWhichLineIsNoStatement) {
  EXPECT_EQ(
      said("# head\ninput x : BLE_w is in\n"),
      "axes_c1: p.txt line 2: 'w' in 'w' is not an axis; axes are x, y and z (docs/program.md)");
  EXPECT_EQ(said(with("swiglu(", "swigu(")).substr(0, 30), "program_c0: p.txt line 40: 'a ");
  EXPECT_NE(said(with("swiglu(", "swigu(")).find("did you mean swiglu?"), std::string::npos);
}

TEST_F(LayerFile, SaysWhatIsWrongWithTheInputs) {
  const std::pair<std::string, std::string> edits[] = {
      {with("input x : BLE_xzy is in\n", ""), "layer_c1: p.txt: no input is 'in'"},
      {with("input g", "input x2 : BLE_xzy is in\ninput g"),
       "layer_c1: p.txt: more than one input is 'in'"},
      {with("is previous v_cache", "is previous k_cache"),
       "layer_c1: p.txt: more than one input is 'previous k_cache'"},
      {with("is weight w_up", "is weight w_upp"),
       "layer_c1: p.txt line 7: w_up: the model palm-tiny has no weight 'w_upp', did you mean "
       "w_up"},
      {with("input pos : BL is", "input pos : B_xL is"),
       "layer_c1: p.txt line 10: pos: B_xL; positions are supplied unsharded"},
      {with("input x : BLE_xzy is in", "input x : BLE_x partialsum-yz is in"),
       "layer_c1: p.txt line 1: x: BLE_x partialsum-yz; inputs must be complete"},
      {with("is input pos", "is input ids"), "layer_c1: p.txt line 10: pos: a layer has no input"},
      {with("is previous k_cache", "is k_cache"), "layer_c1: p.txt line 13: k_old: a layer has no"},
      {with("input k_old", "input pk : NTKQ is prefix k_cache\ninput k_old"),
       "layer_c1: p.txt line 13: pk: a layer has no input 'prefix k_cache'; legal: in, weight"},
      {whole() + "input late : E is weight norm\n",
       "layer_c1: p.txt line 46: late: inputs must precede the first step"},
      {with("input v_old : B_zyxMKQ", "input v_old : BMKQ"),
       "layer_c3: p.txt line 14: v_old is supplied as BMKQ, but k_old as B_zyxMKQ"},
  };
  for (const auto& [text, message] : edits)
    EXPECT_EQ(said(text).substr(0, message.size()), message) << said(text);
}

TEST_F(LayerFile, HasNoStepThatIsACacheOfPrefixes) {
  const std::string message = said(with("is k_rot", "is prefix k_cache"));
  EXPECT_TRUE(message.starts_with("layer_c5: p.txt line ")) << message;
  EXPECT_NE(message.find("kp: a layer of palm-tiny has no 'prefix k_cache'"), std::string::npos)
      << message;
}

TEST_F(LayerFile, TakesTheInputsThatTheRegistryGivesToLayers) {
  for (const ValueRow& row : all_values()) {
    if (row.kind == ValueKind::stat) continue;
    const std::string name(row.name);
    const std::string role = row.cache                         ? "previous " + name
                             : row.kind == ValueKind::input    ? "input " + name
                             : row.kind == ValueKind::constant ? "constant " + name
                                                               : name;
    const std::string message =
        said(fmt::format("input extra : {} is {}\n{}", row.dims, role, whole()));
    const auto refused = message.find(fmt::format("a layer has no input '{}'; legal: ", role));
    EXPECT_EQ(refused == std::string::npos, row.of_layer_input) << message;
    for (const ValueRow& legal : all_values()) {
      if (!legal.of_layer_input || refused == std::string::npos) continue;
      EXPECT_NE(message.find(std::string(legal.name), refused), std::string::npos) << message;
    }
  }
}

TEST_F(LayerFile, SaysWhatIsWrongWithTheOutputs) {
  const std::pair<std::string, std::string> edits[] = {
      {with("output out, kc, vc\n", ""), "layer_c2: p.txt: no output is 'out'"},
      {with("output out, kc, vc", "output out, kc"), "layer_c2: p.txt line 45: no output is 'v_c"},
      {with("output out, kc, vc", "output out, kc, v_old"),
       "layer_c2: p.txt line 45: no output is"},
      {with("output out, kc, vc", "output out, kc, vc, vc"),
       "layer_c2: p.txt line 45: more than one output is 'v_cache'"},
      {with("output out, kc, vc", "output out, kc, vc, xn"),
       "layer_c2: p.txt line 45: the outputs of a layer are out, k_cache and v_cache only"},
      {with("output out, kc, vc", "output y, kc, vc"),
       "layer_c2: p.txt line 45: y is BLE_x partialsum-yz; the outputs of a layer must be "
       "complete"},
      {with("output out, kc, vc", "output out, kc, vx"),
       "program_c1: p.txt line 45: output vx is never defined"},
  };
  for (const auto& [text, message] : edits)
    EXPECT_EQ(said(text).substr(0, message.size()), message) << said(text);
}

TEST_F(LayerFile, EndsWithItsOneOutputLine) {
  const std::string line = "output out, kc, vc\n";
  EXPECT_EQ(said(with("output out, kc, vc", "output out, kc\noutput vc")).substr(0, 26),
            "program_c0: p.txt line 46:");
  EXPECT_EQ(said(with(line, "").insert(0, line)).substr(0, 25), "layer_c2: p.txt line 1: o");
}

TEST_F(LayerFile, SaysWhoseDimsAreWrong) {
  const std::pair<std::string, std::string> edits[] = {
      {with("out : BLE_xzy =", "out : BLEQ ="),
       "program_c5: p.txt line 44: out is BLEQ, but out has dims BLE"},
      {with("input x : BLE_xzy", "input x : BEL_xzy"),
       "program_c5: p.txt line 1: x is BEL_xzy, but in has dims BLE"},
      {with("kc : B_zyxMKQ =", "kc : B_zyxMK ="),
       "program_c5: p.txt line 31: kc is B_zyxMK, but k_cache has dims BMKQ"},
  };
  for (const auto& [text, message] : edits)
    EXPECT_EQ(said(text).substr(0, message.size()), message) << said(text);
}

TEST_F(LayerFile, HoldsStoreLinesIfActIsBf16) {
  EXPECT_EQ(said(whole(), ActType::bf16).substr(0, 30), "layer_c4: p.txt: act=bf16 stor");
  EXPECT_EQ(said(whole(ActType::bf16)).substr(0, 26), "layer_c4: p.txt line 20: a");
  const ModelConfig model = parse_model("palm-tiny");
  EXPECT_EQ(said(whole(), ActType::f32, model, WeightType::int8).substr(0, 33),
            "layer_c4: p.txt: weights=int8 mul");
  // Scales are weights of an int8 model alone.
  const std::string scaled = "input qs : HQ is weight wq_scale\n" + whole();
  EXPECT_EQ(said(scaled, ActType::f32, model, WeightType::int8).substr(0, 8), "layer_c4");
}

TEST_F(LayerFile, HoldsScalesIfWeightsAreInt8) {
  for (const char* block : {"parallel", "serial"}) {
    const ModelConfig model =
        parse_model(std::string("palm-tiny,bias=all,norm=layernorm,block=") + block);
    Case c;
    c.torus = Torus(4, 2, 3);
    c.model = model;
    c.numerics.weights = WeightType::int8;
    c.batch = 24;
    const Strategy strategy = Strategy::parse("ws2d:batch");
    const std::string text = print_program(partitioned(c, strategy, Phase::decode).layer);
    EXPECT_EQ(said(text, ActType::f32, model, WeightType::int8), "");
    for (const WeightType type : {WeightType::f32, WeightType::bf16}) {
      EXPECT_EQ(said(text, ActType::f32, model, type),
                fmt::format("layer_c1: p.txt line 5: wq_scale: 'wq_scale' is a weight of "
                            "weights=int8 alone; the case says weights={} (docs/program.md)",
                            to_string(type)));
      // Every scale of the model is one, and no scale of the other block's is its.
      for (const WeightRow& row : all_weights()) {
        if (row.kind != WeightKind::scale) continue;
        const std::string message =
            said(fmt::format("input s : {} is weight {}\n{}", row.dims, row.name,
                             text_of(strategy, model, ActType::f32)),
                 ActType::f32, model, type);
        const std::string begin =
            row.in_model(model)
                ? fmt::format("'{}' is a weight of weights=int8 alone", row.name)
                : fmt::format("the model {} has no weight '{}'", print_model(model), row.name);
        EXPECT_TRUE(message.starts_with("layer_c1: p.txt line 1: s: " + begin)) << message;
      }
    }
  }
}

TEST_F(LayerFile, SaysScaledOfInt8WeightsOnly) {
  const ModelConfig model = parse_model("palm-tiny");
  const std::string text =
      with("hr : BLF_zyx = reduce_scatter(h, F, x) is raw gate",
           "hr : BLF_zyx = reduce_scatter(h, F, x) is scaled gate", ActType::bf16);
  for (const WeightType type : {WeightType::f32, WeightType::bf16})
    EXPECT_TRUE(said(text, ActType::bf16, model, type)
                    .starts_with("layer_c5: p.txt line 44: hr: a layer of palm-tiny has no "
                                 "'scaled gate'"))
        << said(text, ActType::bf16, model, type);
  // What is not an input of a layer does not become one by being scaled.
  EXPECT_EQ(said("input s : BLF is scaled gate\n" + whole(), ActType::f32, model, WeightType::int8)
                .substr(0, 70),
            "layer_c1: p.txt line 1: s: a layer has no input 'scaled gate'; legal: ");
}

TEST(SmallestBatch, IsTheLeastThatEveryBDivides) {
  const auto batch = [](const std::string& text, const Torus& torus) {
    return smallest_batch(Strategy(parse_program("layer", text)), torus);
  };
  EXPECT_EQ(batch("input x : BLE_xzy is in", Torus(4, 2, 3)), 1);
  EXPECT_EQ(batch("input x : B_xLE is in\ny : B_zLE = slice(x, B, z) is in", Torus(4, 2, 3)), 12);
  EXPECT_EQ(batch("input x : B_xLE is in\ny : B_zLE = slice(x, B, z) is in", Torus(6, 2, 4)), 12);
}

}  // namespace
}  // namespace shardproof
