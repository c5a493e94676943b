#include "golden/cases/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "golden/cases/key_values.h"
#include "golden/cases/strata.h"

namespace shardproof::cases {

void Coverage::add(const Case& c) {
  ++cases_;
  const int X = c.torus.size(Axis::x);
  const int Y = c.torus.size(Axis::y);
  const int Z = c.torus.size(Axis::z);
  const auto odd = [](int size) { return size >= 3 && size % 2 == 1; };
  if (!(X == Y && Y == Z)) ++counts_["axes not all equal"];
  if (c.torus.chips() >= 12) ++counts_["12 chips or more"];
  if (c.gen >= 3) ++counts_["gen 3 or more"];
  if (c.numerics.regime == Regime::f32) {
    ++counts_["regime f32"];
    ++counts_[fmt::format("schedule {}", shardproof::to_string(c.numerics.schedule))];
  }
  if (c.lengths.given()) ++counts_["rows of unequal length"];
  if (c.prefix.given()) ++counts_["shared prefixes"];
  if (c.numerics.acc == NumberFormat::bf16) ++counts_["acc bf16"];
  if (c.numerics.wire == NumberFormat::bf16)
    ++counts_[c.numerics.regime == Regime::f32 ? "wire bf16, regime f32" : "wire bf16, exact"];
  if (c.model.cache) ++counts_[fmt::format("cache {}", shardproof::to_string(*c.model.cache))];
  if (c.sampling.sample == Sample::random) ++counts_["sample random"];
  if (odd(X) || odd(Y) || odd(Z)) ++counts_["an odd axis of 3 or more"];
  if (c.model.block == Block::serial) ++counts_["serial blocks"];
  if (c.model.norm == Norm::layernorm) ++counts_["layernorm"];
  if (c.model.ffn != Ffn::swiglu) ++counts_["geglu or gelu"];
  if (c.model.bias != Bias::none) ++counts_["biases"];
  if (c.model.rope == Rope::interleaved) ++counts_["interleaved rope"];
  if (!c.model.tied) ++counts_["untied table"];
  if (c.model.rope == Rope::alibi) ++counts_["alibi"];
  if (c.model.unembed_bias) ++counts_["bias of the logits"];
  if (c.model.softmax == Softmax::base2) ++counts_["softmax of base 2"];
  if (c.model.preset != ModelConfig().preset) ++counts_["another preset"];
  if (c.pad_heads != 0) ++counts_["padded heads"];
  if (c.pad_vocab != 0) ++counts_["padded vocabulary"];
  for (const std::string& value : key_values_of(c)) ++values_[value];
  for (const std::string& cell : strata::cells_of(c)) ++cells_[cell];
  multiply_adds_.push_back(multiply_adds(c));
}

std::vector<Coverage::Requirement> Coverage::requirements() const {
  std::vector<Requirement> all{{"axes not all equal", 0, 50},
                               {"12 chips or more", 0, 30},
                               {"gen 3 or more", 0, 50},
                               {"an odd axis of 3 or more", 0, 20},
                               {"serial blocks", 0, 20},
                               {"layernorm", 0, 15},
                               {"geglu or gelu", 0, 20},
                               {"biases", 0, 20},
                               {"interleaved rope", 0, 10},
                               {"untied table", 0, 10},
                               {"alibi", 0, 5},
                               {"bias of the logits", 0, 10},
                               {"another preset", 0, 10},
                               {"softmax of base 2", 0, 10},
                               {"rows of unequal length", 0, 20},
                               {"shared prefixes", 0, 10},
                               {"padded heads", 0, 8},
                               {"padded vocabulary", 0, 8},
                               {"regime f32", 0, 15},
                               {"schedule group", 0, 2},
                               {"schedule ring", 0, 2},
                               {"schedule tree", 0, 2},
                               {"schedule biring", 0, 2},
                               {"acc bf16", 0, 5},
                               {"wire bf16, regime f32", 0, 10},
                               {"wire bf16, exact", 0, 3},
                               {"cache bf16", 0, 5},
                               {"cache f32", 0, 5},
                               {"sample random", 0, 15}};
  for (Requirement& r : all) {
    const auto at = counts_.find(r.name);
    const auto hits = at == counts_.end() ? std::int64_t{0} : at->second;
    r.share = cases_ == 0 ? 0.0 : 100.0 * static_cast<double>(hits) / static_cast<double>(cases_);
  }
  return all;
}

double Coverage::median_multiply_adds() const {
  if (multiply_adds_.empty()) return 0.0;
  std::vector<double> sorted = multiply_adds_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::string Coverage::to_string() const {
  std::string text = fmt::format("coverage of {} random cases\n", cases_);
  for (const Requirement& r : requirements())
    text += fmt::format("  {:<26}{:5.1f} %   (at least {:.0f} %)\n", r.name, r.share, r.demand);
  text += fmt::format("  {:<26}{:.1e}    (at most 5e+06)\n", "median multiply-adds",
                      median_multiply_adds());
  if (cases_ < kLeastCases) text += fmt::format("  (required of {} cases or more)\n", kLeastCases);
  text += fmt::format("  {:<26}{:>7} of {}, all of {} cases\n", "values of keys met",
                      all_key_values().size() - missing_values().size(), all_key_values().size(),
                      kAllValues);
  const auto& legal = strata::legal_cells();
  text += fmt::format(
      "  cells of strategy x four of weights, act, regime, loop and torus class, x block x\n"
      "  heads x chunked, and x regime x hand-over\n"
      "  {:<26}{:>7} of {}, at least {}\n",
      "met", cells_.size(), legal.size(), wanted_cells());
  for (const Strategy& s : all_strategies()) {
    std::int64_t all = 0, met = 0, cases = 0, least = cases_;
    for (const std::string& cell : legal) {
      if (!cell.starts_with(s.to_string() + " ")) continue;
      const auto at = cells_.find(cell);
      const std::int64_t hits = at == cells_.end() ? 0 : at->second;
      ++all, met += hits > 0, cases += hits, least = std::min(least, hits);
    }
    text += fmt::format("  {:<26}{:>7} of {} cells, {} cases, {} in the least\n", s.to_string(),
                        met, all, cases, least);
  }
  return text;
}

std::vector<std::string> Coverage::missing_values() const {
  std::vector<std::string> missing;
  for (const std::string& value : all_key_values())
    if (!values_.contains(value)) missing.push_back(value);
  return missing;
}

std::size_t Coverage::wanted_cells() const {
  const auto cases = static_cast<std::size_t>(cases_);
  return cases < strata::all_strata(0).size() ? cases : strata::legal_cells().size();
}

std::string Coverage::shortfall() const {
  if (cases_ > 0 && cases_ < kLeastCases) return "";
  for (const Requirement& r : requirements())
    if (r.share < r.demand)
      return fmt::format(
          "too little is covered: {} in {:.1f} % of the cases, at least {:.0f} % are required",
          r.name, r.share, r.demand);
  if (const auto missing = missing_values(); cases_ >= kAllValues && !missing.empty())
    return fmt::format("too little is covered: no case has {}", fmt::join(missing, "; none has "));
  if (cells_.size() < wanted_cells())
    for (const std::string& cell : strata::legal_cells())
      if (!cells_.contains(cell))
        return fmt::format(
            "too little is covered: {} cells are met, at least {} are required; none of '{}'",
            cells_.size(), wanted_cells(), cell);
  if (median_multiply_adds() > 5e6)
    return fmt::format("the median case has {:.1e} multiply-adds, at most 5e6 are required",
                       median_multiply_adds());
  return "";
}

}  // namespace shardproof::cases
