#include "golden/verify/degenerate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "weights/model/registry.h"

namespace shardproof {
namespace {

bool is_zero(const Tensor& tensor) {
  return std::all_of(tensor.data.begin(), tensor.data.end(), [](float x) { return x == 0.0F; });
}

/// Returns true if the tensor has the same bits at every index of dim d, which has several. If not,
/// the first few elements usually show it.
bool equal_along(const Tensor& tensor, std::size_t d) {
  std::int64_t inner = 1;
  for (std::size_t i = d + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
  const std::int64_t period = inner * tensor.shape[d];
  const auto bits = [&](std::int64_t i) {
    return std::bit_cast<std::uint32_t>(tensor.data[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(tensor.data.size()); ++i)
    if (bits(i) != bits(i - i % period + i % inner)) return false;
  return !tensor.data.empty() && tensor.shape[d] > 1;
}

/// Returns "layer0.wq, layer1.wq and 3 more", so that a note fits on a line.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 2;
  if (names.size() <= kNamed + 1) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kNamed, ", "),
                     names.size() - kNamed);
}

std::string_view is_or_are(const std::vector<std::string>& names) {
  return names.size() == 1 ? "is" : "are";
}

/// The data that the notes are about.
struct Found {
  std::vector<std::string> zero;
  std::map<char, std::vector<std::string>> weights;  ///< equal along a dim, by its letter
  std::vector<std::string> phases;                   ///< whose rows are equal
};

void look_at_weights(const Weights& weights, const std::vector<std::string>& noted, Found& found) {
  for (const WeightSpec& spec : weight_specs(weights.config())) {
    if (!weights.contains(spec.name) ||
        std::find(noted.begin(), noted.end(), spec.name) != noted.end())
      continue;
    const std::shared_ptr<const Tensor> weight = weights.at(spec.name);
    const Tensor& tensor = *weight;
    if (is_zero(tensor)) {
      found.zero.push_back(spec.name);
      continue;
    }
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      if (equal_along(tensor, d)) found.weights[spec.dims[d]].push_back(spec.name);
  }
}

/// Returns true if `holds` is true for a value, "layer0.norm", in all passes of a phase.
template <class Holds>
bool in_all_passes(const oracle::Answer& answer, std::string_view phase, const std::string& name,
                   Holds&& holds) {
  bool met = false;
  for (const std::string& pass : answer.passes) {
    if (!pass.starts_with(phase)) continue;
    const auto at = answer.checkpoints.find(pass + "." + name);
    if (at == answer.checkpoints.end()) continue;
    if (!holds(at->second)) return false;
    met = true;
  }
  return met;
}

/// Looks only at values over the model's channels: the statistics of attention may well be zero.
/// Rows with equal logits are equal throughout.
void look_at_values(const ModelConfig& model, const oracle::Answer& answer, Found& found) {
  for (const std::string phase : {"prefix", "prefill", "decode"}) {
    for (const CheckpointSpec& spec : checkpoint_specs(model)) {
      if (spec.dims.find_first_of("EFQV") == std::string::npos) continue;
      for (std::int64_t layer = 0; layer < (spec.per_layer ? model.layers : 1); ++layer) {
        const std::string name = spec.per_layer ? weight_id(layer, spec.name) : spec.name;
        if (in_all_passes(answer, phase, name, is_zero)) found.zero.push_back(phase + "." + name);
      }
    }
    const auto equal_rows = [](const Tensor& logits) {
      return equal_along(logits, 0) && !is_zero(logits);
    };
    if (in_all_passes(answer, phase, "logits", equal_rows)) found.phases.push_back(phase);
  }
}

}  // namespace

std::vector<std::string> notes_of_data(const Weights& weights, const oracle::Answer& answer,
                                       const std::vector<std::string>& noted) {
  Found found;
  look_at_weights(weights, noted, found);
  look_at_values(weights.config(), answer, found);
  std::vector<std::string> notes;
  const auto add = [&](std::string what) {
    notes.push_back("degenerate data: " + std::move(what) + " (try regime=field)");
  };
  if (!found.zero.empty())
    add(fmt::format("{} {} zero, and a fault in what it multiplies does not show", some(found.zero),
                    is_or_are(found.zero)));
  for (const auto& [dim, names] : found.weights)
    add(fmt::format("{} {} equal along {}, and a wrong order of {} does not show", some(names),
                    is_or_are(names), dim, dim));
  for (const std::string& phase : found.phases)
    add(fmt::format("all rows of B are equal in the {}, and rows that change places do not show",
                    phase));
  return notes;
}

}  // namespace shardproof
