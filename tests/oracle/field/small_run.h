#pragma once

#include <cstdint>
#include <string>

#include "oracle/field/answer.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle::field {

/// A run of a small model: palm-tiny with small dims and `keys`, which may say others.
struct SmallRun {
  std::string keys = {};
  NumberFormat weights = NumberFormat::f32;
  NumberFormat act = NumberFormat::f32;
  Block block = Block::parallel;
  std::int64_t batch = 2, prompt = 4, chunk = 0, gen = 3;
  FieldSetting setting = {};

  Request request() const {
    Request r;
    std::string model = "palm-tiny,layers=2,E=6,F=10,H=4,V=24,positions=16" + keys;
    if (model.find(",K=") == std::string::npos) model += ",K=2";
    if (model.find(",Q=") == std::string::npos) model += ",Q=4";
    r.config = parse_model(model);
    r.config.block = block;
    r.weights = weights;
    r.act = act;
    r.setting = setting;
    r.ids = generate_ids(r.config, setting.seed, batch, prompt + gen - 1);
    r.passes = Passes(batch, prompt, chunk, gen);
    return r;
  }
  Answer answer() const { return run(request()); }
};

}  // namespace shardproof::oracle::field
