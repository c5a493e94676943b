#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string_view>

#include "weights/model/model_config.h"
#include "weights/model/presets.h"

namespace shardproof {

/// A valid config of any formulas, with dims of at most `most`. Draw inside a property.
inline ModelConfig draw_model(int most) {
  const auto drawn = [](std::string_view name) { return !find_preset(name)->published; };
  ModelConfig c = parse_model(*rc::gen::suchThat(rc::gen::elementOf(preset_names()), drawn));
  const auto dim = [most] { return std::int64_t{*rc::gen::inRange(1, most + 1)}; };
  c.layers = *rc::gen::inRange(1, 4);
  c.E = dim();
  c.F = dim();
  c.K = *rc::gen::inRange(1, 4);
  c.H = c.K * *rc::gen::inRange(1, 4);
  c.V = dim();
  c.block = *rc::gen::element(Block::parallel, Block::serial);
  c.ffn = *rc::gen::element(Ffn::swiglu, Ffn::geglu, Ffn::gelu, Ffn::gelu_erf);
  c.norm = *rc::gen::element(Norm::rmsnorm, Norm::layernorm);
  c.bias = c.norm == Norm::rmsnorm
               ? *rc::gen::element(Bias::none, Bias::qkv, Bias::ffn, Bias::all)
               : *rc::gen::element(Bias::none, Bias::norm, Bias::qkv, Bias::ffn, Bias::all);
  c.rope = *rc::gen::element(Rope::half, Rope::interleaved, Rope::alibi, Rope::none);
  c.Q = 4 * *rc::gen::inRange(1, 3);
  c.rotary = ModelConfig().rotary;
  if (rotates(c)) {
    c.rotary = *rc::gen::element(1.0, 0.5);
    c.theta = *rc::gen::element(10000.0, 5e5, 0.1, 1.0 / 3.0);
  }
  c.tied = *rc::gen::arbitrary<bool>();
  c.unembed_bias = *rc::gen::arbitrary<bool>();
  c.eps = *rc::gen::element(1e-6, 1e-5, 1e-300, 2.0 / 3.0);
  c.embed_scale = *rc::gen::element(1.0F, 0.1F, 1e-40F, 3.4e38F);
  c.logit_scale = usual_logit_scale(c);
  if (*rc::gen::arbitrary<bool>()) c.logit_scale = *rc::gen::element(1.0F, 0.3F, 16777216.0F);
  c.softmax = *rc::gen::element(Softmax::base_e, Softmax::base2);
  c.positions = dim();
  return c;
}

}  // namespace shardproof
