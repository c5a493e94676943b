#include "golden/bounds/number/fit.h"

#include <array>
#include <cmath>
#include <utility>

#include "golden/bounds/number/interval.h"

namespace shardproof::bounds {
namespace {

constexpr std::array<std::pair<Fit, std::string_view>, 8> kWords{
    {{Fit::equal, "equal"},
     {Fit::within, "within"},
     {Fit::likely_within, "within 1-2^-41"},
     {Fit::near, "near"},
     {Fit::loose, "loose"},
     {Fit::unlikely, "unlikely"},
     {Fit::different, "different"},
     {Fit::not_judged, "not judged"}}};

}  // namespace

std::string_view to_string(Fit fit) { return kWords[static_cast<std::size_t>(fit)].second; }

std::optional<Fit> parse_fit(std::string_view word) {
  for (const auto& [fit, of] : kWords)
    if (of == word) return fit;
  return std::nullopt;
}

bool narrow(double distance, double scale) {
  return std::isfinite(scale) && distance <= kNarrow * scale;  // false for NaN
}

double relative(double distance, double scale) {
  if (distance == 0) return 0.0;
  return scale > 0 ? distance / scale : kInfinity;
}

Fit fit_of(const Extent& e) {
  if (e.outside) return Fit::different;
  if (e.outside_likely) return Fit::unlikely;
  if (narrow(e.worst, e.scale)) return Fit::within;
  if (narrow(e.likely, e.scale)) return Fit::likely_within;
  if (narrow(e.found, e.scale)) return Fit::near;
  // A bound as wide as the value itself would accept anything.
  return std::isfinite(e.scale) && e.worst < e.scale ? Fit::loose : Fit::not_judged;
}

}  // namespace shardproof::bounds
