#include "golden/rerun/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/bounds/number/sum_bounds.h"

namespace shardproof::rerun {
namespace {

/// Formats two digits, and the exponent without leading zeros: "1.1e-6".
std::string scientific(double v) {
  std::string text = fmt::format("{:.1e}", v);
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;  // infinity, NaN
  if (v >= 0.1 && v < 1000) return fmt::format("{:.2g}", v);
  std::string digits = text.substr(exponent + 1);
  const bool negative = digits[0] == '-';
  digits.erase(0, digits.find_first_not_of("+-0"));
  return digits.empty()
             ? text.substr(0, exponent)
             : fmt::format("{}e{}{}", text.substr(0, exponent), negative ? "-" : "", digits);
}

/// Formats a factor: "1.4 million", "35".
std::string in_words(double times) {
  if (times >= 1e12) return scientific(times);
  if (times >= 999.5e6) return fmt::format("{:.2g} billion", times / 1e9);
  if (times >= 999.5e3) return fmt::format("{:.2g} million", times / 1e6);
  return fmt::format("{:.0f}", times);
}

double root_mean_square(const std::vector<double>& of) {
  double squares = 0.0;
  for (const double v : of) squares += v * v;
  return of.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(of.size()));
}

}  // namespace

double Evidence::limit() const { return bounds::kLambda * std::max(rms, rough); }

std::string Evidence::text() const {
  const std::string own = "drift " + scientific(drift);
  if (runs == 0) return own + "; no run of the same kind to compare with: unclear";
  if (!std::isfinite(limit())) return fmt::format("{}; such runs overflow: unclear", own);
  const std::string edges = fmt::format("not rounding above {}", scientific(limit()));
  const std::string theirs =
      fmt::format("{}; {} such runs: {} to {}", own, runs, scientific(least), scientific(most));
  switch (says) {
    case Says::rounding:
      return theirs + ": rounding";
    case Says::unclear:
      return fmt::format("{}, {}: unclear", theirs, edges);
    case Says::not_rounding:
      break;
  }
  if (limit() == 0 || !std::isfinite(drift))
    return fmt::format("{}: not rounding (above {})", theirs, scientific(limit()));
  return fmt::format("{}, {} times theirs ({} to {}): not rounding (above {})", own,
                     in_words(drift / std::max(rms, rough)), scientific(least), scientific(most),
                     scientific(limit()));
}

Evidence weigh(double drift, const std::vector<double>& theirs,
               const std::vector<double>& by_chance) {
  Evidence e;
  e.drift = drift;
  e.runs = static_cast<int>(theirs.size());
  if (theirs.empty()) return e;
  const auto [least, most] = std::minmax_element(theirs.begin(), theirs.end());
  e.least = *least;
  e.most = *most;
  e.rms = root_mean_square(theirs);
  e.rough = root_mean_square(by_chance);
  if (!std::isfinite(e.most) || !std::isfinite(e.rough)) return e;
  if (drift <= e.most)
    e.says = Evidence::Says::rounding;
  else if (!(drift <= e.limit()))  // NaN, too
    e.says = Evidence::Says::not_rounding;
  return e;
}

}  // namespace shardproof::rerun
