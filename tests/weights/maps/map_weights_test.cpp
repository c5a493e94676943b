#include "weights/maps/map_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/safetensors/tensor_writer.h"
#include "weights/maps/load_model.h"
#include "weights/model/presets.h"
#include "weights/storage/generator.h"
#include "weights/storage/text_weights.h"
#include "weights/text/text_weights.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

/// An axis of a stored tensor: the letters whose extents it is the product of.
using Axes = std::vector<std::string>;

/// The tensor of `letters` as a file with these axes stores it.
Tensor stored_as(const Tensor& tensor, const std::string& letters, const Axes& axes) {
  std::string order;
  Shape shape;
  const auto extent = [&](char c) { return tensor.shape[letters.find(c)]; };
  for (const std::string& axis : axes) {
    order += axis;
    shape.push_back(1);
    for (const char c : axis) shape.back() *= extent(c);
  }
  Tensor result(shape);
  std::map<char, std::int64_t> index;
  std::size_t at = 0;
  const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
    if (depth == order.size()) {
      std::int64_t place = 0;
      for (const char c : letters) place = place * extent(c) + index[c];
      result.data[at++] = tensor.data[static_cast<std::size_t>(place)];
      return;
    }
    for (std::int64_t i = 0; i < extent(order[depth]); ++i) {
      index[order[depth]] = i;
      loop(depth + 1);
    }
  };
  loop(0);
  return result;
}

// The map that ships, over a checkpoint of generated weights: they come back, but for the tables,
// which the map makes.
TEST(MapWeights, OfLlamaAreTheCheckpoints) {
  const ModelMap map = load_model_map(SHARDPROOF_SOURCE "/docs/programs/llama.map");
  const Folder folder;
  std::ofstream(folder / "llama.model") << text_of_model(parse_model("llama"));
  for (const bool tied : {false, true}) {
    const MappedModel mapped =
        load_mapped_model((folder / "llama.model").string(), map, example_config(map));
    const TextModel& model = *text_model(mapped.model);
    const auto weights = generate_text_weights(model.text(), model.sizes(), 3);
    TensorFile file;
    const auto put = [&](const std::string& name, const std::string& id, const std::string& letters,
                         const Axes& axes) {
      file.add(name, stored_as(weights.at(id), letters, axes));
    };
    put("model.embed_tokens.weight", tied ? "unembed" : "embed", "VE", {"V", "E"});
    if (!tied) put("lm_head.weight", "unembed", "VE", {"V", "E"});
    put("model.norm.weight", "final_norm", "E", {"E"});
    for (int n = 0; n < 2; ++n) {
      const std::string own = "layer" + std::to_string(n) + ".";
      const std::string there = "model.layers." + std::to_string(n) + ".";
      put(there + "input_layernorm.weight", own + "norm", "E", {"E"});
      put(there + "self_attn.q_proj.weight", own + "wq", "EHQ", {"HQ", "E"});
      put(there + "self_attn.k_proj.weight", own + "wk", "EKQ", {"KQ", "E"});
      put(there + "self_attn.v_proj.weight", own + "wv", "EKQ", {"KQ", "E"});
      put(there + "self_attn.o_proj.weight", own + "wo", "HQE", {"E", "HQ"});
      put(there + "post_attention_layernorm.weight", own + "norm2", "E", {"E"});
      put(there + "mlp.gate_proj.weight", own + "w_gate", "EF", {"F", "E"});
      put(there + "mlp.up_proj.weight", own + "w_up", "EF", {"F", "E"});
      put(there + "mlp.down_proj.weight", own + "w_out", "FE", {"E", "F"});
      put(there + "self_attn.q_proj.bias", own + "norm", "E", {"E"});
    }
    const fs::path path = folder / (tied ? "tied.safetensors" : "a.safetensors");
    file.write(path);
    const MappedWeights found = mapped_weights(map, model, mapped.sizes, TensorFiles::open(path));
    EXPECT_EQ(found.unread, (std::vector<std::string>{"model.layers.0.self_attn.q_proj.bias",
                                                      "model.layers.1.self_attn.q_proj.bias"}));
    ASSERT_EQ(found.tensors.size(), weights.size());
    for (const auto& [id, tensor] : weights) {
      if (id.starts_with("rope")) continue;
      const Tensor& read = found.tensors.at(id);
      EXPECT_EQ(read.shape, tensor.shape) << id;
      const Tensor& expected = tied && id == "embed" ? weights.at("unembed") : tensor;
      EXPECT_EQ(read.data, expected.data) << id;
    }
    // llama3's scaling divides the slowest pair's angles by 8.
    const Tensor& cosines = found.tensors.at("rope_cos");
    const auto slowest = static_cast<float>(std::cos(std::pow(500000.0, -6.0 / 8.0) / 8.0));
    EXPECT_EQ(cosines.shape, (Shape{64, 8}));
    EXPECT_EQ(cosines.data[8 + 3], slowest);
    EXPECT_EQ(cosines.data[8 + 7], slowest);
  }
}

constexpr const char* kExperts = R"(model experts
dim E d_model
dim D d_ff
dim X experts
dim V vocabulary
flag dense
embedding
weight table : VE
embed : BLE = gather(table, ids, V)
layer
weight up : EXD unless dense
weight plain : ED if dense
weight both : XE
most : BLX = einsum(BLE,XE->BLX; in, both)
much : BLXD = einsum(BLE,EXD->BLXD; in, up) unless dense
out : BLE = add(in, sum(most, X)) if dense
out : BLE = add(in, sum(sum(much, D), X)) unless dense
head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)";

class Experts : public testing::Test {
 protected:
  static constexpr const char* kMap =
      "layers = 2\nE = 2\nD = 3\nX = 2\nV = 2\ndense = n == 1\ntable < embed VE\n"
      "up < h.{n}.e.{x}.up DE\nup < h.{n}.all XDE\nplain < h.{n}.up DE\n"
      "both < h.{n}.both ([XE,XE]) take 1\n";

  static Tensor counted(const Shape& shape, float from) {
    Tensor tensor(shape);
    for (float& x : tensor.data) x = from++;
    return tensor;
  }

  Experts() {
    file_.add("embed", counted({2, 2}, 0));
    file_.add("h.0.e.0.up", counted({3, 2}, 10));
    file_.add("h.0.e.1.up", counted({3, 2}, 20));
    file_.add("h.1.up", counted({3, 2}, 30));
    for (const char* name : {"h.0.both", "h.1.both"}) file_.add(name, counted({8}, 40));
  }

  MappedWeights read(const std::string& map = kMap) const {
    std::ofstream(folder_ / "a.model") << kExperts;
    file_.write(folder_ / "a.safetensors");
    const ModelMap parsed = parse_model_map(map, "a.map");
    const MappedModel mapped =
        load_mapped_model((folder_ / "a.model").string(), parsed, nlohmann::json::object());
    return mapped_weights(parsed, *text_model(mapped.model), mapped.sizes,
                          TensorFiles::open(folder_ / "a.safetensors"));
  }

  Folder folder_;
  TensorFile file_;
};

TEST_F(Experts, AreTensorsOfTheirOwn) {
  using Row = std::vector<float>;
  const MappedWeights found = read();
  EXPECT_EQ(found.tensors.size(), 5U);
  EXPECT_EQ(found.tensors.at("layer0.up").shape, (Shape{2, 2, 3}));
  EXPECT_EQ(found.tensors.at("layer0.up").data,
            (Row{10, 12, 14, 20, 22, 24, 11, 13, 15, 21, 23, 25}));
  EXPECT_EQ(found.tensors.at("layer1.plain").data, (Row{30, 32, 34, 31, 33, 35}));
  EXPECT_EQ(found.tensors.at("layer1.both").data, (Row{44, 45, 46, 47}));
  EXPECT_TRUE(found.unread.empty());
}

TEST_F(Experts, OrOneTensor) {
  TensorFile file;
  file.add("embed", counted({2, 2}, 0));
  file.add("h.0.all", counted({2, 3, 2}, 10));
  file.add("h.1.up", counted({3, 2}, 30));
  for (const char* name : {"h.0.both", "h.1.both"}) file.add(name, counted({8}, 40));
  file.add("extra", counted({1}, 0));
  file_ = file;
  const MappedWeights found = read();
  EXPECT_EQ(found.tensors.at("layer0.up").data,
            (std::vector<float>{10, 12, 14, 16, 18, 20, 11, 13, 15, 17, 19, 21}));
  EXPECT_EQ(found.unread, std::vector<std::string>{"extra"});
}

TEST_F(Experts, LinesThatDoNotHoldAreNotRead) {
  file_.add("other", counted({2, 2}, 50));
  file_.add("h.0.mask", counted({1}, 0));
  const std::string map = kMap;
  const MappedWeights first = read("table < other VE if 1 == 1\nignore h.{n}.mask\n" + map);
  EXPECT_EQ(first.tensors.at("table").data[0], 50.0F);
  EXPECT_EQ(first.unread, std::vector<std::string>{"embed"});
  const MappedWeights second =
      read("table < other VE if 1 == 2\nignore h.{n}.mask if 1 == 2\nignore other\n" + map);
  EXPECT_EQ(second.tensors.at("table").data[0], 0.0F);
  EXPECT_EQ(second.unread, std::vector<std::string>{"h.0.mask"});
}

TEST_F(Experts, AllMustBeThere) {
  TensorFile file;
  file.add("embed", counted({2, 2}, 0));
  file.add("h.0.e.0.up", counted({3, 2}, 10));
  file.add("h.1.up", counted({3, 2}, 30));
  for (const char* name : {"h.0.both", "h.1.both"}) file.add(name, counted({8}, 40));
  file_ = file;
  EXPECT_TRUE(refuses([&] { read(); }, "model_map_c4", "the checkpoint has no h.0.e.1.up"));
}

TEST_F(Experts, MissingOrOtherTensorsAreRefused) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string map = kMap;
    const auto at = map.find(from);
    return map.replace(at, from.size(), to);
  };
  EXPECT_TRUE(refuses([&] { read(with("table < embed VE\n", "")); }, "model_map_c4",
                      "a.map: the map says nowhere where table is"));
  EXPECT_TRUE(refuses([&] { read(with("h.{n}.up", "h.{n}.gone")); }, "model_map_c4",
                      "layer1.plain: the checkpoint has no h.1.gone"));
  EXPECT_TRUE(
      refuses([&] { read(with("embed VE", "embed V")); }, "model_map_c5", "a.map line 7: table"));
  EXPECT_TRUE(
      refuses([&] { read(with("h.{n}.up DE", "h.{n}.up ED")); }, "model_map_c5", "layer1.plain"));
  EXPECT_TRUE(refuses([&] { read(with("embed VE", "{x}embed VE")); }, "model_map_c4", "no 0embed"));
  EXPECT_TRUE(refuses([&] { read(with("table < embed VE", "table = slopes(2)")); }, "model_map_c6",
                      "table: slopes makes the shape [2], not [2, 2]"));
}

}  // namespace
}  // namespace shardproof
