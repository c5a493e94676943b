#pragma once

#include <utility>
#include <vector>

#include "golden/diagnosis/question.h"

namespace shardproof::diagnosis {

/// Tries candidates and keeps those that explain the value, and the nearest of the others.
class Search {
 public:
  /// How many are kept that explain nothing.
  static constexpr std::size_t kNearest = 5;

  /// Looks at `question` until told otherwise; it must outlive what is tried with it.
  explicit Search(const Question& question);
  /// The same value, cut otherwise.
  void turn_to(const Question& question);
  /// Again as given.
  void turn_back(const Question& question);

  void consider(Candidate candidate);
  /// Whether something explains the value, on all chips or on the wrong ones.
  bool explained() const { return !explaining_.empty(); }
  /// On all chips.
  bool explained_everywhere() const;
  std::vector<Hypothesis> ranked();

 private:
  struct Found {
    Hypothesis hypothesis;
    bool everywhere = true;  ///< or only on some chips, and the others are right
    Site site = Site::declared;
    std::size_t kind = 0;
    int parameters = 0;
  };
  struct Near {
    const Question* question;
    Candidate candidate;
    double residual;  ///< of the probes
  };
  bool explains(const Candidate& candidate);
  bool together(const Candidate& candidate, const std::vector<bool>& fits) const;
  double difference(const Question& question, const Candidate& candidate, int chip,
                    std::size_t local) const;

  const Question* question_;
  std::vector<std::pair<int, std::size_t>> probes_;  // some of the wrong elements
  double unexplained_;                               // the residual of no fault
  std::vector<Found> explaining_;
  std::vector<Near> nearest_;
  bool cut_ = false;  // otherwise than given
};

}  // namespace shardproof::diagnosis
