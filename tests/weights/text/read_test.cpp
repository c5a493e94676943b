// Texts read and printed: what is printed reads as the same text, for every model.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "tests/oracle/random_case.h"
#include "tests/weights/text/plain_model.h"
#include "weights/model/presets.h"
#include "weights/model/registry.h"
#include "weights/storage/text_weights.h"
#include "weights/text/loops.h"
#include "weights/text/rules.h"
#include "weights/text/sizes.h"
#include "weights/text/text_weights.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

void expect_same_when_read_again(const std::string& text) {
  const std::string printed = print_model_text(parse_model_text(text));
  EXPECT_EQ(print_model_text(parse_model_text(printed)), printed) << text;
}

/// Returns how many lines of a text say something.
int statements(const std::string& text) {
  int count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    count += line.substr(0, line.find('#')).find_first_not_of(" \t\r") != std::string::npos ? 1 : 0;
  return count;
}

TEST(ModelText, PrintsNothingLessThanItRead) {
  const ModelText text = parse_model_text(kPlainModel);
  EXPECT_EQ(print_model_text(text), kPlainModel);
  EXPECT_EQ(hash_of(text), hash_of(parse_model_text(print_model_text(text))));
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPROOF_SOURCE "/tests/data/models")) {
    const std::string file = file_text(entry.path().string());
    const ModelText model = parse_model_text(file, entry.path().string());
    expect_same_when_read_again(file);
    EXPECT_EQ(statements(print_model_text(model)), statements(file)) << entry.path();
    EXPECT_EQ(sizes_of(model).layers, 2) << entry.path();
  }
}

TEST(ModelText, BlanksCommentsAndLineEndsAreFree) {
  std::string loose;
  for (const char c : kPlainModel) {
    if (c == '\n') loose += "   # a comment\r";
    loose += c;
  }
  loose = "\n  # first\n" + loose;
  EXPECT_EQ(print_model_text(parse_model_text(loose)), kPlainModel);
}

TEST(ModelText, EveryEditOfALineIsAnotherModel) {
  const auto hash = [](const std::string& text) { return hash_of(parse_model_text(text)); };
  std::set<std::uint64_t> hashes{hash(std::string(kPlainModel))};
  const std::pair<const char*, const char*> edits[] = {
      {"number near = 1 - 3", "number near = 1 - 2"},
      {"dim X experts", "dim X of them"},
      {"weight g : E", "weight g : E is gain"},
      {"weight g : E", "weight g : E from gain"},
      {"state : BLE = clamp(faded, -8, 8)", "state : BLE = clamp(faded, -8, 9)"},
      {"state : BLE = clamp(faded, -8, 8)", "state : BLE = faded"},
      {"final : BLE = turn(in, E, half 4)", "final : BLE = turn(in, E, interleaved 4)"},
      {"share : BLKGM = div(exp, sum(exp, M))", "share : BLKGM = div(exp, mean(exp, M))"},
      {"expert : BLXA where chosen = store(einsum(BLE,XEA->BLXA; norm, we))",
       "expert : BLXA = store(einsum(BLE,XEA->BLXA; norm, we))"},
      {"faded : BLE = add(mul(before(state, g), 0.5), in)",
       "faded : BLE = add(mul(before(state), 0.5), in)"}};
  for (const auto& [before, after] : edits)
    EXPECT_TRUE(hashes.insert(hash(with_line(before, after))).second) << after;
}

TEST(ModelText, OfEveryPresetIsOne) {
  for (const Preset& preset : all_presets())
    for (const NumberFormat type : {NumberFormat::f32, NumberFormat::int8}) {
      const std::string text = text_of_model(parse_model(preset.name), type);
      const ModelText model = parse_model_text(text);
      const TextSizes sizes = sizes_of(model);
      EXPECT_EQ(model.name, preset.name);
      EXPECT_EQ(sizes.layers, preset.layers);
      EXPECT_EQ(sizes.extents.at('E'), preset.E);
      EXPECT_EQ(sizes.extents.at('V'), preset.V);
      EXPECT_EQ(sizes.extents.at('G'), preset.H / preset.K);
      expect_same_when_read_again(text);
    }
}

RC_GTEST_PROP(ModelTextOfKeys, ReadsAndPrints, ()) {
  const oracle::Drawn d = oracle::draw_case();
  const std::string text = text_of_model(d.config, d.request.numerics.weights);
  RC_LOG() << text;
  const std::string printed = print_model_text(parse_model_text(text));
  RC_ASSERT(print_model_text(parse_model_text(printed)) == printed);
}

/// Every weight of the registry stands in the text under its name in files, and no other.
RC_GTEST_PROP(ModelTextOfKeys, HasTheWeightsOfTheModel, ()) {
  const oracle::Drawn d = oracle::draw_case();
  const NumberFormat type = d.request.numerics.weights;
  const ModelText text = parse_model_text(text_of_model(d.config, type));
  const TextSizes sizes = sizes_of(text);
  std::map<std::string, std::string> found, expected;
  for (const TextSection section : kTextSections)
    for (const TextWeight& weight : text.section(section).weights) {
      const std::string name = weight.from.empty() ? weight.name : weight.from;
      for (std::int64_t layer = 0; layer < (section == TextSection::layer ? sizes.layers : 1);
           ++layer)
        found[section == TextSection::layer ? weight_id(layer, name) : name] = weight.letters;
    }
  for (const WeightSpec& spec : weight_specs(d.config, type))
    expected[spec.name] = spec.dims == "PJ" ? "PQ" : spec.dims;
  RC_ASSERT(found == expected);
}

/// Every checkpoint and statistic of the registry is a line of the text, with its dims.
RC_GTEST_PROP(ModelTextOfKeys, HasTheValuesOfTheModel, ()) {
  const oracle::Drawn d = oracle::draw_case();
  const ModelText text = parse_model_text(text_of_model(d.config, d.request.numerics.weights));
  std::map<std::string, std::string> lines;
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines) lines[line.name] = line.letters;
  for (const CheckpointSpec& spec : checkpoint_specs(d.config)) {
    if (spec.name == "token") continue;
    RC_ASSERT(lines.at(spec.name) == (spec.name == "logits" ? "BLV" : spec.dims));
  }
}

/// Generated from the text, weights have the bits of those generated from the keys.
RC_GTEST_PROP(ModelTextOfKeys, GeneratesTheWeightsOfTheModel, ()) {
  oracle::Drawn d = oracle::draw_case();
  d.config.softmax = Softmax::base_e;  // a base-2 model's are folded afterwards
  const ModelText text = parse_model_text(text_of_model(d.config));
  const auto of_text = generate_text_weights(text, sizes_of(text), d.seed);
  const Weights of_keys = generate_weights(d.config, d.seed);
  RC_ASSERT(of_text.size() == of_keys.names().size());
  for (const auto& [id, tensor] : of_keys.tensors()) {
    RC_LOG() << id << "\n";
    RC_ASSERT(of_text.at(id).shape == tensor.shape);
    RC_ASSERT(of_text.at(id).data == tensor.data);
  }
}

TEST(TextWeights, AreWhatTheirFirstLineTakesThemFor) {
  const ModelText text = parse_model_text(kPlainModel);
  std::map<std::string, std::string> found;
  for (const TextWeightSpec& spec : text_weight_specs(text, sizes_of(text)))
    found[spec.id] = std::string(to_string(spec.kind)) + " " + std::to_string(spec.fan_in) +
                     " of " + std::to_string(element_count(spec.shape));
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"table", "table 1 of 96"},
                                                       {"places", "table 1 of 256"},
                                                       {"layer0.g", "gain 1 of 8"},
                                                       {"layer1.g", "gain 1 of 8"},
                                                       {"layer0.wq", "matrix 8 of 128"},
                                                       {"layer1.wq", "matrix 8 of 128"},
                                                       {"layer0.wk", "matrix 8 of 64"},
                                                       {"layer1.wk", "matrix 8 of 64"},
                                                       {"layer0.wo", "matrix 16 of 128"},
                                                       {"layer1.wo", "matrix 16 of 128"},
                                                       {"layer0.w_router", "matrix 8 of 24"},
                                                       {"layer1.w_router", "matrix 8 of 24"},
                                                       {"layer0.we", "matrix 8 of 192"},
                                                       {"layer1.we", "matrix 8 of 192"},
                                                       {"layer0.extra", "gain 1 of 8"}}));
}

TEST(TextWeights, AreCountedIn64Bits) {
  const ModelText text = parse_model_text(std::string(kPlainModel));
  const auto refusal = [&](const TextKeys& keys) -> std::string {
    try {
      text_weight_specs(text, sizes_of(text, keys));
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal({}), "none");
  // E, H and Q wrap to 0 elements; of Q = 2^19 each weight can be counted.
  EXPECT_EQ(
      refusal({{"E", "4194304"}, {"H", "4194304"}, {"K", "2"}, {"Q", "4194304"}}),
      "model_value: layer0.wq [4194304, 4194304, 4194304]: too large to count in 64 bits; give "
      "smaller extents");
  EXPECT_EQ(
      refusal({{"E", "524288"}, {"H", "2097152"}, {"K", "2"}, {"Q", "1048576"}}),
      "model_value: layer0.wo [2097152, 1048576, 524288]: too large to count in 64 bits; give "
      "smaller extents");
}

TEST(TextWeights, OfASharedTableAndOfNoUse) {
  const ModelText text =
      parse_model_text(with_line("weight g : E",
                                 "weight g : E is bias\nweight sin : EQ is sines interleaved 2 P\n"
                                 "weight nobody : HQ"));
  std::map<std::string, TextWeightSpec> specs;
  for (const TextWeightSpec& spec : text_weight_specs(text, sizes_of(text)))
    specs.emplace(spec.id, spec);
  EXPECT_EQ(specs.at("layer0.g").kind, TextWeightKind::bias);
  EXPECT_EQ(specs.at("layer0.sin").kind, TextWeightKind::sines);
  EXPECT_EQ(specs.at("layer0.sin").shape, (Shape{8, 1}));
  EXPECT_EQ(specs.at("layer1.nobody").kind, TextWeightKind::bias);
}

TEST(LineOrder, LoopsAreTheLinesThatNeedThemselves) {
  const ModelText text = parse_model_text(kPlainModel);
  const auto& lines = text.section(TextSection::layer).lines;
  std::vector<std::string> looped;
  std::set<std::string> done;
  for (const LineGroup& group : order_of_lines(text, TextSection::layer)) {
    for (const std::size_t line : group.lines)
      for (const std::string& read : reads_of(text, lines[line]).now)
        for (const TextLine& other : lines) {
          if (other.name != read || group.loop) continue;
          EXPECT_TRUE(done.contains(read)) << read;
        }
    for (const std::size_t line : group.lines) {
      done.insert(lines[line].name);
      if (group.loop) looped.push_back(lines[line].name);
    }
  }
  EXPECT_EQ(looped, (std::vector<std::string>{"faded", "state"}));
}

}  // namespace
}  // namespace shardproof
