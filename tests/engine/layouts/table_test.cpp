#include "engine/layouts/table.h"

#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <set>

#include "engine/layouts/layer.h"
#include "engine/strategies/strategy.h"
#include "tests/golden/random_table.h"
#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

TEST(Table, ReadsLinesStepsUsesAndNotes) {
  const std::vector<LayoutTable> tables = parse_layouts(
      "# two tables\n"
      "layouts one  the first\n"
      "in : BLE_xzy -> BLE_x [strict]   # a comment\n"
      "norm for k, v : BLE_xzy\n"
      "weights : E_x  F_zy H_zy -> F_zy H_zy\n"
      "\n"
      "layouts two:b\n"
      "wk, wv : E_xKQ\n",
      "f");
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].description, "the first");
  const LayoutLine* in = tables[0].find("in");
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(in->steps[1].layout.to_string(), "BLE_x");
  EXPECT_TRUE(in->steps[1].strict);
  EXPECT_FALSE(in->steps[0].strict);
  EXPECT_EQ(in->line.number, 3);
  EXPECT_EQ(tables[0].find("norm"), nullptr);
  EXPECT_EQ(tables[0].find("norm", "v")->line.number, 4);
  EXPECT_EQ(tables[0].find("weights")->steps[1].sharded.size(), 2U);
  EXPECT_EQ(tables[1].find("wv")->steps[0].layout.to_string(), "E_xKQ");
  EXPECT_EQ(tables[0].where({4}), "f line 4: ");
  EXPECT_EQ(parse_layouts("layouts\tt\nnorm\tfor\tk:BLE_x->BLE\nweights:E_x\tF_zy\n"),
            parse_layouts("layouts t\nnorm for k : BLE_x -> BLE\nweights : E_x F_zy\n"));
}

const LayoutValue* layout_value(std::string_view name) {
  for (const LayoutValue& value : layout_values())
    if (value.name == name) return &value;
  return nullptr;
}

// A new value of a layer has lines of its own, or stands here: its layout follows from others.
TEST(Table, HasTheValuesOfALayerAndItsMatrices) {
  const std::set<std::string_view> follow{"q_rot", "k_rot", "k_cache", "v_cache", "score",
                                          "max",   "exp",   "denom",   "out"};
  std::size_t known = 3;  // weights, attend, prefix
  for (const ValueRow& row : all_values()) {
    const bool of_a_layer = row.per_layer && row.kind != ValueKind::stat;
    const LayoutValue* const value = layout_value(row.name);
    EXPECT_EQ(value != nullptr, of_a_layer && !follow.contains(row.name)) << row.name;
    if (value == nullptr) continue;
    EXPECT_EQ(value->dims, row.dims) << row.name;
    ++known;
  }
  for (const WeightRow& row : all_weights()) {
    if (!row.per_layer || row.kind != WeightKind::matrix) continue;
    const LayoutValue* const value = layout_value(row.name);
    ASSERT_NE(value, nullptr) << row.name;
    EXPECT_EQ(value->dims, row.dims) << row.name;
    ++known;
  }
  EXPECT_EQ(layout_values().size(), known);
  EXPECT_EQ(layout_value("weights")->dims, "EFHKQ");
  EXPECT_EQ(layout_value("attend")->dims, layout_value("q")->dims);
  EXPECT_EQ(layout_value("attn")->dims, layout_value("q")->dims);
  EXPECT_EQ(layout_value("prefix")->dims, "NTKQ");
}

// What a layer makes by einsum may be a partial sum; attend computes its contractions whole.
TEST(Table, OnlyProductsMayBePartialSums) {
  std::set<std::string> products, made;
  for (const LayoutValue& value : layout_values())
    if (value.product) products.emplace(value.name);
  for (const char* model : {"palm-tiny", "palm-tiny,block=serial"})
    for (const LogicalOp& op : logical_layer(parse_model(model)))
      if (op.kind == LogicalOp::Kind::einsum) made.insert(op.result);
  EXPECT_EQ(products, made);
}

// The value whose line holds for another that has none.
TEST(Table, MidIsAsInNorm2AsNormVAsKUpAsGateAndTheOutputsAlike) {
  const LayoutTable table = parse_layouts(
      "layouts t\nin : BLE_x\nnorm : BLE_y\nk : BLKQ_x\ngate : BLF_x\nblock_out : BLE_z\n"
      "norm for gate : BLE_z\nffn_out : BLE_zy\n")[0];
  for (const auto& [value, layout] :
       std::vector<std::pair<std::string, std::string>>{{"mid", "BLE_x"},
                                                        {"norm2", "BLE_y"},
                                                        {"v", "BLKQ_x"},
                                                        {"up", "BLF_x"},
                                                        {"attn_out", "BLE_z"},
                                                        {"ffn_out", "BLE_zy"}})
    EXPECT_EQ(table.find(value)->steps[0].layout.to_string(), layout) << value;
  EXPECT_EQ(table.find("norm2", "up")->steps[0].layout.to_string(), "BLE_z");
  EXPECT_EQ(table.find("norm", "q"), nullptr);
}

// Dims stand in the registry too: the two agree.
TEST(Table, TheValuesHaveTheDimsOfTheModels) {
  ModelConfig config;
  config.block = Block::serial;
  std::map<std::string, std::string> dims{{"in", "BLE"},
                                          {"block_out", "BLE"},
                                          {"attend", "BLHQ"},
                                          {"weights", "EFHKQ"},
                                          {"prefix", "NTKQ"}};
  for (const CheckpointSpec& spec : checkpoint_specs(config)) dims[spec.name] = spec.dims;
  for (const WeightSpec& spec : weight_specs(config))
    if (spec.matrix) dims[spec.name.substr(spec.name.find('.') + 1)] = spec.dims;
  for (const LayoutValue& value : layout_values())
    EXPECT_EQ(value.dims, dims.at(std::string(value.name))) << value.name;
  // And every W matrix of a layer has its line.
  std::set<std::string_view> named;
  for (const LayoutValue& value : layout_values()) named.insert(value.name);
  for (const WeightSpec& spec : weight_specs(config))
    EXPECT_TRUE(!spec.matrix || !spec.name.starts_with("layer0.") ||
                named.contains(spec.name.substr(7)))
        << spec.name;
}

RC_GTEST_PROP(Table, AnyTablePrintsAndReadsBack, ()) {
  const std::string text = draw_table("t");
  const std::vector<LayoutTable> tables = parse_layouts(text);
  RC_ASSERT(parse_layouts(print_layouts(tables.at(0))) == tables);
}

TEST(Table, WithoutBatchKeepsAllThatIsSaidOfOtherDims) {
  const LayoutTable table = parse_layouts(
      "layouts t  of all kinds\nin : B_zLE_xy [loop one-way] -> B_zLE_x [strict]\n"
      "weights : E_x F_y H_y -> F_y H_y [loop both-half]\nattend : B_zLH_yxQ [loop none]\n"
      "attend for k : B_zLK_yQ\nprefix : N_zTK_yxQ\n"
      "q : B_zLH_yQ partialsum-x -> B_zLH_yxQ\n")[0];
  EXPECT_EQ(print_layouts(without_batch(table)),
            "layouts t  of all kinds\nin : BLE_xy -> BLE_x\nweights : E_x F_y H_y -> F_y H_y\n"
            "attend : BLH_yxQ [loop none]\nattend for k : BLK_yQ\n"
            "q : BLH_yQ partialsum-x -> BLH_yxQ\n");
  // Where nothing is said of B there is nothing to take.
  const LayoutTable heads = Strategy::parse("ws2d:heads").table();
  EXPECT_EQ(without_batch(heads), heads);
}

TEST(TableFile, IsRefusedWhereItCannotBeReadOrHoldsNoTable) {
  const std::string path = testing::TempDir() + "table_test.layouts";
  const auto label = [&](const std::string& content) {
    std::ofstream(path) << content;
    return label_of([&] { load_layouts(path); });
  };
  EXPECT_EQ(label("layouts t\nin : BLE\r\n"), "");
  EXPECT_EQ(label("# nothing\n"), "layouts_f2");
  EXPECT_EQ(label(std::string("layouts t\0\n", 11)), "layouts_f3");
  EXPECT_EQ(label(std::string((std::size_t{1} << 20) + 1, '#')), "layouts_f3");
  EXPECT_THROW(load_layouts(path + ".none"), Error);
}

TEST(TableFile, EndsSoonWhereNobodyWroteIt) {
  const auto label = [](const std::string& text) {
    EXPECT_LT(message_of([&] { parse_layouts(text, "f"); }).size(), 400U);
    return label_of([&] { parse_layouts(text, "f"); });
  };
  std::string steps = "layouts t\nin : BLE", tables;
  for (int i = 1; i < 16; ++i) steps += " -> BLE";
  EXPECT_EQ(label(steps), "");
  EXPECT_EQ(label(steps + " -> BLE"), "layouts_c0");
  for (int i = 0; i < 1000; ++i) tables += fmt::format("layouts t{}\n", i);
  EXPECT_EQ(label(tables), "");
  EXPECT_EQ(label(tables + "layouts one.more"), "layouts_c0");
  EXPECT_EQ(label("layouts " + std::string(40, 'a')), "");
  EXPECT_EQ(label("layouts " + std::string(41, 'a')), "layouts_c0");
  EXPECT_EQ(label(std::string(100'000, 'a')), "layouts_c0");
  // Refused before values, uses and layouts are multiplied.
  std::string many = "in", layouts = "BLE";
  for (int i = 0; i < 60'000; ++i) many += ", in", layouts += " -> BLE";
  EXPECT_EQ(label("layouts t\n" + many + " : " + layouts), "layouts_c0");
  EXPECT_EQ(label("layouts t\n" + many + " : BLE"), "layouts_c0");
  EXPECT_EQ(label("layouts t\nnorm for " + many + " : BLE"), "layouts_c0");
}

TEST(TableFile, MayNotRedefineAShippedName) {
  for (const char* name : {"ws2d", "ws1d", "wg-x", "wg-xyz", "dp"}) {
    const std::string path = testing::TempDir() + "alias.layouts";
    std::ofstream(path) << "layouts " << name << "\nin : BLE\n";
    EXPECT_THROW(load_strategies(path), Error) << name;
  }
  const std::string path = testing::TempDir() + "shipped_name.layouts";
  std::ofstream(path) << "layouts mine\nin : BLE\nlayouts ws2d:batch\nin : BLE\n";
  EXPECT_EQ(message_of([&] { load_strategies(path); }),
            "layouts_c2: " + path +
                " line 3: ws2d:batch is defined twice: it is a name of ws2d:batch, which ships; "
                "take another (docs/layouts.md)");
}

}  // namespace
}  // namespace shardproof
