#include "golden/diagnosis/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "golden/bounds/tightness.h"
#include "golden/diagnosis/chips.h"
#include "weights/stable_sort.h"

namespace shardproof::diagnosis {
namespace {

/// Of each wrong chip some wrong elements, the first and the last among them.
std::vector<std::pair<int, std::size_t>> probes_of(const Question& q) {
  const std::size_t most = q.chips() == 1 ? 64 : 6;
  std::vector<std::pair<int, std::size_t>> probes;
  for (int chip = 0; chip < q.chips(); ++chip) {
    if (q.right(chip)) continue;
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < q.elements(); ++i)
      if (!q.fits(chip, i, q.expected_at(q.global(chip, i)), std::nullopt)) wrong.push_back(i);
    const std::size_t count = std::min(most, wrong.size());
    for (std::size_t n = 0; n < count; ++n)
      probes.emplace_back(chip, wrong[count == 1 ? 0 : n * (wrong.size() - 1) / (count - 1)]);
  }
  return probes;
}

std::size_t kind_of(std::string_view fault) {
  const auto& all = faults();
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), fault) - all.begin());
}

std::string named(const Question& q, const std::vector<int>& chips) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(chips.size(), 3); ++i)
    names += (i == 0 ? "" : ", ") + q.torus().name(chips[i]);
  if (chips.size() > 3) names += fmt::format(" and {} more", chips.size() - 3);
  return names;
}

}  // namespace

Search::Search(const Question& question)
    : question_(&question), probes_(probes_of(question)), unexplained_(0.0) {
  const Candidate none{
      .fault = "", .detail = "", .axes = "", .at = question.logical([&question](std::size_t g) {
        return question.expected_at(g);
      })};
  for (int chip = 0; chip < question.chips(); ++chip)
    for (std::size_t i = 0; i < question.elements(); ++i)
      unexplained_ = std::max(unexplained_, difference(question, none, chip, i));
}

void Search::turn_to(const Question& question) {
  question_ = &question;
  probes_ = probes_of(question);
  cut_ = true;
}

void Search::turn_back(const Question& question) {
  turn_to(question);
  cut_ = false;
}

double Search::difference(const Question& q, const Candidate& candidate, int chip,
                          std::size_t local) const {
  if (q.padded(chip, local)) return 0.0;
  const double d = std::abs(q.shard(chip)[local] - candidate.at(chip, local).center);
  // Of what is no number nothing is near.
  return std::isnan(d) ? bounds::kInfinity : d / (q.scale() > 0 ? q.scale() : 1.0);
}

void Search::consider(Candidate candidate) {
  const double bar = nearest_.size() < kNearest ? unexplained_ : nearest_.back().residual;
  bool possible = true;
  double residual = 0.0;
  for (const auto& [chip, local] : probes_) {
    const bounds::Evaluated number = candidate.at(chip, local);
    possible = possible && question_->fits(chip, local, number, candidate.format);
    residual = std::max(residual, difference(*question_, candidate, chip, local));
    if (!possible && residual >= bar) return;
  }
  if (possible && explains(candidate)) return;
  nearest_.push_back({question_, std::move(candidate), residual});
  stable_sort(nearest_, [](const Near& a, const Near& b) { return a.residual < b.residual; });
  if (nearest_.size() > kNearest) nearest_.pop_back();
}

bool Search::explains(const Candidate& candidate) {
  const Question& q = *question_;
  bool everywhere = true;
  std::vector<int> touched;
  std::vector<bool> fitting;
  double residual = 0.0, reach = 0.0;
  for (int chip = 0; chip < q.chips(); ++chip) {
    bool fits = true;
    double of_chip = 0.0, reach_of_chip = 0.0;
    for (std::size_t i = 0; i < q.elements() && fits; ++i) {
      if (q.padded(chip, i)) continue;
      const bounds::Evaluated number = candidate.at(chip, i);
      fits = q.fits(chip, i, number, candidate.format);
      of_chip = std::max(of_chip, difference(q, candidate, chip, i));
      reach_of_chip = std::max(reach_of_chip, number.radius);
      if (!std::isfinite(number.radius)) reach_of_chip = bounds::kInfinity;
    }
    if (!fits && !q.right(chip)) return false;
    fitting.push_back(fits);
    if (!fits) {
      everywhere = false;
      continue;
    }
    if (!q.right(chip)) touched.push_back(chip);
    residual = std::max(residual, of_chip);
    reach = std::max(reach, reach_of_chip);
  }
  if (!everywhere && !together(candidate, fitting)) return false;
  // What leaves more open than the value itself does explains anything. Of a value that is much
  // larger than it should be it may leave as much more, if nothing of it was fitted to the value.
  // Digits are evidence.
  const bool digits =
      candidate.format == bounds::Format::bf16 && q.format() != bounds::Format::bf16;
  const double scale = candidate.fitted ? q.scale() : std::max(q.scale(), q.scale_as_given());
  if (q.narrow() && reach > 0 && !bounds::narrow(reach, scale) && !digits) return false;
  Found found;
  found.everywhere = everywhere;
  found.site = candidate.site;
  found.kind = kind_of(candidate.fault);
  found.parameters = candidate.parameters + (cut_ ? 100 : 0);
  std::string detail = candidate.detail;
  if (cut_) detail += fmt::format("; if cut as {}", q.layout().to_string());
  if (!found.everywhere) detail += fmt::format("; on chips {} alone", named(q, touched));
  found.hypothesis = {std::string(candidate.fault), std::move(detail), candidate.axes, true,
                      residual};
  explaining_.push_back(std::move(found));
  return true;
}

bool Search::together(const Candidate& candidate, const std::vector<bool>& fits) const {
  const Question& q = *question_;
  if (candidate.together.empty()) return true;
  for (int chip = 0; chip < q.chips(); ++chip)
    for (int r = 0; r < q.torus().size(candidate.together) && !q.right(chip); ++r)
      if (!fits[static_cast<std::size_t>(with_block(q.torus(), chip, candidate.together, r))])
        return false;
  return true;
}

bool Search::explained_everywhere() const {
  return std::any_of(explaining_.begin(), explaining_.end(),
                     [](const Found& f) { return f.everywhere; });
}

std::vector<Hypothesis> Search::ranked() {
  stable_sort(explaining_, [](const Found& a, const Found& b) {
    return std::make_tuple(!a.everywhere, a.site == Site::none, a.kind, a.site, a.parameters) <
           std::make_tuple(!b.everywhere, b.site == Site::none, b.kind, b.site, b.parameters);
  });
  std::vector<Hypothesis> all;
  const auto add = [&](Hypothesis h) {
    // Of one fault about the same axes the simplest is enough.
    for (const Hypothesis& other : all)
      if (other.fault == h.fault && other.axes == h.axes) return;
    all.push_back(std::move(h));
  };
  for (Found& found : explaining_) add(std::move(found.hypothesis));
  if (!all.empty()) return all;
  for (Near& near : nearest_) {
    const Question& q = *near.question;
    near.residual = 0.0;
    for (int chip = 0; chip < q.chips(); ++chip)
      for (std::size_t i = 0; i < q.elements() && near.residual < unexplained_; ++i)
        near.residual = std::max(near.residual, difference(q, near.candidate, chip, i));
  }
  stable_sort(nearest_, [](const Near& a, const Near& b) { return a.residual < b.residual; });
  for (Near& near : nearest_)
    if (near.residual < unexplained_)
      add({std::string(near.candidate.fault), near.candidate.detail, near.candidate.axes, false,
           near.residual});
  return all;
}

}  // namespace shardproof::diagnosis
