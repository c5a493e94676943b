#include "weights/model/registry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>

#include "tests/weights/random_model.h"
#include "weights/model/passes.h"

namespace shardproof {
namespace {

// "name dims" of each weight, in order.
std::string listing(const ModelConfig& config) {
  std::string text;
  for (const WeightSpec& spec : weight_specs(config)) text += spec.name + " " + spec.dims + "; ";
  return text;
}

std::string checkpoints(const ModelConfig& config) {
  std::string text;
  for (const CheckpointSpec& spec : checkpoint_specs(config)) {
    text += spec.name + " " + spec.dims + "; ";
  }
  return text;
}

TEST(Registry, ListsTheWeightsOfAParallelModel) {
  EXPECT_EQ(listing(parse_model("palm-tiny,layers=1")),
            "embed VE; layer0.norm E; layer0.wq EHQ; layer0.wk EKQ; layer0.wv EKQ; layer0.wo HQE; "
            "layer0.w_gate EF; layer0.w_up EF; layer0.w_out FE; final_norm E; rope_cos PJ; "
            "rope_sin PJ; ");
}

TEST(Registry, ListsTheWeightsOfASerialModelWithBiases) {
  const char* text = "palm-tiny,layers=1,block=serial,norm=layernorm,bias=all,tied=false,rope=none";
  EXPECT_EQ(listing(parse_model(text)),
            "embed VE; unembed VE; layer0.norm E; layer0.norm2 E; layer0.wq EHQ; layer0.wk EKQ; "
            "layer0.wv EKQ; layer0.wo HQE; layer0.w_gate EF; layer0.w_up EF; layer0.w_out FE; "
            "layer0.norm_bias E; layer0.norm2_bias E; layer0.bq HQ; layer0.bk KQ; layer0.bv KQ; "
            "layer0.bo E; layer0.b_gate F; layer0.b_up F; layer0.b_out E; final_norm E; "
            "final_norm_bias E; ");
}

TEST(Registry, Int8WeightsHaveScales) {
  // What weights kept so have beside the others, after them.
  const auto scales = [](const std::string& keys) {
    const ModelConfig config = parse_model("palm-tiny,layers=1" + keys);
    std::string all;
    for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8))
      if (spec.scale) all += spec.name.substr(7) + " " + spec.dims + "; ";
    EXPECT_EQ(weight_specs(config, NumberFormat::bf16).size(), weight_specs(config).size());
    return all;
  };
  const std::string all = "wq_scale HQ; wk_scale KQ; wv_scale KQ; w_gate_scale F; w_up_scale F; ";
  EXPECT_EQ(scales(""), all + "block_out_scale E; ");
  EXPECT_EQ(scales(",block=serial,bias=all,norm=layernorm"), all + "wo_scale E; w_out_scale E; ");
  EXPECT_EQ(scales(",ffn=gelu"),
            "wq_scale HQ; wk_scale KQ; wv_scale KQ; w_gate_scale F; block_out_scale E; ");

  const ModelConfig parallel = parse_model("palm-tiny");
  const ModelConfig serial = parse_model("palm-tiny,block=serial");
  const auto scale = [](const ModelConfig& config, const char* matrix) {
    const WeightRow* const row = scale_of(config, matrix);
    return row == nullptr ? "" : std::string(row->name);
  };
  for (const char* matrix : {"wq", "wk", "wv", "w_gate", "w_up"})
    for (const ModelConfig& config : {parallel, serial})
      EXPECT_EQ(scale(config, matrix), std::string(matrix) + "_scale");
  for (const char* matrix : {"wo", "w_out"}) {
    EXPECT_EQ(scale(parallel, matrix), "block_out_scale");
    EXPECT_EQ(scale(serial, matrix), std::string(matrix) + "_scale");
  }
  for (const char* other : {"embed", "unembed", "norm", "bq", "rope_cos", "wq_scale", "q", ""})
    for (const ModelConfig& config : {parallel, serial}) EXPECT_EQ(scale(config, other), "");
  for (const NumberFormat kept : {NumberFormat::f32, NumberFormat::bf16}) {
    EXPECT_FALSE(has_weight(parallel, "wq_scale", kept));
    EXPECT_TRUE(has_weight(parallel, "wq", kept));
  }
  EXPECT_TRUE(has_weight(parallel, "block_out_scale", NumberFormat::int8));
  EXPECT_FALSE(has_weight(parallel, "wo_scale", NumberFormat::int8));
  EXPECT_FALSE(has_weight(serial, "block_out_scale", NumberFormat::int8));
  // Every row of a scale has its matrices' output channels.
  for (const WeightRow& row : all_weights())
    for (std::string_view name : row.scaled)
      if (!name.empty()) {
        const WeightRow& matrix = *weight_row(name);
        EXPECT_EQ(row.dims, matrix.dims.substr(static_cast<std::size_t>(matrix.contracted)))
            << row.name;
      }
}

TEST(Registry, ListsTheWeightsOfTheOtherModels) {
  EXPECT_EQ(listing(parse_model("gptj,layers=1")),
            "embed VE; unembed VE; unembed_bias V; layer0.norm E; layer0.wq EHQ; layer0.wk EKQ; "
            "layer0.wv EKQ; layer0.wo HQE; layer0.w_gate EF; layer0.w_out FE; layer0.norm_bias E; "
            "layer0.b_gate F; layer0.b_out E; final_norm E; final_norm_bias E; rope_cos PJ; "
            "rope_sin PJ; ");
  EXPECT_EQ(listing(parse_model("palm-tiny,layers=1,rope=alibi,bias=ffn,unembed_bias=true")),
            "embed VE; unembed_bias V; layer0.norm E; layer0.wq EHQ; layer0.wk EKQ; "
            "layer0.wv EKQ; layer0.wo HQE; layer0.w_gate EF; layer0.w_up EF; layer0.w_out FE; "
            "layer0.b_gate F; layer0.b_up F; layer0.b_out E; final_norm E; alibi_slopes H; ");
}

TEST(Registry, GivesShapesAndFanIn) {
  const ModelConfig c = parse_model("palm-tiny,K=2,rotary=0.5,positions=5");
  for (const WeightSpec& spec : weight_specs(c)) {
    if (spec.name == "embed") {
      EXPECT_EQ(spec.fan_in, 1);
    } else if (spec.name == "layer1.wk") {
      EXPECT_EQ(spec.shape, (Shape{96, 2, 8}));
      EXPECT_EQ(spec.fan_in, 96);
    } else if (spec.name == "layer1.wo") {
      EXPECT_EQ(spec.shape, (Shape{24, 8, 96}));
      EXPECT_EQ(spec.fan_in, 192);
    } else if (spec.name == "layer1.w_out") {
      EXPECT_EQ(spec.fan_in, 384);
    } else if (spec.name == "rope_cos") {
      EXPECT_EQ(spec.shape, (Shape{5, 2}));
    }
  }
}

TEST(Registry, ListsTheCheckpoints) {
  EXPECT_EQ(checkpoints(parse_model("palm-tiny")),
            "embed BLE; norm BLE; final_norm BLE; q BLHQ; k BLKQ; v BLKQ; q_rot BLHQ; k_rot BLKQ; "
            "k_cache BMKQ; v_cache BMKQ; score BLHM; max BLH; exp BLHM; denom BLH; attn BLHQ; "
            "gate BLF; up BLF; hidden BLF; block_out BLE; out BLE; logits BV; token B; ");
  EXPECT_EQ(checkpoints(parse_model("palm-tiny,block=serial,ffn=gelu,rope=none")),
            "embed BLE; norm BLE; norm2 BLE; final_norm BLE; q BLHQ; k BLKQ; v BLKQ; "
            "k_cache BMKQ; v_cache BMKQ; score BLHM; max BLH; exp BLHM; denom BLH; attn BLHQ; "
            "gate BLF; hidden BLF; attn_out BLE; mid BLE; ffn_out BLE; out BLE; logits BV; "
            "token B; ");
  for (const CheckpointSpec& spec : checkpoint_specs(parse_model("palm-tiny"))) {
    const std::set<std::string> outer{"embed", "final_norm", "logits", "token"};
    EXPECT_EQ(spec.per_layer, !outer.contains(spec.name)) << spec.name;
    EXPECT_EQ(spec.integer, spec.name == "token") << spec.name;
  }
}

TEST(Registry, NamesCheckpoints) {
  EXPECT_EQ(checkpoint_id(prefill_pass(0), 1, "gate"), "prefill.c0.layer1.gate");
  EXPECT_EQ(checkpoint_id(decode_pass(1), 0, "k_rot"), "decode.1.layer0.k_rot");
  // What belongs to no layer, whatever layer is asked for.
  for (const char* name : {"embed", "final_norm", "logits", "token", "final_ss", "candidates",
                           "indices", "ids", "pos"})
    for (int layer : {-1, 0, 3})
      EXPECT_EQ(checkpoint_id("decode.1", layer, name), std::string("decode.1.") + name);
  EXPECT_EQ(checkpoint_id("decode.1", -1, "gate"), "decode.1.gate");
  EXPECT_EQ(checkpoint_id("decode.1", 2, "ss2"), "decode.1.layer2.ss2");
}

TEST(Registry, NamesWeights) {
  EXPECT_EQ(weight_id(1, "wq"), "layer1.wq");
  EXPECT_EQ(weight_id(0, "norm2_bias"), "layer0.norm2_bias");
  for (const char* name : {"embed", "unembed", "final_norm", "final_norm_bias", "rope_cos"})
    EXPECT_EQ(weight_id(1, name), name);
  EXPECT_TRUE(has_weight(parse_model("palm-tiny"), "w_up"));
  EXPECT_FALSE(has_weight(parse_model("palm-tiny,ffn=gelu"), "w_up"));
  EXPECT_FALSE(has_weight(parse_model("palm-tiny"), "layer0.wq"));
}

TEST(Registry, ShapesAreOfTheModelAndThePass) {
  const ModelConfig c = parse_model("palm-tiny,K=2,rotary=0.5,positions=5");
  EXPECT_EQ(shape_of("BLHM", c, {3, 4, 5}), (Shape{3, 4, 24, 5}));
  EXPECT_EQ(shape_of("EFKQVPJ", c), (Shape{96, 384, 2, 8, 264, 5, 2}));
  EXPECT_EQ(constant_tensor(c).data, std::vector<float>(96, 1.0F));
}

TEST(Registry, RowsAreOnePerName) {
  std::set<std::string_view> values, weights;
  for (const ValueRow& row : all_values()) {
    EXPECT_TRUE(values.insert(row.name).second) << row.name;
    EXPECT_EQ(value_row(row.name), &row);
    EXPECT_NE(row.in_model, nullptr) << row.name;
  }
  for (const WeightRow& row : all_weights()) {
    EXPECT_TRUE(weights.insert(row.name).second) << row.name;
    EXPECT_EQ(weight_row(row.name), &row);
    EXPECT_NE(row.in_model, nullptr) << row.name;
  }
  EXPECT_EQ(value_row("wq"), nullptr);
  EXPECT_EQ(weight_row("q"), nullptr);
}

template <class Row>
std::string names_with(std::span<const Row> rows, const auto& holds) {
  std::string names;
  for (const Row& row : rows)
    if (holds(row)) names += (names.empty() ? "" : " ") + std::string(row.name);
  return names;
}

// docs/spec.md section 1.2. What is in neither list is f32 as a sum and as a partial sum.
TEST(Registry, SaysWhoseSumsAccAndWireAreAbout) {
  EXPECT_EQ(names_with(all_values(), [](const ValueRow& row) { return row.acc; }),
            "q k v gate up block_out attn_out ffn_out");
  EXPECT_EQ(names_with(all_values(), [](const ValueRow& row) { return row.wire_rounds; }),
            "embed q k v gate up block_out attn_out ffn_out");
}

// docs/spec.md section 5: a stored checkpoint travels as act says, a W matrix or the table as
// weights says. A row that is in neither list travels as four bytes.
TEST(Registry, SaysWhatEveryValueTravelsAs) {
  const auto values = [](NumberFormat type, NumberFormat act) {
    return names_with(all_values(), [&](const ValueRow& row) {
      return row.wire({.weights = NumberFormat::bf16, .act = act}, {}) == type;
    });
  };
  EXPECT_EQ(values(NumberFormat::bf16, NumberFormat::f32), "");
  EXPECT_EQ(values(NumberFormat::bf16, NumberFormat::bf16),
            "embed norm norm2 final_norm q k v q_rot k_rot k_cache v_cache attn gate up hidden "
            "block_out attn_out mid ffn_out out in");
  for (const NumberFormat act : {NumberFormat::f32, NumberFormat::bf16})
    EXPECT_EQ(values(NumberFormat::int32, act),
              "token indices top_k_counts top_p_sums masses drawn ids pos");
  // Caches as the model says, whatever act says.
  ModelConfig model;
  for (const auto& [cache, wire] : {std::pair(NumberFormat::f32, NumberFormat::f32),
                                    std::pair(NumberFormat::bf16, NumberFormat::bf16)})
    for (const NumberFormat act : {NumberFormat::f32, NumberFormat::bf16})
      for (const char* name : {"k_cache", "v_cache"}) {
        model.cache = cache;
        EXPECT_EQ(value_row(name)->wire({.act = act}, model), wire) << name;
        EXPECT_EQ(value_row("k_rot")->wire({.act = act}, model),
                  act == NumberFormat::bf16 ? NumberFormat::bf16 : NumberFormat::f32);
      }
  const auto weights = [](NumberFormat type) {
    return names_with(all_weights(), [&](const WeightRow& row) {
      return row.wire({.weights = type, .act = NumberFormat::bf16}) == NumberFormat::bf16;
    });
  };
  EXPECT_EQ(weights(NumberFormat::f32), "");
  EXPECT_EQ(weights(NumberFormat::bf16), "embed unembed wq wk wv wo w_gate w_up w_out");
  EXPECT_EQ(weights(NumberFormat::int8), "");
  EXPECT_EQ(names_with(all_weights(),
                       [](const WeightRow& row) {
                         return row.wire({.weights = NumberFormat::int8}) == NumberFormat::int8;
                       }),
            "wq wk wv wo w_gate w_up w_out");
  EXPECT_EQ(bytes_of(NumberFormat::int8), 1);
  EXPECT_EQ(to_string(NumberFormat::int8), "int8");
  EXPECT_EQ(bytes_of(NumberFormat::f32), 4);
  EXPECT_EQ(bytes_of(NumberFormat::bf16), 2);
  EXPECT_EQ(bytes_of(NumberFormat::int32), 4);
  EXPECT_EQ(to_string(NumberFormat::bf16), "bf16");
}

TEST(Registry, EveryNormHasItsStatistics) {
  std::set<std::string_view> of_norms;
  for (const ValueRow& norm : all_values()) {
    if (norm.kind != ValueKind::checkpoint || norm.section != Section::norm) continue;
    for (const char* statistic : {"sum", "mu", "d", "ss"}) {
      const ValueRow& row = statistic_row(norm.name, statistic);
      EXPECT_EQ(row.per_layer, norm.per_layer) << row.name;
      EXPECT_TRUE(of_norms.insert(row.name).second) << row.name;
    }
  }
  EXPECT_EQ(statistic_row("norm", "ss").name, "ss");
  EXPECT_EQ(statistic_row("norm2", "mu").name, "mu2");
  EXPECT_EQ(statistic_row("final_norm", "sum").name, "final_sum");
  EXPECT_THROW(statistic_row("norm3", "ss"), std::logic_error);
  EXPECT_THROW(statistic_row("norm", "variance"), std::logic_error);
  // A statistic is of a norm, or follows from the logits.
  for (const ValueRow& row : all_values())
    EXPECT_EQ(row.kind == ValueKind::stat,
              of_norms.contains(row.name) || row.per_block || row.drawing)
        << row.name;
}

TEST(Registry, WhatALayerGetsIsHanded) {
  EXPECT_EQ(names_with(all_values(), [](const ValueRow& row) { return row.of_layer_input; }),
            "k_cache v_cache in pos ones");
  for (const ValueRow& row : all_values()) EXPECT_TRUE(row.program_input || !row.of_layer_input);
}

// ---- docs/spec.md section 2 says the same ----

std::string spec() {
  std::ostringstream text;
  for (const char* page : {"/spec-numerics.md", "/spec-model.md"})
    text << std::ifstream(std::string(SHARDPROOF_SOURCE "/docs") + page).rdbuf();
  return text.str();
}

std::string section_of(const std::string& text, const std::string& begin, const std::string& end) {
  const auto at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at, text.find(end, at) - at);
}

/// Of "**k**, **v** [BLKQ]": the dims of each name, where `mark` is what stands around a name.
std::map<std::string, std::string> dims_in(const std::string& text, const std::string& mark) {
  std::map<std::string, std::string> dims;
  const std::string name = mark + "([a-z_0-9]+)" + mark;
  const std::regex run("((?:" + mark + "[a-z_0-9]+" + mark + R"(,?\s+)+)\[([A-Z]+)\])");
  const std::regex one(name);
  for (std::sregex_iterator m(text.begin(), text.end(), run), end; m != end; ++m) {
    const std::string names = (*m)[1];
    for (std::sregex_iterator n(names.begin(), names.end(), one); n != end; ++n)
      dims.emplace((*n)[1], (*m)[2]);
  }
  return dims;
}

/// What differs between the rows and a specification's text.
std::string differences(const std::string& text) {
  std::string found;
  const auto compare = [&](std::map<std::string, std::string> said, const auto& rows) {
    for (const auto& [name, dims] : rows) {
      const auto at = said.find(name);
      if (at == said.end() || at->second != dims) found += name + " ";
      if (at != said.end()) said.erase(at);
    }
    for (const auto& [name, dims] : said) found += "surplus " + name + " ";
  };
  std::map<std::string, std::string> checkpoints, weights;
  for (const ValueRow& row : all_values())
    if (row.kind == ValueKind::checkpoint) checkpoints.emplace(row.name, row.dims);
  for (const WeightRow& row : all_weights()) weights.emplace(row.name, row.dims);
  compare(dims_in(section_of(text, "### 2.2 ", "### 2.3 "), R"(\*\*)"), checkpoints);
  compare(dims_in(section_of(text, "### 2.5 ", "### 2.6 "), "`"), weights);
  // "every checkpoint but five: score, max, exp, denom and logits stay f32"
  std::string unstored;
  for (const ValueRow& row : all_values())
    if (row.kind == ValueKind::checkpoint && !row.stored && !row.integer)
      unstored += (unstored.empty()       ? ""
                   : row.name == "logits" ? " and "
                                          : ", ") +
                  std::string(row.name);
  if (text.find("every checkpoint but five: " + unstored + " stay f32") == std::string::npos)
    found += "stored ";
  // "embed, final_norm, logits and token,\nwhich belong to no layer"
  std::string global;
  for (const ValueRow& row : all_values())
    if (row.kind == ValueKind::checkpoint && !row.per_layer)
      global += (global.empty()        ? ""
                 : row.name == "token" ? " and "
                                       : ", ") +
                std::string(row.name);
  if (text.find("are `PASS.layerN.NAME` or, for " + global + ",\nwhich belong to no layer") ==
      std::string::npos)
    found += "per_layer ";
  return found;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Registry, SaysWhatTheSpecificationSays) { EXPECT_EQ(differences(spec()), ""); }

TEST(Registry, ADifferenceFromTheSpecificationIsNamed) {
  const std::string text = spec();
  EXPECT_EQ(differences(changed(text, "**hidden** [BLF]", "**hidden** [BLE]")), "hidden ");
  EXPECT_EQ(differences(changed(text, "**hidden** [BLF]", "**hide** [BLF]")),
            "hidden surplus hide ");
  EXPECT_EQ(differences(changed(text, "`wo` [HQE]", "`wo` [EHQ]")), "wo ");
  EXPECT_EQ(differences(changed(text, "score, max, exp, denom", "score, exp, denom")), "stored ");
  EXPECT_EQ(differences(changed(text, "for embed, final_norm", "for embed")), "per_layer ");
}

RC_GTEST_PROP(Registry, NamesAreUniqueAndShapesFollowDims, ()) {
  const ModelConfig c = draw_model(50);
  const std::map<char, std::int64_t> extents{{'E', c.E}, {'F', c.F}, {'H', c.H},        {'K', c.K},
                                             {'Q', c.Q}, {'V', c.V}, {'P', c.positions}};
  std::set<std::string> names;
  for (const WeightSpec& spec : weight_specs(c)) {
    RC_ASSERT(names.insert(spec.name).second);
    RC_ASSERT(spec.shape.size() == spec.dims.size());
    RC_ASSERT(spec.matrix == (spec.dims.size() > 1 && spec.name[0] != 'r' &&
                              spec.name.find(".b") == std::string::npos));
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
      const auto known = extents.find(spec.dims[i]);
      if (known != extents.end()) RC_ASSERT(spec.shape[i] == known->second);
    }
  }
  RC_ASSERT(names.contains("unembed") == !c.tied);
}

}  // namespace
}  // namespace shardproof
