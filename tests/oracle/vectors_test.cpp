// The specification worked out on seven tiny models (tests/data/vectors): the oracle must give
// every file's bits, and the files must be all that it gives.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "oracle/oracle.h"
#include "tests/oracle/npy.h"
#include "weights/model_config.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

struct VectorCase {
  Weights weights;
  oracle::Request request;
};

template <class T>
T word(const nlohmann::json& json, const char* key, const std::map<std::string, T>& words) {
  return words.at(json.at(key).get<std::string>());
}

VectorCase read_case(const fs::path& folder) {
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder / "case.json"));
  ModelConfig c;
  c.layers = json.at("layers");
  c.E = json.at("E");
  c.F = json.at("F");
  c.H = json.at("H");
  c.K = json.at("K");
  c.Q = json.at("Q");
  c.V = json.at("V");
  c.block = word<Block>(json, "block", {{"parallel", Block::parallel}, {"serial", Block::serial}});
  c.norm = word<Norm>(json, "norm", {{"rmsnorm", Norm::rmsnorm}, {"layernorm", Norm::layernorm}});
  c.ffn = word<Ffn>(json, "ffn", {{"swiglu", Ffn::swiglu}, {"gelu", Ffn::gelu}});
  c.eps = json.at("eps");
  c.theta = json.at("theta");
  c.embed_scale = json.at("embed_scale");
  c.logit_scale = json.at("logit_scale");
  c.tied = json.at("tied");

  std::map<std::string, Tensor> tensors;
  for (const auto& file : fs::directory_iterator(folder / "weights"))
    tensors[file.path().stem().string()] = read_npy<float>(file.path());
  c.positions = tensors.at("rope_cos").shape.at(0);

  oracle::Request request;
  request.numerics.weights = parse_weight_type(json.at("weights").get<std::string>());
  request.numerics.act = parse_act_type(json.at("act").get<std::string>());
  request.prompt = read_npy<std::int32_t>(folder / "tokens.npy");
  request.chunk = json.at("chunk");
  request.gen = json.at("gen");
  return {Weights(c, std::move(tensors)), request};
}

template <class T>
::testing::AssertionResult equal(const Array<T>& expected, const Array<T>& found) {
  if (expected.shape != found.shape) return ::testing::AssertionFailure() << "shapes differ";
  for (std::size_t n = 0; n < expected.data.size(); ++n)
    if (std::memcmp(&expected.data[n], &found.data[n], sizeof(T)) != 0)
      return ::testing::AssertionFailure()
             << "element " << n << " is " << found.data[n] << ", expected " << expected.data[n];
  return ::testing::AssertionSuccess();
}

class Vectors : public ::testing::TestWithParam<const char*> {};

TEST_P(Vectors, EveryCheckpointOfEveryPassBitForBit) {
  const fs::path folder = fs::path(SHARDPROOF_TEST_DATA) / "vectors" / GetParam();
  const VectorCase c = read_case(folder);
  const oracle::Answer answer = oracle::run(c.weights, c.request);

  std::set<std::string> files;
  for (const auto& file : fs::directory_iterator(folder / "expected")) {
    ASSERT_EQ(file.path().extension(), ".npy");
    const std::string id = file.path().stem().string();
    files.insert(id);
    if (id.ends_with(".token")) {
      ASSERT_TRUE(answer.tokens.contains(id)) << id;
      EXPECT_TRUE(equal(read_npy<std::int32_t>(file.path()), answer.tokens.at(id))) << id;
    } else {
      ASSERT_TRUE(answer.checkpoints.contains(id)) << id;
      EXPECT_TRUE(equal(read_npy<float>(file.path()), answer.checkpoints.at(id))) << id;
    }
  }
  std::set<std::string> ids;
  for (const auto& [id, value] : answer.checkpoints) ids.insert(id);
  for (const auto& [id, value] : answer.tokens) ids.insert(id);
  EXPECT_EQ(files, ids);
  EXPECT_GE(files.size(), 100U);
}

INSTANTIATE_TEST_SUITE_P(, Vectors,
                         ::testing::Values("bf16", "chunked", "gqa", "int8", "layernorm", "palm",
                                           "serial"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace shardproof
