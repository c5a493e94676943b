#include "golden/diagnosis/detail/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "golden/bounds/number/fit.h"
#include "golden/diagnosis/detail/chips.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

/// Candidates kept until the nearest are known: some predict the same numbers.
constexpr std::size_t kKept = 25;

std::size_t kind_of(std::string_view fault) {
  const auto& all = faults();
  return at(std::find(all.begin(), all.end(), fault) - all.begin());
}

std::string named(const Question& q, const std::vector<int>& chips) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(chips.size(), 3); ++i)
    names += (i == 0 ? "" : ", ") + q.torus().name(chips[i]);
  if (chips.size() > 3) names += fmt::format(" and {} more", chips.size() - 3);
  return names;
}

/// Returns "decode.1.layer0" or "decode.1".
std::string where(const Question& q) { return q.id().substr(0, q.id().rfind('.')); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t i = text.find(from); i != text.npos; i = text.find(from, i + to.size()))
    text.replace(i, from.size(), to);
  return text;
}

/// Returns a name without the candidate's own pass and layer, valid for other values, too.
std::string name_of(const Question& q, const Candidate& c) {
  const std::string detail = replaced(c.detail, q.place().pass + ".", "pass.");
  return fmt::format("{}: {} [{}]", c.fault,
                     replaced(detail, fmt::format("layer{}.", q.place().layer), "layer."), c.axes);
}

Candidate no_fault(const Question& q) {
  return {
      .fault = "", .detail = "", .at = q.logical([&q](std::size_t g) { return q.expected_at(g); })};
}

}  // namespace

Search::Search(const Question& question, std::string_view without)
    : question_(&question), without_(without) {
  find_wrong();
  none_ = *measure(question, no_fault(question), true);
}

Search::Search(const Question& question, std::vector<std::string> names) : Search(question) {
  only_ = std::move(names);
}

/// Chooses wrong elements of each wrong chip as probes, the first and the last included.
void Search::find_wrong() {
  const Question& q = *question_;
  const std::size_t most = q.chips() == 1 ? 64 : 6;
  wrong_.assign(at(q.chips()), {});
  probes_.clear();
  for (int chip = 0; chip < q.chips(); ++chip) {
    if (q.right(chip)) continue;
    auto& flags = wrong_[at(chip)];
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < q.elements(); ++i) {
      flags.push_back(!q.right(chip, i));
      if (flags.back()) wrong.push_back(i);
    }
    const std::size_t count = std::min(most, wrong.size());
    for (std::size_t n = 0; n < count; ++n)
      probes_.emplace_back(chip, wrong[count == 1 ? 0 : n * (wrong.size() - 1) / (count - 1)]);
  }
}

void Search::turn_to(const Question& question) {
  question_ = &question;
  find_wrong();
  cut_ = true;
}

void Search::turn_back(const Question& question) {
  turn_to(question);
  cut_ = false;
}

bool Search::wants(const Candidate& candidate) const {
  if (redirected_) return true;
  if (candidate.fault == without_) return false;
  return !only_ ||
         std::find(only_->begin(), only_->end(), name_of(*question_, candidate)) != only_->end();
}

double Search::difference(const Question& q, const Candidate& candidate,
                          const bounds::FunctionValue& number, int chip, std::size_t local) const {
  // If the fault rounds on the way, the rounded number would be found in the dump.
  double center = number.center;
  if (candidate.format && *candidate.format != q.format())
    center = bounds::values({center, center}, *candidate.format).low;
  const double d = std::abs(q.shard(chip)[local] - center);
  // NaN: every candidate is infinitely far.
  if (std::isnan(d)) return bounds::kInfinity;
  return d;
}

std::optional<Search::Measured> Search::measure(const Question& q, const Candidate& candidate,
                                                bool all) const {
  Measured found;
  const double scale = q.scale() > 0 ? q.scale() : 1.0;
  for (int chip = 0; chip < q.chips(); ++chip) {
    bool fits = true;
    Measured of_chip;
    for (std::size_t i = 0; i < q.elements() && (fits || all); ++i) {
      if (q.padded(chip, i)) continue;
      const bounds::FunctionValue number = candidate.at(chip, i);
      const bool counts = !q.right(chip) && wrong_[at(chip)][i];
      if (open(number)) {
        of_chip.open += counts ? 1U : 0U;
        continue;
      }
      of_chip.closed += counts ? 1U : 0U;
      fits = fits && q.fits(chip, i, number, candidate.format);
      const double d = difference(q, candidate, number, chip, i);
      const double own = bounds::unit_of(q.format()) * std::abs(q.shard(chip)[i]);
      of_chip.residual = std::max(of_chip.residual, d / scale);
      of_chip.excess = std::max(of_chip.excess, std::max(d - own, 0.0) / scale);
      of_chip.reach = std::max(of_chip.reach, number.radius);
    }
    if (!fits && !q.right(chip) && !all) return std::nullopt;
    found.fits.push_back(fits);
    if (!fits && !all) continue;  // a right chip without the fault
    found.residual = std::max(found.residual, of_chip.residual);
    found.excess = std::max(found.excess, of_chip.excess);
    found.reach = std::max(found.reach, of_chip.reach);
    found.closed += of_chip.closed;
    found.open += of_chip.open;
  }
  return found;
}

void Search::consider(Candidate candidate) {
  if (redirected_) {
    const auto to = std::exchange(redirected_, nullptr);
    to(std::move(candidate));
    redirected_ = to;
    return;
  }
  if (!wants(candidate)) return;
  if (only_) return try_here(candidate);
  const double scale = question_->scale() > 0 ? question_->scale() : 1.0;
  const double bar = nearest_.size() < kKept ? kLeft * none_.residual : nearest_.back().residual;
  bool possible = true, any = false;
  double residual = 0.0;
  for (const auto& [chip, local] : probes_) {
    const bounds::FunctionValue number = candidate.at(chip, local);
    if (open(number)) continue;
    any = true;
    possible = possible && question_->fits(chip, local, number, candidate.format);
    residual = std::max(residual, difference(*question_, candidate, number, chip, local) / scale);
    if (!possible && residual >= bar) return;
  }
  if (!any || (possible && explains(candidate)) || residual >= bar) return;
  candidate.refuted = nullptr;  // and what it holds
  nearest_.push_back({question_, std::move(candidate), residual});
  stable_sort(nearest_, [](const Near& a, const Near& b) { return a.residual < b.residual; });
  if (nearest_.size() > kKept) nearest_.pop_back();
}

/// On a right value a candidate holds if its prediction fits all chips.
void Search::try_here(const Candidate& candidate) {
  const Question& q = *question_;
  const Measured found = *measure(q, candidate, true);
  bool holds = true;
  for (int chip = 0; chip < q.chips(); ++chip)
    holds = holds && (found.fits[at(chip)] || (q.right(chip) && !q.right()));
  if (holds && !q.right() && !says_enough(candidate, found)) return;
  bool& known = trials_.try_emplace(name_of(q, candidate), false).first->second;
  known = known || holds;
}

/// Requires that the prediction determines at least a tenth of the wrong elements.
bool Search::predicts_enough(const Measured& found) {
  const auto closed = static_cast<double>(found.closed), open = static_cast<double>(found.open);
  return closed > 0 && closed >= kLeft * (closed + open);
}

/// Rejects predictions that leave too much open, because those explain anything. A prediction may
/// leave open what is narrow at the scale of the expected value, or, if nothing was fitted, of a
/// larger given value. A wider one must come as near as the nearest candidates that are listed when
/// nothing explains the value, and leave open no more than they may leave unexplained, of that
/// scale; or, if nothing was fitted, it must come so near that its own distance is narrow. The
/// rounding of the value itself does not count as unexplained.
bool Search::says_enough(const Candidate& candidate, const Measured& found) const {
  const Question& q = *question_;
  if (!predicts_enough(found)) return false;
  const double scale = candidate.fitted ? q.scale() : std::max(q.scale(), q.scale_as_given());
  if (found.reach == 0 || bounds::narrow(found.reach, scale)) return true;
  if (!(found.excess <= kLeft * none_.excess)) return false;
  const double off = none_.residual * q.scale();
  const bool near =
      !candidate.fitted && bounds::narrow(found.excess * q.scale(), std::max(q.scale(), off));
  return near || found.reach <= kLeft * (candidate.fitted ? std::min(off, scale) : off);
}

bool Search::explains(const Candidate& candidate) {
  const Question& q = *question_;
  const std::optional<Measured> measured = measure(q, candidate, false);
  if (!measured || !says_enough(candidate, *measured)) return false;
  std::vector<int> touched;
  bool everywhere = true;
  for (int chip = 0; chip < q.chips(); ++chip) {
    everywhere = everywhere && measured->fits[at(chip)];
    if (!q.right(chip)) touched.push_back(chip);
  }
  if (!everywhere && !together(candidate, measured->fits)) return false;
  if (everywhere && candidate.refuted && candidate.refuted()) return true;
  Found found;
  found.everywhere = everywhere;
  found.site = candidate.site;
  found.kind = kind_of(candidate.fault);
  found.parameters = candidate.parameters + (cut_ ? 100 : 0);
  if (!cut_) found.name = name_of(q, candidate);
  std::string detail = candidate.detail;
  if (cut_) detail += fmt::format("; if cut as {}", q.layout().to_string());
  if (!found.everywhere) detail += fmt::format("; on chips {} alone", named(q, touched));
  found.hypothesis = {std::string(candidate.fault), std::move(detail), candidate.axes, true,
                      measured->residual};
  found.hypothesis.left = none_.residual > 0 ? measured->residual / none_.residual : 0.0;
  explaining_.push_back(std::move(found));
  return true;
}

bool Search::together(const Candidate& candidate, const std::vector<bool>& fits) const {
  const Question& q = *question_;
  if (candidate.together.empty()) return true;
  for (int chip = 0; chip < q.chips(); ++chip)
    for (int r = 0; r < q.torus().size(candidate.together) && !q.right(chip); ++r)
      if (!fits[at(with_block(q.torus(), chip, candidate.together, r))]) return false;
  return true;
}

bool Search::explained_everywhere() const {
  return std::any_of(explaining_.begin(), explaining_.end(),
                     [](const Found& f) { return f.everywhere; });
}

std::vector<std::string> Search::names() const {
  std::vector<std::string> names;
  for (const Found& found : explaining_)
    if (!found.name.empty()) names.push_back(found.name);
  return names;
}

void Search::see(const Question& other, const Trials& trials) {
  for (Found& found : explaining_) {
    const auto tried = trials.find(found.name);
    if (tried == trials.end()) continue;
    if (tried->second)
      found.confirmed = found.confirmed || !other.right();
    else if (std::string& refuted = other.right() ? found.unchanged : found.otherwise;
             refuted.empty())
      refuted = where(other);
  }
}

int Search::Found::tier() const {
  if (!otherwise.empty()) return 2;
  return confirmed && unchanged.empty() ? 0 : 1;
}

std::vector<Hypothesis> Search::ranked() {
  stable_sort(explaining_, [](const Found& a, const Found& b) {
    return std::make_tuple(a.tier(), !a.everywhere, a.site == Site::none, a.kind, a.site,
                           a.parameters) < std::make_tuple(b.tier(), !b.everywhere,
                                                           b.site == Site::none, b.kind, b.site,
                                                           b.parameters);
  });
  if (explaining_.empty()) return nearest();
  const int best = explaining_[0].tier();
  std::vector<Hypothesis> all;
  for (Found& found : explaining_) {
    const bool refuted = found.tier() == 2 || !found.unchanged.empty();
    // Once a candidate holds everywhere, refuted ones are dropped.
    if ((best == 0 && refuted) || (best < 2 && found.tier() == 2)) continue;
    Hypothesis& h = found.hypothesis;
    const bool known = std::any_of(all.begin(), all.end(), [&](const Hypothesis& other) {
      return other.fault == h.fault && other.axes == h.axes;
    });
    if (known) continue;  // one explanation per fault and axes: the simplest
    if (found.tier() == 2) {
      h.explains = false;
      h.detail += fmt::format("; but {} is wrong in another way", found.otherwise);
    } else if (refuted) {
      h.detail += found.confirmed ? fmt::format("; not so in {}", found.unchanged)
                                  : fmt::format("; in {} alone", where(*question_));
    }
    all.push_back(std::move(h));
  }
  return all;
}

std::vector<double> Search::predicted(const Near& near) const {
  std::vector<double> all;
  for (int chip = 0; chip < near.question->chips(); ++chip)
    for (std::size_t i = 0; i < near.question->elements(); ++i)
      if (!near.question->padded(chip, i)) all.push_back(near.candidate.at(chip, i).center);
  return all;
}

std::vector<Hypothesis> Search::nearest() {
  const Question* const given = question_;
  std::vector<Near> near;
  for (Near& one : nearest_) {
    turn_to(*one.question);
    const Measured found = *measure(*one.question, one.candidate, true);
    one.residual = found.residual;
    if (predicts_enough(found) && one.residual <= kLeft * none_.residual)
      near.push_back(std::move(one));
  }
  turn_to(*given);
  stable_sort(near, [](const Near& a, const Near& b) { return a.residual < b.residual; });
  std::vector<Hypothesis> all;
  std::vector<std::vector<double>> numbers;
  for (const Near& one : near) {
    std::vector<double> own = predicted(one);
    bool known = false;
    for (std::size_t i = 0; i < all.size() && !known; ++i) {
      if (all[i].fault != one.candidate.fault) continue;
      known = all[i].axes == one.candidate.axes || numbers[i] == own;
      // Axes of equal size predict the same numbers.
      if (all[i].axes != one.candidate.axes && known)
        all[i].detail += fmt::format("; likewise over {}", one.candidate.axes);
    }
    if (known || all.size() == kNearest) continue;
    all.push_back({std::string(one.candidate.fault), one.candidate.detail, one.candidate.axes,
                   false, one.residual, one.residual / none_.residual});
    numbers.push_back(std::move(own));
  }
  return all;
}

}  // namespace shardproof::diagnosis
