#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Tries candidates and keeps those that explain the value, and the nearest of the others.
class Search {
 public:
  /// How many are listed that explain nothing, and the share of the difference that each of them
  /// leaves at most.
  static constexpr std::size_t kNearest = 5;
  static constexpr double kLeft = 0.1;
  /// Of candidates, by name: whether they hold of a value. Those of which it cannot be told are not
  /// there.
  using Trials = std::map<std::string, bool>;

  /// Looks at `question` until told otherwise; it must outlive what is tried with it.
  explicit Search(const Question& question);
  /// Tries only candidates of these names, and keeps of each whether it holds of the value, right
  /// or wrong.
  Search(const Question& question, std::vector<std::string> names);
  /// The same value, cut otherwise.
  void turn_to(const Question& question);
  /// Again as given.
  void turn_back(const Question& question);

  /// Whether a candidate is to be considered at all: making its prediction may be dear.
  bool wants(const Candidate& candidate) const;
  void consider(Candidate candidate);
  /// Whether something explains the value, on all chips or on the wrong ones.
  bool explained() const { return !explaining_.empty(); }
  /// On all chips.
  bool explained_everywhere() const;
  /// The names of what explains the value as it was given, which other values may hold or refute.
  std::vector<std::string> names() const;
  const Trials& trials() const { return trials_; }
  /// What became of these names where they were tried with another value.
  void see(const Question& other, const Trials& trials);
  std::vector<Hypothesis> ranked();

 private:
  struct Found {
    Hypothesis hypothesis;
    std::string name;
    bool everywhere = true;  ///< or only on some chips, and the others are right
    Site site = Site::declared;
    std::size_t kind = 0;
    int parameters = 0;
    // Of other values: it holds of wrong ones; would change right ones; is not what wrong ones are.
    bool confirmed = false;
    std::string unchanged, otherwise;  ///< where; "" nowhere
    /// 0: it holds wherever else the value is; 1: it is not known to; 2: another one is wrong in
    /// another way.
    int tier() const;
  };
  struct Near {
    const Question* question;
    Candidate candidate;
    double residual;  ///< of the probes
  };
  /// A prediction held against the value.
  struct Measured {
    std::vector<bool> fits;  ///< by chip
    double residual = 0.0, reach = 0.0;
    double excess = 0.0;               ///< residual beyond what the value's own rounding makes
    std::size_t closed = 0, open = 0;  ///< wrong elements that are predicted, and those left open
  };
  void find_wrong();
  void try_here(const Candidate& candidate);
  /// Nothing where it fails on a wrong chip and `all` is not asked for.
  std::optional<Measured> measure(const Question& question, const Candidate& candidate,
                                  bool all) const;
  bool explains(const Candidate& candidate);
  static bool predicts_enough(const Measured& found);
  bool says_enough(const Candidate& candidate, const Measured& found) const;
  bool together(const Candidate& candidate, const std::vector<bool>& fits) const;
  double difference(const Question& question, const Candidate& candidate,
                    const bounds::Evaluated& number, int chip, std::size_t local) const;
  std::vector<Hypothesis> nearest();
  std::vector<double> predicted(const Near& near) const;

  const Question* question_;
  std::vector<std::vector<bool>> wrong_;             // elements, by chip
  std::vector<std::pair<int, std::size_t>> probes_;  // some of the wrong elements
  Measured none_;                                    // of no fault
  std::vector<Found> explaining_;
  std::vector<Near> nearest_;
  bool cut_ = false;                              // otherwise than given
  std::optional<std::vector<std::string>> only_;  // the names that are tried
  Trials trials_;
};

}  // namespace shardproof::diagnosis
