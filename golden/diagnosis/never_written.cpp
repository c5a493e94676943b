// Faults that leave one number where a value should be.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"

namespace shardproof::diagnosis {
namespace {

using Box = std::vector<std::set<std::int64_t>>;  // per dim, a set of local indices

class NeverWritten : Trial {
 public:
  using Trial::Trial;

  void run() {
    if (!one_number() || !one_box() || !telling()) return;
    search_.consider({.fault = "never written",
                      .detail = words(),
                      .at = [&q = q_, box = box_, number = number_](int chip, std::size_t local) {
                        if (inside(box, q.index(local)))
                          return bounds::FunctionValue{number, 0.0, 0.0};
                        return q.expected_at(q.global(chip, local));
                      }});
  }

 private:
  static bool inside(const Box& box, const Index& index) {
    for (std::size_t d = 0; d < box.size(); ++d)
      if (!box[d].contains(index[d])) return false;
    return true;
  }

  /// Requires that all wrong elements hold the same number, and that there are at least two.
  bool one_number() {
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements() && !q_.right(chip); ++i) {
        if (q_.right(chip, i)) continue;
        if (wrong_.empty()) number_ = q_.shard(chip)[i];
        if (q_.shard(chip)[i] != number_) return false;
        wrong_.emplace_back(chip, i);
      }
    return wrong_.size() > 1 && std::isfinite(number_);
  }

  /// Requires that the wrong elements are a box of indices on all wrong chips, except where the
  /// number happens to be right.
  bool one_box() {
    box_.resize(q_.rank());
    for (const auto& [chip, i] : wrong_)
      for (std::size_t d = 0; d < q_.rank(); ++d) box_[d].insert(q_.index(i)[d]);
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t i = 0; i < q_.elements() && !q_.right(chip); ++i)
        if (inside(box_, q_.index(i)) && q_.shard(chip)[i] != number_ && !q_.right(chip, i))
          return false;
    return std::none_of(box_.begin(), box_.end(), [](const auto& of) { return of.empty(); }) &&
           whole_blocks();
  }

  /// Leaves partly written slots to masks and caches, and zero rows of a lookup to sums.
  bool whole_blocks() const {
    if (q_.step().calls(ModelOp::gather) || q_.step().calls(ModelOp::append)) return all_wrong();
    for (std::size_t d = 0; d < q_.rank(); ++d)
      if (q_.layout().dims()[d].letter == 'M' && !complete(d)) return false;
    return true;
  }
  bool all_wrong() const {
    std::size_t judged = 0;
    for (int chip = 0; chip < q_.chips(); ++chip) judged += q_.judged(chip).size();
    return wrong_.size() == judged;
  }
  bool complete(std::size_t d) const { return std::ssize(box_[d]) == q_.local_shape()[d]; }

  /// Zeros are evidence; another number only if the right values there differ.
  bool telling() const {
    const auto expected = [&](const auto& e) {
      return q_.expected_at(q_.global(e.first, e.second)).center;
    };
    return number_ == 0 || std::any_of(wrong_.begin(), wrong_.end(), [&](const auto& e) {
             return expected(e) != expected(wrong_[0]);
           });
  }

  std::string words() const {
    std::string parts;
    for (std::size_t d = 0; d < q_.rank(); ++d) {
      if (complete(d)) continue;
      const auto first = *box_[d].begin(), last = *box_[d].rbegin();
      const bool run = last - first + 1 == std::ssize(box_[d]);
      parts +=
          fmt::format("{}{} {}{}", parts.empty() ? "" : ", ", q_.layout().dims()[d].letter, first,
                      last == first ? "" : fmt::format("{}{}", run ? " to " : " … ", last));
    }
    const std::string what = number_ == 0 ? "zeros" : fmt::format("{:g} everywhere", number_);
    if (parts.empty()) return what;
    return fmt::format("{} in {}{}", what, parts, q_.layout().used().empty() ? "" : " of a chip's");
  }

  double number_ = 0.0;
  std::vector<std::pair<int, std::size_t>> wrong_;
  Box box_;
};

/// Tries the biases alone: the products with a weight that is not loaded are zeros.
void try_bias_alone(const Question& q, Search& search, const Row& row) {
  const std::shared_ptr<const Contraction> sum = contraction_of(q);
  if (sum == nullptr || sum->terms.size() != 1 || sum->biases.empty()) return;
  const auto none = std::make_shared<const std::vector<int>>(sum->terms[0].width, 0);
  search.consider({.fault = row.fault,
                   .detail = fmt::format("{}: zeros, to which {} is added", sum->terms[0].matrix,
                                         sum->biases[0].name),
                   .at = q.logical([&q, sum, none](std::size_t g) {
                     return sum->at(g, {.of_blocks = {{0}}, .block = {none.get()}, .of_biases = {}},
                                    q.declared());
                   })});
}

}  // namespace

void try_never_written(const Question& q, Search& search, const Row& row) {
  NeverWritten(q, search).run();
  if (!search.explained()) try_bias_alone(q, search, row);
}

}  // namespace shardproof::diagnosis
