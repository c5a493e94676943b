#include "golden/bounds/number/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

namespace shardproof::bounds {
namespace {

constexpr double kSeen = 10.0;  // t of T3's λ: 2^-71
constexpr const char* kTail = "below what a right order could hide, but not by chance";

/// Σw·r, compared with its distribution under random signs.
struct Test {
  double sum = 0.0, squares = 0.0, weights = 0.0;

  void see(double weight, double residue) {
    sum += weight * residue;
    squares += weight * weight * residue * residue;
    weights += weight * weight;
  }
  double t() const { return squares > 0 ? std::abs(sum) / std::sqrt(squares) : 0.0; }
  /// Returns the least-squares factor of w in r.
  double slope() const { return weights > 0 ? sum / weights : 0.0; }
};

/// Sum of n squared errors, each divided by at least its standard deviation. As for a chi-square it
/// exceeds n + 2√(n·x) + 2x with a probability of at most exp(−x) (Laurent and Massart 2000, lemma
/// 1); x = t²/2.
struct Energy {
  double sum = 0.0, count = 0.0;

  void see(double deviations) {
    sum += deviations * deviations;
    ++count;
  }
  double t() const {
    const double under = 2 * sum - count;
    return under > count ? (std::sqrt(under) - std::sqrt(count)) / std::sqrt(2.0) : 0.0;
  }
};

/// A test and where it was made: "", "head 3: ", "row 5: ".
struct Found {
  std::string where;
  Test test;
};

/// Returns whether two rows (or columns) have the same bits.
template <class At>
bool repeat(std::size_t count, std::size_t length, At&& exact) {
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words
    for (std::size_t k = 0; k < length; ++k) {
      hash = (hash ^ std::bit_cast<std::uint64_t>(exact(i, k))) * 0x100000001b3;
      hash ^= hash >> 29;
    }
    if (!seen.insert(hash).second) return true;
  }
  return false;
}

class Tests {
 public:
  explicit Tests(const Residues& of) : of_(of) {}

  /// Returns the test with the largest t over the whole value, its heads, rows and columns;
  /// weight(i) is the w of element i.
  template <class Weight>
  Found most(Weight&& weight) const {
    Found best{"", {}};
    std::vector<Test> rows(of_.rows), columns(of_.columns);
    std::vector<Test> heads(of_.head == 0 ? 0 : of_.columns / of_.head);
    for (std::size_t i = 0; i < of_.residue.size(); ++i) {
      const double w = weight(i), r = of_.residue[i];
      const std::size_t column = i % of_.columns;
      best.test.see(w, r);
      rows[i / of_.columns].see(w, r);
      columns[column].see(w, r);
      if (of_.head != 0 && column / of_.head < heads.size()) heads[column / of_.head].see(w, r);
    }
    take(best, "head", heads);
    take(best, "row", rows);
    take(best, "column", columns);
    return best;
  }

  /// Describes the row or column whose errors most exceed what any order allows, or returns "".
  std::string energy() const {
    const Loudest row = loudest(true), column = loudest(false);
    const bool of_row = row.t >= column.t;
    const Loudest& most = of_row ? row : column;
    if (!(most.t > kSeen)) return "";
    const char* const what = of_row ? "row" : "column";
    return fmt::format(
        "{} {}: its errors are {:.2g} times those of the {}s' median (t={:.0f}): "
        "not by chance",
        what, most.number, most.times_median, what, most.t);
  }

 private:
  struct Loudest {
    std::ptrdiff_t number = 0;
    double t = 0.0, times_median = 0.0;
  };
  Loudest loudest(bool of_rows) const {
    std::vector<Energy> energies(of_rows ? of_.rows : of_.columns);
    for (std::size_t i = 0; i < of_.residue.size(); ++i)
      if (of_.deviation[i] > 0)
        energies[of_rows ? i / of_.columns : i % of_.columns].see(of_.residue[i] /
                                                                  of_.deviation[i]);
    const auto less = [](const Energy& a, const Energy& b) { return a.sum < b.sum; };
    const auto largest = std::max_element(energies.begin(), energies.end(), less);
    const Energy most = *largest;
    const auto number = largest - energies.begin();
    const auto middle = energies.begin() + std::ssize(energies) / 2;
    std::nth_element(energies.begin(), middle, energies.end(), less);
    return {number, most.t(), std::sqrt(most.sum / middle->sum)};
  }
  static void take(Found& best, const char* what, const std::vector<Test>& tests) {
    for (std::size_t i = 0; i < tests.size(); ++i)
      if (tests[i].t() > best.test.t()) best = {fmt::format("{} {}: ", what, i), tests[i]};
  }

  const Residues& of_;
};

double root_mean_square(const std::vector<double>& of) {
  double squares = 0.0;
  for (const double v : of) squares += v * v;
  return std::sqrt(squares / static_cast<double>(of.size()));
}

std::string scale_text(const Found& f, double truncation) {
  const std::string off =
      fmt::format("{}scale off by {:+.1e} (t={:.0f})", f.where, f.test.slope(), f.test.t());
  if (f.test.slope() < 0 && -f.test.slope() <= truncation) return "sums truncate: " + off;
  return fmt::format("{}: {}", off, kTail);
}

}  // namespace

std::vector<std::string> signs(const Residues& of) {
  std::vector<std::string> texts;
  if (of.rows < 2 || of.columns < 2) return texts;
  const auto in_row = [&](std::size_t i, std::size_t k) { return of.exact[i * of.columns + k]; };
  const auto in_column = [&](std::size_t i, std::size_t k) { return in_row(k, i); };
  if (repeat(of.rows, of.columns, in_row) || repeat(of.columns, of.rows, in_column)) return texts;
  const Tests tests(of);
  const Found scale = tests.most([&](std::size_t i) { return of.exact[i]; });
  if (scale.test.t() > kSeen) texts.push_back(scale_text(scale, of.truncation));
  const Found bias = tests.most([](std::size_t) { return 1.0; });
  if (bias.test.t() > kSeen)
    texts.push_back(fmt::format("{}off by {:+.1e} of the rms (t={:.0f}): {}", bias.where,
                                bias.test.slope() / root_mean_square(of.exact), bias.test.t(),
                                kTail));
  if (of.deviation.empty()) return texts;
  if (std::string text = tests.energy(); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

}  // namespace shardproof::bounds
