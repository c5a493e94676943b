#include "golden/bounds/value/derivation.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::bounds {

NumberFormat format_of(std::string_view name, const ModelConfig& config,
                       const DeclaredArithmetic& declared) {
  const ValueRow* const row = value_row(name, config.rows.get());
  if (row == nullptr) return declared.unstored();
  if (row->cache && config.cache == NumberFormat::bf16) return NumberFormat::bf16;
  return row->stored ? declared.values : declared.unstored();
}

std::vector<std::size_t> rows_of_logits(const PassPlan& pass, std::size_t L) {
  std::vector<std::size_t> rows;
  for (const PassRows& group : pass.rows)
    for (std::int64_t r = 0; r < group.rows; ++r)
      rows.push_back(rows.size() * L + at(std::max<std::int64_t>(group.tokens - 1, 0)));
  return rows;
}

Derivation::Derivation(const Weights& weights, const Passes& passes,
                       const std::map<std::string, IntTensor>& ids, const Dump& dump,
                       DeclaredArithmetic declared)
    : weights_(weights),
      ids_(ids),
      dump_(dump),
      declared_(std::move(declared)),
      threads_(&calling_thread()) {
  for (std::int64_t i = 0; i < passes.size(); ++i) passes_.push_back(passes.at(i));
}

std::vector<Derivation::Variant> Derivation::variants(const std::string&) { return {}; }
bool Derivation::has_exact_centers(const std::string&) const { return false; }

std::optional<IntervalTensor> Derivation::expected_raw(const std::string&) { return {}; }
std::optional<IntervalTensor> Derivation::expected_scaled(const std::string&) { return {}; }
std::optional<IntervalTensor> Derivation::expected_statistic(const Place&) { return {}; }
std::optional<IntervalTensor> Derivation::expected_probs(const std::string&, std::int64_t) {
  return {};
}
std::optional<std::vector<IntervalTensor>> Derivation::expected_partials(const std::string&,
                                                                         const Axes&, bool) {
  return {};
}
std::optional<std::vector<std::pair<double, double>>> Derivation::products(const std::string&,
                                                                           std::size_t) {
  return {};
}
std::vector<bool> Derivation::absent(const std::string&) { return {}; }

const PassPlan& Derivation::pass(const std::string& name) const {
  for (const PassPlan& p : passes_)
    if (p.name == name) return p;
  throw Error("bounds_c1", fmt::format("there is no pass \"{}\"", name));
}

const PassRows& Derivation::rows_of(const PassPlan& pass, std::size_t row) {
  auto before = static_cast<std::int64_t>(row);
  for (const PassRows& group : pass.rows) {
    if (before < group.rows) return group;
    before -= group.rows;
  }
  throw Error("bounds_c1", fmt::format("{} has no row {}", pass.name, row));
}

const PassPlan* Derivation::prefix_of(const PassPlan& pass) const {
  const PassPlan* last = nullptr;
  if (pass.prefix.given())
    for (const PassPlan& p : passes_)
      if (p.phase == Phase::prefix) last = &p;
  return last;
}

std::size_t Derivation::visible(const PassPlan& pass, std::size_t row, std::size_t token) {
  const PassRows& rows = rows_of(pass, row);
  const std::int64_t causal = rows.start + static_cast<std::int64_t>(token) + 1;
  return static_cast<std::size_t>(std::max<std::int64_t>(std::min(causal, rows.end()), 0));
}

NumberFormat Derivation::format_at(const Place& place) const {
  return bounds::format_of(place.name, weights_.config(), declared(place));
}

std::int64_t Derivation::position(const PassPlan& pass, std::size_t row, std::size_t token) const {
  return rows_of(pass, row).start + static_cast<std::int64_t>(token);
}

}  // namespace shardproof::bounds
