#include "engine/run/case_weights.h"

#include "engine/ops/int8_weights.h"
#include "weights/storage/fold.h"
#include "weights/storage/generator.h"

namespace shardproof {

Weights generated_weights(const Case& c) {
  if (c.model.softmax == Softmax::base_e || c.numerics.weights != NumberFormat::int8)
    return generate_weights(c.model, c.seed);
  ModelConfig plain = c.model;
  plain.softmax = Softmax::base_e;
  return fold(int8_weights(generate_weights(plain, c.seed)));
}

}  // namespace shardproof
