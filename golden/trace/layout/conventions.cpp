#include "golden/trace/layout/conventions.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// Maps the writer's channel of a head to the model's, by their orders of rotated pairs.
std::int64_t channel(std::int64_t theirs, const ModelConfig& config, Rope pairs) {
  const std::int64_t rotated = std::llround(static_cast<double>(config.Q) * config.rotary);
  if (theirs >= rotated) return theirs;
  const std::int64_t half = rotated / 2;
  // Splits the channel into pair and half in one order, and recombines them in the other.
  if (pairs == Rope::interleaved) return theirs / 2 + theirs % 2 * half;
  return theirs % half * 2 + theirs / half;
}

bool in_pairs(std::string_view name) {
  for (const std::string_view n :
       {"q", "k", "q_rot", "k_rot", "k_cache", "wq", "wk", "bq", "bk", "wq_scale", "wk_scale"})
    if (name == n || (name.starts_with("layer") && name.ends_with(fmt::format(".{}", n))))
      return true;
  return false;
}

}  // namespace

Place::Place(const Layout& layout, const Subject& subject, const Claim& claim, const Shape& padded)
    : subject_(subject), claim_(claim), padded_(padded), index_(padded.size(), 0) {
  for (const char letter : subject.dims) dim_.push_back(*layout.find(letter));
}

std::int64_t Place::operator()(std::int64_t theirs) {
  for (std::size_t d = padded_.size(); d-- > 0;) {
    index_[d] = theirs % padded_[d];
    theirs /= padded_[d];
  }
  const ModelConfig& model = claim_.source_case.model;
  std::int64_t element = 0;
  for (std::size_t d = 0; d < dim_.size(); ++d) {
    std::int64_t i = index_[dim_[d]];
    if (i >= subject_.shape[d]) return kNone;
    const char letter = subject_.dims[d];
    if (!claim_.heads.empty() && (letter == 'H' || (letter == 'K' && model.K == model.H)))
      i = claim_.heads[static_cast<std::size_t>(i)];
    if (letter == 'Q' && claim_.pairs && in_pairs(subject_.name))
      i = channel(i, model, *claim_.pairs);
    element = element * subject_.shape[d] + i;
  }
  return element;
}

std::vector<double> units_of(const Subject& s, const Claim& claim, const Weights& weights) {
  const auto all = [&](double unit) {
    return std::vector<double>(static_cast<std::size_t>(element_count(s.shape)), unit);
  };
  // Units apply only after the scale: a raw sum is in the model's units.
  if (s.meaning == Meaning::raw) return {};
  if (claim.score_unit != 1.0 && (s.name == "score" || s.name == "max"))
    return all(claim.score_unit);
  if (claim.logits_unit != 1.0 && s.name == "logits") return all(claim.logits_unit);
  const bool norm = s.name == "norm" || s.name == "norm2" || s.name == "final_norm";
  if (claim.gain_folded && norm) {
    std::vector<double> units = all(1.0);
    const Tensor& gain = weights.at(weight_id(s.layer, s.name));
    for (std::size_t i = 0; i < units.size(); ++i)
      units[i] = static_cast<double>(gain.data[i % gain.data.size()]);
    return units;
  }
  return {};
}

}  // namespace shardproof::dump
