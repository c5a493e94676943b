#include "golden/verdict/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/compare/row_padding.h"
#include "golden/scalar/model.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Returns the last token of every row of a tensor [B, L, ...], at the positions `last`.
std::vector<float> last_tokens(const Tensor& t, const IntTensor& last) {
  const auto L = static_cast<std::size_t>(t.shape[1]);
  const std::size_t row = t.data.size() / static_cast<std::size_t>(t.shape[0]) / L;
  std::vector<float> rows;
  for (std::size_t b = 0; b < last.data.size(); ++b) {
    const std::size_t at = (b * L + static_cast<std::size_t>(last.data[b])) * row;
    rows.insert(rows.end(), t.data.begin() + static_cast<std::ptrdiff_t>(at),
                t.data.begin() + static_cast<std::ptrdiff_t>(at + row));
  }
  return rows;
}

/// Skips padding, and cache slots that no token reached, which are NaN in the run.
double relative_distance(const std::vector<float>& f32, const std::vector<float>& exact,
                         const std::vector<bool>& padding) {
  double squares = 0.0, most = 0.0, count = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (std::isnan(f32[i]) || std::isnan(exact[i]) || (!padding.empty() && padding[i])) continue;
    const double e = static_cast<double>(exact[i]);
    squares += e * e;
    count += 1.0;
    most = std::max(most, std::abs(static_cast<double>(f32[i]) - e));
  }
  return squares == 0.0 ? 0.0 : most / std::sqrt(squares / count);
}

}  // namespace

std::pair<std::string, double> Drift::worst() const {
  std::pair<std::string, double> most{"", 0.0};
  for (const auto& [name, distance] : relative)
    if (most.first.empty() || distance > most.second) most = {name, distance};
  return most;
}

std::string Drift::to_string() const {
  const auto [name, distance] = worst();
  const auto logits = relative.find("logits");
  return fmt::format(
      "drift from exact (not judged): {} {:.1e}, logits {:.1e}; {} of {} tokens agree", name,
      distance, logits == relative.end() ? 0.0 : logits->second, equal_tokens, tokens);
}

void Drift::add(const Drift& other) {
  for (const auto& [name, distance] : other.relative)
    relative[name] = std::max(relative[name], distance);
  equal_tokens += other.equal_tokens;
  tokens += other.tokens;
}

void DriftMeter::measure(const ScalarModel& model) {
  const RowsOfPass rows_of_pass(model.plan_of_pass());
  if (!apart_)
    for (const auto& [key, made] : model.values()) {
      const Role& m = made.role;
      if (made.input || m.kind != Role::Kind::checkpoint || made.value->integer() ||
          made.value->layout.is_partial())
        continue;
      const auto exact = exact_.checkpoints.find(checkpoint_id(model.pass(), made.layer, m.name));
      if (exact == exact_.checkpoints.end()) continue;
      const std::vector<float> rows =
          m.last ? last_tokens(exact->second, exact_.last.at(model.pass())) : std::vector<float>();
      const std::vector<float>& whole = m.last ? rows : exact->second.data;
      Shape own = exact->second.shape;
      if (m.last) own.erase(own.begin() + 1);
      const Shape placed = model.padding().placed(whole_letters(made.value->layout), own);
      const std::vector<float> without =
          placed == own || element_count(placed) != element_count(made.value->shape)
              ? std::vector<float>()
              : without_padding(made.value->whole(), own, placed);
      const std::vector<float>& mine = without.empty() ? made.value->whole() : without;
      if (whole.size() != mine.size()) continue;
      double& most = drift_.relative[m.name];
      most = std::max(most, relative_distance(mine, whole, row_padding(m, own, rows_of_pass)));
    }
  const std::vector<std::int32_t>& mine = model.sampled();
  for (std::size_t b = 0; b < mine.size(); ++b) {
    if (!rows_of_pass.samples[b]) continue;
    const bool same = mine[b] == exact_.tokens.at(model.pass() + ".token").data[b];
    ++drift_.tokens;
    drift_.equal_tokens += same ? 1 : 0;
    apart_ = apart_ || !same;
  }
}

}  // namespace shardproof
