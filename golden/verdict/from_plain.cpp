#include "golden/verdict/from_plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/run/plan.h"
#include "golden/memo/oracle_memo.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

double relative_distance(const std::vector<float>& plain, const std::vector<float>& folded,
                         const ModelConfig& config) {
  double squares = 0.0, most = 0.0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto of_plain = static_cast<double>(plain[i]);
    squares += of_plain * of_plain;
    most = std::max(most, std::abs(natural_logit(config, folded[i]) - of_plain));
  }
  return squares == 0.0 ? 0.0 : most / std::sqrt(squares / static_cast<double>(plain.size()));
}

}  // namespace

std::string FromPlain::to_string() const {
  return fmt::format("from the plain model (not judged): logits {:.1e}; {} of {} tokens agree",
                     logits, equal_tokens, tokens);
}

void FromPlain::add(const FromPlain& other) {
  logits = std::max(logits, other.logits);
  equal_tokens += other.equal_tokens;
  tokens += other.tokens;
  if (apart.empty()) apart = other.apart;
}

std::optional<FromPlain> from_plain(const RunPlan& plan, const oracle::Answer& folded,
                                    OracleMemo& memo, int threads) {
  const ModelConfig& config = plan.source_case.model;
  if (config.softmax == Softmax::base_e) return std::nullopt;
  RunPlan of_plain = plan;
  of_plain.source_case.model.softmax = Softmax::base_e;
  std::shared_ptr<const OracleMemo::Known> known;
  try {
    known = memo.get(of_plain, nullptr, threads);
  } catch (const Error& error) {
    if (error.label() != "oracle_finite") throw;
    return std::nullopt;
  }
  const oracle::Answer& plain = known->answer;
  FromPlain found;
  for (std::int64_t i = 0; i < plan.passes.size() && found.apart.empty(); ++i) {
    const std::string pass = plan.passes.at(i).name;
    const std::string logits = checkpoint_id(pass, -1, "logits");
    found.logits =
        std::max(found.logits, relative_distance(plain.checkpoints.at(logits).data,
                                                 folded.checkpoints.at(logits).data, config));
    const auto theirs = plain.tokens.find(pass + ".token");
    if (theirs == plain.tokens.end()) continue;
    const std::vector<std::int32_t>& samples = folded.samples.at(pass).data;
    const std::vector<std::int32_t>& a = theirs->second.data;
    const std::vector<std::int32_t>& b = folded.tokens.at(pass + ".token").data;
    for (std::size_t row = 0; row < a.size(); ++row) {
      if (samples[row] == 0) continue;
      ++found.tokens;
      if (a[row] == b[row])
        ++found.equal_tokens;
      else
        found.apart = pass;
    }
  }
  return found;
}

}  // namespace shardproof
