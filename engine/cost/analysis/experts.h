#pragma once

#include <cstdint>
#include <optional>

#include "engine/cost/analysis/intensity.h"
#include "engine/cost/chip/chip.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The FFN of each layer as a mixture of experts: each expert is an FFN of the model's E and F, a
/// router sends each token to `top` of them, and the experts are spread evenly over the chips, as
/// are the tokens.
struct Experts {
  std::int64_t experts = 1;
  std::int64_t top = 1;   ///< experts per token
  double capacity = 1.0;  ///< slots of an expert over its tokens under perfect balance
  std::int64_t chips = 1;
  std::int64_t tokens = 1;  ///< of a pass, on all chips together
};

/// The experts of a text: those of the first layer in which a `top` chooses among some.
struct OwnExperts {
  std::int64_t experts = 1;
  std::int64_t top = 1;          ///< experts per token
  double elements = 0.0;         ///< of the matrices of one expert
  double router_elements = 0.0;  ///< of the matrices that a token is multiplied with to choose
};

/// Returns the experts of a model's text; nullopt if it has none. Throws Error("experts_c5", ...)
/// if a layer's matrices are of several sets of experts.
std::optional<OwnExperts> own_experts(const ModelConfig& model);

/// The cost of one layer. FLOPs are those of all chips.
struct ExpertsCost {
  double router_flops = 0.0;  ///< 2·E·experts a token; of a text's own experts its router's
  double dense_flops = 0.0;   ///< one dense FFN of that size for all tokens
  double token_flops = 0.0;   ///< the experts of all tokens: top · dense_flops
  /// Tokens that an expert takes, ⌈capacity·top·tokens/experts⌉, at most all; unfilled slots are
  /// computed all the same, tokens beyond them are dropped.
  std::int64_t slots = 1;
  double slot_flops = 0.0;  ///< all slots of all experts
  /// The expected number of experts with at least one token, if every set of `top` experts is
  /// equally likely for a token: experts·(1 − (1 − top/experts)^tokens). Their weights are read.
  double touched = 1.0;
  double weight_bytes = 0.0;  ///< the experts on one chip
  /// Bytes sent by one chip in one all-to-all, to the experts or back: the slots of its share of
  /// the tokens, experts·slots/chips of E elements, times the chip's all_to_all·(K−1)/K.
  double all_to_all_bytes = 0.0;
  double both_ways_seconds = 0.0;  ///< the two all-to-alls of a layer
};

/// Returns the cost of a layer of a model with these experts in place of its FFN, the matrices with
/// the letter F; `experts` and `top` of a text's own experts are left as they are by the caller.
/// Throws what own_experts throws, and Error: "experts_c1" (a number below 1, or a capacity that is
/// not above 0 and finite), "experts_c2" (top above experts), "experts_c3" (chips that do not
/// divide the experts or the tokens), "experts_c4" (more chips than the chip's max_chips),
/// "experts_c5" (other numbers than a text's own experts).
ExpertsCost experts_cost(const ModelConfig& model, const Experts& experts,
                         const ElementBytes& bytes, const Chip& chip);

}  // namespace shardproof::cost
