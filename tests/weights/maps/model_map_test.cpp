#include "weights/maps/model_map.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/maps/load_model.h"
#include "weights/maps/map_sizes.h"

namespace shardproof {
namespace {

constexpr const char* kText = R"(model small
dim E d_model
dim V vocabulary
dim H heads
dim K key heads
dim G = H // K
number eps
number scale = E ** -0.5
flag near
embedding
weight table : VE
embed : BLE = gather(table, ids, V)
layer
weight gain : E
weight bias : E if near
normed : BLE = mul(in, gain)
out : BLE = add(normed, bias) if near
out : BLE = normed unless near
head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";

ModelText text() { return parse_model_text(kText, "small.model"); }

TEST(ModelMap, ByEye) {
  const ModelMap map = parse_model_map(R"(# a map
hf SmallModel SmallConfig
case hidden=4, vocab=5   # more
case layers=3, kinds=['a', 'b', 'a']

layers = layers
E = hidden
near = kinds[n] == 'a'
table < embed.weight VE skip 2
gain < h.{n}.norm.{x} ([E,E]) take 1
out ~ h.{n} BLE
normed ~ h.{n}.norm BL([E,E]) take 1 input
grow gain 6
)",
                                       "small.map");
  EXPECT_EQ(map.model_class, "SmallModel");
  EXPECT_EQ(map.config_class, "SmallConfig");
  ASSERT_EQ(map.settings.size(), 3U);
  EXPECT_EQ(map.settings[1].name, "E");
  EXPECT_EQ(map.settings[1].formula.text(), "hidden");
  EXPECT_EQ(map.settings[1].line, 7);
  ASSERT_EQ(map.sources.size(), 2U);
  EXPECT_EQ(map.sources[0].pattern.skip, 2);
  EXPECT_EQ(map.sources[1].pattern.take, 1U);
  EXPECT_EQ(map.sources[1].tensor, "h.{n}.norm.{x}");
  ASSERT_EQ(map.modules.size(), 2U);
  EXPECT_FALSE(map.modules[0].input);
  EXPECT_TRUE(map.modules[1].input);
  EXPECT_EQ(map.modules[1].pattern.take, 1U);
  EXPECT_EQ(example_config(map).dump(),
            R"({"hidden":4,"kinds":["a","b","a"],"layers":3,"vocab":5})");
  EXPECT_EQ(ModelMap::name_in("h.{n}.e.{x}.{n}", 12, 3), "h.12.e.3.12");
  EXPECT_EQ(map.where(3), "small.map line 3: ");
  EXPECT_EQ(ModelMap().where(3), "line 3: ");
}

TEST(ModelMap, OtherLinesAreRefused) {
  const auto label = [](const std::string& line) {
    return label_of([&] { parse_model_map("E = 1\n" + line + "\n", "a.map"); });
  };
  EXPECT_EQ(label(""), "");
  for (const char* line : {"hf A",
                           "hf A B C",
                           "case",
                           "case a",
                           "E = 2",
                           "F =",
                           "F = (",
                           "3 = 1",
                           "F-G = 1",
                           "F : 1",
                           "w <",
                           "w < a",
                           "w < a E F",
                           "w < a E take",
                           "w < a E take x",
                           "w < a E take -1",
                           "w < a ([E,F]) take 1x",
                           "w < a E skip 9999999",
                           "3w < a E",
                           "w < a.{m} E",
                           "w < a.{n E",
                           "w < a.n} E",
                           "v ~",
                           "v ~ a",
                           "v ~ a E output",
                           "v ~ a E input x",
                           "v ~ a E skip 1",
                           "require",
                           "require (",
                           "ignore",
                           "ignore a b",
                           "ignore a if",
                           "w < a E if",
                           "w < a E if x y",
                           "v ~ a E if (",
                           "hello",
                           "w > a E"})
    EXPECT_EQ(label(line), "model_map_c0") << line;
  for (const char* line : {"w < a (E", "w < a E take 1", "v ~ a ([E,F]) take 2", "v ~ a E-F"})
    EXPECT_EQ(label(line), "model_map_c3") << line;
  EXPECT_EQ(label(std::string(4097, ' ')), "model_map_c0");
  EXPECT_EQ(label(std::string(10'000, '\n')), "model_map_c0");
  EXPECT_TRUE(refuses([] { parse_model_map("E = 1\nF = (", "a.map"); }, "model_map_c0",
                      "a.map line 2: '(': at character 2: a value is missing"));
}

TEST(ModelMap, FilesAreTexts) {
  const Folder folder;
  EXPECT_EQ(label_of([&] { load_model_map(folder / "a.map"); }), "model_map_f1");
  std::ofstream(folder / "a.map") << std::string("E = 1\0", 6);
  EXPECT_EQ(label_of([&] { load_model_map(folder / "a.map"); }), "model_map_f2");
  std::ofstream(folder / "a.map") << "E = 1\n";
  EXPECT_EQ(load_model_map(folder / "a.map").settings.size(), 1U);
}

TEST(ModelMap, NamesWhatTheTextHas) {
  const auto label = [](const std::string& line) {
    return label_of([&] { require_names(parse_model_map(line), text()); });
  };
  for (const char* line : {"layers = 1", "E = 1", "G = 1", "eps = 1", "near = True",
                           "table = slopes(3)", "table < a VE", "bias < a ([E,H])", "table < a V1E",
                           "embed ~ a BLE", "logits ~ a (BL)V", "normed ~ a BME", "gain < a KG"})
    EXPECT_EQ(label(line), "") << line;
  for (const char* line :
       {"F = 1", "B = 1", "layer = 1", "embed = 1", "embed < a VE", "eps < a E", "table ~ a VE",
        "E ~ a E", "table < a VX", "table < a VB", "embed ~ a BLX", "in ~ a BLE"})
    EXPECT_EQ(label(line), "model_map_c1") << line;
  EXPECT_TRUE(refuses([] { require_names(parse_model_map("\ntabel < a VE", "a.map"), text()); },
                      "model_map_c1",
                      "a.map line 2: tabel: the text small has no such weight; did you "
                      "mean table?"));
}

TextKeys keys_of(const std::string& lines, const std::string& config, const TextKeys& given = {}) {
  return mapped_sizes(parse_model_map(lines, "a.map"), text(), nlohmann::json::parse(config), given)
      .keys;
}

TEST(ModelMap, GivesSizes) {
  const std::string config = R"({"e": 8, "e2": 0.5, "n_layer": 3, "kinds": ["a", "b", "a"]})";
  EXPECT_EQ(keys_of("layers = n_layer\nE = e\neps = e2 / 4\nnear = kinds[n] == 'a'\nscale = E / 3",
                    config),
            (TextKeys{{"layers", "3"},
                      {"E", "8"},
                      {"eps", "0.125"},
                      {"near", "101"},
                      {"scale", "2.6666666666666665"}}));
  // A use's own keys, which formulas behind them read.
  EXPECT_EQ(keys_of("layers = n_layer\nE = e\nscale = E * 2\nnear = n < 1", config,
                    {{"E", "5"}, {"near", "0"}, {"V", "7"}}),
            (TextKeys{{"layers", "3"}, {"E", "5"}, {"scale", "10"}, {"near", "0"}, {"V", "7"}}));
  EXPECT_EQ(keys_of("layers = n_layer\nnear = n == 2", config, {{"layers", "2"}}),
            (TextKeys{{"layers", "2"}, {"near", "00"}}));
  EXPECT_EQ(keys_of("E = 4 if rope_scaling == None else 2", config).at("E"), "4");
  EXPECT_EQ(keys_of("E = 4 if rope_scaling == None else 2", R"({"rope_scaling": {}})").at("E"),
            "2");
}

TEST(ModelMap, HasNoSizesFor) {
  const auto label = [](const std::string& lines) {
    return label_of(
        [&] { keys_of(lines, R"({"e": 8, "n_layer": 3, "word": "a", "none": null})"); });
  };
  EXPECT_EQ(label("layers = n_layer\nnear = n == 1\nE = e"), "");
  for (const char* lines :
       {"E = word", "E = none", "E = missing", "E = [1]", "E = e == 8", "near = n == 1",
        "layers = n_layer\nnear = n", "layers = n_layer\nnear = word", "layers = 3.0\nnear = True",
        "layers = 5000", "layers = 0", "layers = -1", "layers = 5000\nnear = True",
        "layers = 0\nnear = True", "E = n", "table = slopes(missing)"})
    EXPECT_EQ(label(lines), "model_map_c2") << lines;
  EXPECT_EQ(label("F = 1"), "model_map_c1");
  EXPECT_TRUE(refuses([] { keys_of("\nE = word", R"({"word": "a"})"); }, "model_map_c2",
                      "a.map line 2: 'word': E is \"a\", not a number"));
}

TEST(ModelMap, RequiresAndLeavesOut) {
  const std::string lines =
      "require act == 'silu'\nlayers = 1\nE = get(e) or 4\n"
      "table < a.weight VE if tied\ntable < b.weight VE if not tied\n"
      "out ~ h.{n} BLE if get(post) == True\nignore h.{n}.mask if tied\nignore h.{n}.bias\n";
  const ModelMap map = parse_model_map(lines, "a.map");
  ASSERT_EQ(map.requirements.size(), 1U);
  ASSERT_EQ(map.ignored.size(), 2U);
  const auto sizes = [&](const nlohmann::json& config) {
    return mapped_sizes(map, text(), config);
  };
  const MappedSizes tied = sizes({{"act", "silu"}, {"tied", true}, {"e", nullptr}});
  EXPECT_EQ(tied.keys.at("E"), "4");
  EXPECT_EQ(tied.left_out, (std::set<int>{5, 6}));
  const MappedSizes apart = sizes({{"act", "silu"}, {"tied", false}, {"e", 8}, {"post", true}});
  EXPECT_EQ(apart.keys.at("E"), "8");
  EXPECT_EQ(apart.left_out, (std::set<int>{4, 7}));
  EXPECT_TRUE(refuses(
      [&] {
        sizes({{"act", "gelu"}, {"tied", true}});
      },
      "model_map_c7", "a.map line 1: the config's model is another: 'act == 'silu'' is false"));
  EXPECT_EQ(label_of([&] { sizes({{"tied", true}}); }), "model_map_c2");
  EXPECT_EQ(label_of([&] { sizes({{"act", "silu"}}); }), "model_map_c2");
  EXPECT_EQ(label_of([&] { sizes({{"act", "silu"}, {"tied", 1}}); }), "model_map_c2");
  EXPECT_EQ(unread_entries(map, {{"act", 1}, {"tied", 1}, {"post", 1}, {"window", 4}, {"e", 1}}),
            (std::vector<std::string>{"window"}));
  // The newer form of RoPE's entries is read where the older one would be.
  const nlohmann::json newer{{"rope_parameters", nlohmann::json::object()}};
  EXPECT_EQ(unread_entries(map, newer).size(), 1U);
  EXPECT_TRUE(unread_entries(parse_model_map("E = rope_theta"), newer).empty());
}

TEST(ModelMap, GivesTables) {
  const MappedSizes sizes = mapped_sizes(parse_model_map("H = 4\ntable = slopes(H, base)"), text(),
                                         nlohmann::json{{"base", 4.0}});
  ASSERT_TRUE(sizes.tables.contains("table"));
  EXPECT_EQ(sizes.tables.at("table").function, "slopes");
  EXPECT_EQ(sizes.tables.at("table").arguments, (std::vector<ConfigFormula::Value>{4, 4.0}));
  EXPECT_FALSE(sizes.keys.contains("table"));
}

TEST(ModelMap, ConfigsAreFilesOfOneObject) {
  const Folder folder;
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(folder / "config.json") << bytes;
    return label_of([&] { load_config(folder / "config.json"); });
  };
  EXPECT_EQ(label_of([&] { load_config(folder / "config.json"); }), "model_map_f3");
  EXPECT_EQ(label_of([&] { load_config(folder.path()); }), "model_map_f3");
  EXPECT_EQ(refused(R"({"a": 1})"), "");
  EXPECT_EQ(load_config(folder.path()).at("a"), 1);
  EXPECT_EQ(refused(std::string(16 << 20, ' ') + "{}"), "model_map_f3");
  for (const char* bad : {"", "[]", "1", "{\"a\": 1, \"a\": 2}", "{'a': 1}", "{"})
    EXPECT_EQ(refused(bad), "model_map_f3") << bad;
  EXPECT_EQ(refused("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"),
            "model_map_f3");
}

TEST(ModelMap, IsAKeyOfAModelsLine) {
  const Folder folder;
  std::ofstream(folder / "a.model") << kText;
  std::ofstream(folder / "a.map")
      << "case e=4\nlayers = 2\nE = e\nV = 6\nH = 4\nK = 2\neps = 1e-5\nnear = n == 1\n";
  std::ofstream(folder / "config.json") << R"({"e": 8})";
  const std::string file = folder / "a.model", map = ",map=" + (folder / "a.map").string();
  const std::string config = ",config=" + folder.path().string();
  const ModelConfig example = load_model(file + map), model = load_model(file + map + config);
  EXPECT_EQ(example.E, 4);
  EXPECT_EQ(model.E, 8);
  EXPECT_EQ(print_model(model), file + ",E=8,H=4,K=2,V=6,eps=1e-05,layers=2,near=01");
  EXPECT_TRUE(same_model(model, load_model(print_model(model))));
  EXPECT_EQ(load_model(file + map + config + ",E=16").E, 16);
  EXPECT_EQ(label_of([&] { load_model(file + config); }), "model_key");
  EXPECT_EQ(label_of([&] { load_model(file + map + map); }), "model_key");
  EXPECT_EQ(label_of([&] { load_model(file + ",map=none.map"); }), "model_map_f1");
  EXPECT_EQ(label_of([&] { load_model(file + map + ",config=none"); }), "model_map_f3");
  EXPECT_EQ(label_of([&] { load_model(file + map + ",F=1"); }), "model_c1");
  const ModelText given = parse_model_text(kText);
  EXPECT_EQ(load_model("none.model" + map, &given).E, 4);
}

}  // namespace
}  // namespace shardproof
