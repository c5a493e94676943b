#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Tries candidates; keeps those that explain the value, and the nearest of the others.
class Search {
 public:
  /// How many candidates are listed if none explains the value, and the largest share of the
  /// difference that each may leave.
  static constexpr std::size_t kNearest = 5;
  static constexpr double kLeft = 0.1;
  /// Results of candidates at another value, by name: whether they hold. Undecided ones are absent.
  using Trials = std::map<std::string, bool>;

  /// Searches `question` until turn_to() changes it; it must outlive all candidates tried with it.
  /// Candidates of the kind `without` are not tried.
  explicit Search(const Question& question, std::string_view without = "");
  /// Tries only candidates of these names, and records for each whether it holds for the value,
  /// right or wrong.
  Search(const Question& question, std::vector<std::string> names);
  /// Continues with the same value under another cut.
  void turn_to(const Question& question);
  /// Returns to the value as given.
  void turn_back(const Question& question);

  /// Returns whether a candidate is to be tried; check it first if its prediction is expensive.
  bool wants(const Candidate& candidate) const;
  void consider(Candidate candidate);
  /// Until called with an empty function, candidates are those of another value: each goes to `to`,
  /// which considers what follows from it for this one.
  void redirect(std::function<void(Candidate)> to) { redirected_ = std::move(to); }
  /// Returns whether a candidate explains the value, on all chips or on the wrong ones only.
  bool explained() const { return !explaining_.empty(); }
  /// Returns whether a candidate explains the value on all chips.
  bool explained_everywhere() const;
  /// Returns the names of the explanations as given, which other values may confirm or refute.
  std::vector<std::string> names() const;
  const Trials& trials() const { return trials_; }
  /// Records the results of trials at another value.
  void see(const Question& other, const Trials& trials);
  std::vector<Hypothesis> ranked();

 private:
  struct Found {
    Hypothesis hypothesis;
    std::string name;
    bool everywhere = true;  ///< false: only on some chips, and the others are right
    Site site = Site::declared;
    std::size_t kind = 0;
    int parameters = 0;
    // Trials at other values: it explains a wrong one; it would change a right one; it does not
    // explain a wrong one.
    bool confirmed = false;
    std::string unchanged, otherwise;  ///< where; "" if nowhere
    /// 0: holds at all other values tried; 1: not known to; 2: another is wrong in another way.
    int tier() const;
  };
  struct Near {
    const Question* question;
    Candidate candidate;
    double residual;  ///< at the probes
  };
  /// A prediction compared with the value.
  struct Measured {
    std::vector<bool> fits;  ///< per chip
    double residual = 0.0, reach = 0.0;
    double excess = 0.0;               ///< residual beyond the value's own rounding
    std::size_t closed = 0, open = 0;  ///< wrong elements that are predicted, and those left open
  };
  void find_wrong();
  void try_here(const Candidate& candidate);
  /// Returns nullopt if the candidate fails on a wrong chip and `all` is false.
  std::optional<Measured> measure(const Question& question, const Candidate& candidate,
                                  bool all) const;
  /// Lists a candidate that explains the value; returns whether it does so, be it refuted or not.
  bool explains(const Candidate& candidate);
  static bool predicts_enough(const Measured& found);
  bool says_enough(const Candidate& candidate, const Measured& found) const;
  bool together(const Candidate& candidate, const std::vector<bool>& fits) const;
  double difference(const Question& question, const Candidate& candidate,
                    const bounds::FunctionValue& number, int chip, std::size_t local) const;
  std::vector<Hypothesis> nearest();
  std::vector<double> predicted(const Near& near) const;

  const Question* question_;
  std::string_view without_;
  std::vector<std::vector<bool>> wrong_;             // wrong elements, per chip
  std::vector<std::pair<int, std::size_t>> probes_;  // a sample of the wrong elements
  Measured none_;                                    // without a fault
  std::vector<Found> explaining_;
  std::vector<Near> nearest_;
  bool cut_ = false;                              // under another cut than given
  std::optional<std::vector<std::string>> only_;  // if set, only these names are tried
  Trials trials_;
  std::function<void(Candidate)> redirected_;
};

}  // namespace shardproof::diagnosis
