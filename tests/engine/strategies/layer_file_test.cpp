#include "engine/strategies/layer_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/strategies/strategy.h"
#include "tests/engine/strategy_sample.h"
#include "tests/engine/text_rows.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

class LayerFile : public testing::Test {
 protected:
  /// What loading a file of this text, as a layer of the model, says; the file's name left out.
  std::string said(const std::string& text, NumberFormat act = NumberFormat::f32,
                   const ModelConfig& model = parse_model("palm-tiny"),
                   NumberFormat weights = NumberFormat::f32) const {
    const std::string path = (directory_ / "p.txt").string();
    std::ofstream(path, std::ios::binary) << text;
    std::string message = message_of(
        [&] { require_layer(load_layer(path), model, {.weights = weights, .act = act}); });
    if (const auto at = message.find(path); at != std::string::npos)
      message.replace(at, path.size(), "p.txt");
    return message;
  }

  static std::string whole(NumberFormat act = NumberFormat::f32) {
    return text_of(Strategy::parse("ws2d:batch"), parse_model("palm-tiny"), act);
  }
  static std::string text_of(const Strategy& strategy, const ModelConfig& model, NumberFormat act) {
    return print_program(phase_under(strategy, model, Torus(4, 2, 3), act).layer);
  }
  static std::string with(const std::string& from, const std::string& to,
                          NumberFormat act = NumberFormat::f32) {
    std::string text = whole(act);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  Folder directory_;
};

TEST_F(LayerFile, TakesEveryStrategy) {
  for (const Strategy& strategy : all_strategies())
    for (NumberFormat act : {NumberFormat::f32, NumberFormat::bf16}) {
      const ModelConfig model =
          parse_model(serial_only(strategy) ? "palm-tiny,block=serial" : "palm-tiny");
      EXPECT_EQ(said(text_of(strategy, model, act), act, model), "") << strategy.to_string();
    }
}

TEST_F(LayerFile, RefusesWhatIsNoTextFile) {
  EXPECT_EQ(label_of([&] { load_layer((directory_ / "none").string()); }), "program_f1");
  EXPECT_EQ(label_of([&] { load_layer(directory_.path().string()); }), "program_f1");
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

TEST_F(LayerFile, RefusesWhatItsTableSays) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/strategies", "layers.txt")) {
    const std::vector<std::string> edit = parts_of(row[0], "=>");
    const std::string message = said(with(edit.at(0), lines_of(edit.at(1))));
    EXPECT_TRUE(matches(message, row[1])) << row.place << ": " << message;
  }
  EXPECT_EQ(
      said("# head\ninput x : BLE_w is in\n"),
      "axes_c1: p.txt line 2: 'w' in 'w' is not an axis; axes are x, y and z (docs/program.md)");
  // The line of outputs is the last.
  const std::string outputs = "output out, kc, vc\n";
  EXPECT_TRUE(said(outputs + with(outputs, "")).starts_with("layer_c2: p.txt line 1: o"));
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

TEST_F(LayerFile, HoldsStoreLinesIfActIsBf16) {
  EXPECT_EQ(said(whole(), NumberFormat::bf16).substr(0, 30), "layer_c4: p.txt: act=bf16 stor");
  EXPECT_EQ(said(whole(NumberFormat::bf16)).substr(0, 26), "layer_c4: p.txt line 20: a");
  const ModelConfig model = parse_model("palm-tiny");
  EXPECT_EQ(said(whole(), NumberFormat::f32, model, NumberFormat::int8).substr(0, 33),
            "layer_c4: p.txt: weights=int8 mul");
  // Scales are weights of an int8 model alone.
  const std::string scaled = "input qs : HQ is weight wq_scale\n" + whole();
  EXPECT_EQ(said(scaled, NumberFormat::f32, model, NumberFormat::int8).substr(0, 8), "layer_c4");
}

TEST_F(LayerFile, HoldsScalesIfWeightsAreInt8) {
  for (const char* block : {"parallel", "serial"}) {
    const ModelConfig model =
        parse_model(std::string("palm-tiny,bias=all,norm=layernorm,block=") + block);
    Case c;
    c.torus = Torus(4, 2, 3);
    c.model = model;
    c.numerics.weights = NumberFormat::int8;
    c.batch = 24;
    const Strategy strategy = Strategy::parse("ws2d:batch");
    const std::string text = print_program(partitioned(c, strategy, Phase::decode).layer);
    EXPECT_EQ(said(text, NumberFormat::f32, model, NumberFormat::int8), "");
    for (const NumberFormat type : {NumberFormat::f32, NumberFormat::bf16}) {
      EXPECT_EQ(said(text, NumberFormat::f32, model, type),
                fmt::format("layer_c1: p.txt line 5: wq_scale: 'wq_scale' is a weight of "
                            "weights=int8 alone; the case says weights={} (docs/program.md)",
                            to_string(type)));
      // Every scale of the model is one, and no scale of the other block's is its.
      for (const WeightRow& row : all_weights()) {
        if (row.kind != WeightKind::scale) continue;
        const std::string message =
            said(fmt::format("input s : {} is weight {}\n{}", row.dims, row.name,
                             text_of(strategy, model, NumberFormat::f32)),
                 NumberFormat::f32, model, type);
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
           "hr : BLF_zyx = reduce_scatter(h, F, x) is scaled gate", NumberFormat::bf16);
  for (const NumberFormat type : {NumberFormat::f32, NumberFormat::bf16})
    EXPECT_TRUE(said(text, NumberFormat::bf16, model, type)
                    .starts_with("layer_c5: p.txt line 44: hr: a layer of palm-tiny has no "
                                 "'scaled gate'"))
        << said(text, NumberFormat::bf16, model, type);
  // What is not an input of a layer does not become one by being scaled.
  EXPECT_EQ(
      said("input s : BLF is scaled gate\n" + whole(), NumberFormat::f32, model, NumberFormat::int8)
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
