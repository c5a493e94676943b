#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>

#include "oracle/model/oracle.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {

/// A small random model, its numerics and its run, for properties.
struct Drawn {
  ModelConfig config;
  Request request;  // but for its passes
  std::int64_t chunk = 0, gen = 1;
  std::uint64_t seed = 1;

  Answer answer() const {
    Request whole = request;
    whole.passes = Passes(whole.prompt.shape[0], whole.prompt.shape[1], chunk, gen);
    return run(generate_weights(config, seed), whole);
  }
};

inline std::ostream& operator<<(std::ostream& out, const Drawn& d) {
  const Numerics& n = d.request.numerics;
  return out << print_model(d.config) << " block=" << to_string(d.config.block)
             << " weights=" << to_string(n.weights) << " act=" << to_string(n.act)
             << " batch=" << d.request.prompt.shape[0] << " prompt=" << d.request.prompt.shape[1]
             << " chunk=" << d.chunk << " gen=" << d.gen << " seed=" << d.seed;
}

/// RapidCheck's inRange starts small and grows; these models are small enough at full size.
inline std::int64_t draw(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

inline Drawn draw_case() {
  Drawn d;
  ModelConfig& c = d.config;
  c.layers = draw(1, 2);
  c.E = draw(1, 12);
  c.F = draw(1, 12);
  c.K = draw(1, 3);
  c.H = c.K * draw(1, 3);
  c.Q = 2 * draw(1, 4);
  c.V = draw(1, 20);
  c.block = *rc::gen::element(Block::parallel, Block::serial);
  c.ffn = *rc::gen::element(Ffn::swiglu, Ffn::geglu, Ffn::gelu, Ffn::gelu_erf);
  c.norm = *rc::gen::element(Norm::rmsnorm, Norm::layernorm);
  c.bias = *rc::gen::element(Bias::none, Bias::qkv, Bias::ffn, Bias::all);
  if (c.norm == Norm::layernorm && *rc::gen::arbitrary<bool>()) c.bias = Bias::norm;
  c.rope = *rc::gen::element(Rope::half, Rope::interleaved, Rope::alibi, Rope::none);
  if (rotates(c) && c.Q % 4 == 0 && *rc::gen::arbitrary<bool>()) c.rotary = 0.5;
  c.tied = *rc::gen::arbitrary<bool>();
  c.unembed_bias = *rc::gen::arbitrary<bool>();
  c.embed_scale = *rc::gen::element(1.0F, 0.7F);
  c.logit_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.E)));
  c.softmax = *rc::gen::element(Softmax::base_e, Softmax::base2);
  c.positions = 16;
  c.cache = *rc::gen::element<std::optional<NumberFormat>>(std::nullopt, NumberFormat::f32,
                                                           NumberFormat::bf16);
  d.seed = static_cast<std::uint64_t>(draw(1, 1000));
  Numerics& n = d.request.numerics;
  n.weights = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16, NumberFormat::int8);
  n.act = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  d.request.prompt = generate_prompt(c, d.seed, draw(1, 3), draw(1, 6));
  d.chunk = draw(0, 4);
  d.gen = draw(1, 3);
  return d;
}

}  // namespace shardproof::oracle
