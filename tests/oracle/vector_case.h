#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "oracle/model/oracle.h"
#include "tests/oracle/npy.h"
#include "weights/model/model_config.h"

namespace shardproof {

namespace fs = std::filesystem;

/// One folder of tests/data/vectors: the model, its weights, and what is asked of it.
struct VectorCase {
  Weights weights;
  oracle::Request request;
  std::int64_t chunk, gen;
};

template <class T>
T word(const nlohmann::json& json, const char* key, const std::map<std::string, T>& words) {
  return words.at(json.at(key).get<std::string>());
}

inline VectorCase read_case(const fs::path& folder) {
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
  request.numerics.weights = parse_weight_format(json.at("weights").get<std::string>());
  request.numerics.act = parse_act_format(json.at("act").get<std::string>());
  request.prompt = read_npy<std::int32_t>(folder / "tokens.npy");
  const std::int64_t chunk = json.at("chunk"), gen = json.at("gen");
  request.passes = Passes(request.prompt.shape[0], request.prompt.shape[1], chunk, gen);
  return {
      .weights = Weights(c, std::move(tensors)), .request = request, .chunk = chunk, .gen = gen};
}

}  // namespace shardproof
