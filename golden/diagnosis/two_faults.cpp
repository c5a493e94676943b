#include "golden/diagnosis/detail/two_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "golden/bounds/number/interval.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// The most numbers of a value times its parts: each part is searched by itself.
constexpr std::size_t kMostNumbers = 8192;

/// A part of a value: the shard of a chip, or a row.
struct WrongPart {
  std::string name;
  Wrong alone;  ///< the value of which all else is right, or not judged
  std::vector<Hypothesis> said = {};
};

/// Returns the value in which all chips but one have what is right.
Wrong of_chip(const Question& q, const Wrong& wrong, int chip) {
  Wrong alone = wrong;
  for (int other = 0; other < q.chips(); ++other)
    for (const std::size_t i : q.judged(other))
      if (const bounds::FunctionValue right = q.expected_at(q.global(other, i));
          other != chip && !open(right))
        alone.shards[at(other)][i] = bounds::nearest(right.center, q.format());
  return alone;
}

/// Returns the value of which only a row is judged.
Wrong of_row(const Question& q, const Wrong& wrong, std::size_t row) {
  Wrong alone = wrong;
  const std::size_t inner = inner_of(q.shape(), 0);
  alone.padding.resize(at(element_count(q.shape())), false);
  for (std::size_t g = 0; g < alone.padding.size(); ++g)
    if (g / inner != row) alone.padding[g] = true;
  return alone;
}

/// Returns the chips whose shards are wrong, as parts.
std::vector<WrongPart> wrong_chips(const Question& q, const Wrong& wrong) {
  std::vector<WrongPart> parts;
  for (int chip = 0; chip < q.chips(); ++chip)
    if (!q.right(chip)) parts.push_back({"chip " + q.torus().name(chip), of_chip(q, wrong, chip)});
  return parts;
}

/// Returns the rows that are wrong on some chip, as parts; none of a value without rows.
std::vector<WrongPart> wrong_rows(const Question& q, const Wrong& wrong) {
  if (!q.step().lines().back().letters.starts_with("B")) return {};
  std::vector<bool> off(at(q.shape()[0]), false);
  for (int chip = 0; chip < q.chips(); ++chip)
    for (const std::size_t i : q.judged(chip))
      if (!q.right(chip, i)) off[q.global(chip, i) / inner_of(q.shape(), 0)] = true;
  std::vector<WrongPart> parts;
  for (std::size_t row = 0; row < off.size(); ++row)
    if (off[row]) parts.push_back({fmt::format("row {}", row), of_row(q, wrong, row)});
  return parts;
}

/// Returns what is said of a part alone without the words that only say that.
std::string fault_of(const Hypothesis& h) {
  const std::string detail = h.detail.substr(0, h.detail.find("; on chips "));
  return fmt::format("{}\n{}\n{}", h.fault, detail, h.axes);
}

const Hypothesis* with(const WrongPart& part, const std::string& fault) {
  for (const Hypothesis& h : part.said)
    if (h.explains && fault_of(h) == fault) return &h;
  return nullptr;
}

/// Returns the fault of the parts that have it, as one of two.
Hypothesis one_of_two(const std::vector<const WrongPart*>& parts, const std::string& fault) {
  Hypothesis h = *with(*parts[0], fault);
  std::string names;
  for (const WrongPart* const part : parts) {
    const Hypothesis& own = *with(*part, fault);
    h.residual = std::max(h.residual, own.residual);
    h.left = std::max(h.left, own.left);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i)
    names += (i == 0 ? "" : ", ") + parts[i]->name;
  if (parts.size() > 3) names += fmt::format(" and {} more", parts.size() - 3);
  h.detail = fmt::format("{}; one of two faults, that of {}",
                         h.detail.substr(0, h.detail.find("; on chips ")), names);
  return h;
}

/// Returns two faults of which each part has one, the first that are found; none if there are none.
std::vector<Hypothesis> two_of(const std::vector<WrongPart>& parts) {
  for (const Hypothesis& first : parts[0].said) {
    if (!first.explains) continue;
    std::vector<const WrongPart*> have, others;
    for (const WrongPart& part : parts)
      (with(part, fault_of(first)) != nullptr ? have : others).push_back(&part);
    if (others.empty()) continue;
    for (const Hypothesis& second : others[0]->said)
      if (second.explains && std::all_of(others.begin(), others.end(), [&](const WrongPart* part) {
            return with(*part, fault_of(second)) != nullptr;
          }))
        return {one_of_two(have, fault_of(first)), one_of_two(others, fault_of(second))};
  }
  return {};
}

}  // namespace

std::vector<Hypothesis> two_faults(const Question& q, const Wrong& wrong, const Diagnose& one) {
  if (!q.summed().empty() || q.of_weight()) return {};
  for (auto* const parts_of : {&wrong_chips, &wrong_rows}) {
    std::vector<WrongPart> parts = (*parts_of)(q, wrong);
    if (parts.size() < 2 || q.expected().size() * parts.size() > kMostNumbers) continue;
    bool any = true;
    for (WrongPart& part : parts) {
      // One that nothing explains has neither of two faults.
      if (any) part.said = one(part.alone);
      any = any && !part.said.empty() && part.said[0].explains;
    }
    if (!any) continue;
    if (std::vector<Hypothesis> two = two_of(parts); !two.empty()) return two;
  }
  return {};
}

}  // namespace shardproof::diagnosis
