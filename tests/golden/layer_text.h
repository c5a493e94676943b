#pragma once

// A strategy's layer as text, and text as a layer that is judged.
#include <fmt/format.h>

#include <string>

#include "engine/strategies/layer_file.h"
#include "golden/verify/verify.h"
#include "tests/engine/strategy_sample.h"
#include "weights/base/error.h"

namespace shardproof {

/// A small model whose every dim 24 chips divide; K key/value heads.
inline Case small(int K, NumberFormat act = NumberFormat::f32) {
  Case c = parse_case(fmt::format(
      "torus=4x2x3 model=palm-tiny,layers=2,E=24,F=24,H=24,K={},Q=2,V=24 batch=24 prompt=3 gen=3",
      K));
  c.numerics.act = act;
  return c;
}

/// The case with the strategy's own block, and as its prefill where it cannot decode.
inline Case fitted(Case c, const Strategy& strategy) {
  if (serial_only(strategy)) c.model.block = Block::serial;
  if (decodes(strategy)) return c;
  c.prefill = strategy;
  c.prompt = c.chunk = smallest_length(strategy, c.torus);
  return c;
}

inline std::string text_of(const Strategy& strategy, const Case& c) {
  return print_program(partitioned(c, strategy, Phase::prefill).layer);
}

/// The layer in both phases of the case, or in place of a prefill that cannot decode.
inline Case with_layer(Case c, const Program& layer) {
  const bool both = decodes(c.prefill);
  c.prefill = Strategy(layer);
  if (both) c.decode = c.prefill;
  return c;
}

inline Judgement judge(const std::string& text, const Case& c, OracleMemo& memo) {
  return verify_case(with_layer(c, parse_program("layer", text, "p.txt")), memo);
}

/// Whether the program is refused before it runs; the message in `why`.
inline bool refused(const std::string& text, const Case& c, std::string& why) {
  try {
    make_typed_plan(with_layer(c, parse_program("layer", text, "p.txt")));
    return false;
  } catch (const Error& error) {
    why = error.what();
    return true;
  }
}

}  // namespace shardproof
