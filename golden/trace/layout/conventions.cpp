#include "golden/trace/layout/conventions.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "weights/model/registry.h"
#include "weights/text/composites.h"

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

/// Returns whether a value has rotated channels, or a weight that makes one.
bool in_pairs(const Subject& s, const ModelConfig& config) {
  const NamedComposites all = composites_of(config, NumberFormat::int8);
  if (s.meaning != Meaning::weight) return is_rotated(all, s.name);
  const auto is_own = [&](const std::string& weight) {
    return !weight.empty() && s.name.ends_with("." + weight);
  };
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    const auto& [name, of] = one;
    return of.kind == CompositeKind::product && is_rotated(all, name) &&
           (is_own(of.scale) || std::any_of(of.weights.begin(), of.weights.end(), is_own) ||
            std::any_of(of.biases.begin(), of.biases.end(), is_own));
  });
}

}  // namespace

Place::Place(const Layout& layout, const Subject& subject, const Claim& claim, const Shape& padded)
    : subject_(subject),
      claim_(claim),
      padded_(padded),
      in_pairs_(claim.pairs && in_pairs(subject, claim.source_case.model)),
      index_(padded.size(), 0) {
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
    if (letter == 'Q' && in_pairs_) i = channel(i, model, *claim_.pairs);
    element = element * subject_.shape[d] + i;
  }
  return element;
}

bool Place::changes_nothing() const {
  for (std::size_t d = 0; d < dim_.size(); ++d)
    if (dim_[d] != d) return false;
  return padded_ == subject_.shape && claim_.heads.empty() && !in_pairs_;
}

std::vector<double> units_of(const Subject& s, const Claim& claim, const Weights& weights) {
  const auto all = [&](double unit) {
    return std::vector<double>(static_cast<std::size_t>(element_count(s.shape)), unit);
  };
  // Units apply only after the scale: a raw sum is in the model's units.
  if (s.meaning == Meaning::raw) return {};
  const ModelConfig& model = claim.source_case.model;
  const NamedComposites composites = composites_of(model, weights.stored_type());
  const Composite* const of = find_composite(composites, s.name);
  if (of == nullptr) return {};
  if (claim.score_unit != 1.0 &&
      (of->kind == CompositeKind::score || of->kind == CompositeKind::maximum))
    return all(claim.score_unit);
  if (claim.logits_unit != 1.0 && s.name == result_of(TextSection::head))
    return all(claim.logits_unit);
  if (claim.gain_folded && of->kind == CompositeKind::norm) {
    std::vector<double> units = all(1.0);
    const auto gain = weights.at(weight_id(s.layer, of->weights[0], model.rows.get()));
    for (std::size_t i = 0; i < units.size(); ++i)
      units[i] = static_cast<double>(gain->data[i % gain->data.size()]);
    return units;
  }
  return {};
}

}  // namespace shardproof::dump
