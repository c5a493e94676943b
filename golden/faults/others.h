#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/execute.h"
#include "oracle/model/oracle.h"

namespace shardproof::faults {

/// Checks that others use on the same values; each has a threshold that others chose.
inline constexpr std::size_t kOtherChecks = 7;
/// "tokens", "top-5", "allclose", "cosine", "PCC", "relative", "KL", in this order.
std::span<const std::string_view> other_check_names();

/// A number for each check.
using OtherCounts = std::array<std::int64_t, kOtherChecks>;

/// What the checks say: of logits and tokens, and of any named value.
struct OtherSights {
  std::array<bool, kOtherChecks> end_to_end{};
  std::array<bool, kOtherChecks> per_value{};
};

/// The numbers that one check yields of two tensors; see other_check_names().
struct Distances {
  bool allclose = true;  ///< |a - b| <= 1e-8 + 1e-5 |b|, every element
  double cosine = 1.0;
  double pcc = 1.0;
  double relative = 0.0;  ///< 1 - 2ab/(aa + bb)
};
/// Returns the distances of `a` from the right `b`.
Distances distances(const std::vector<float>& a, const std::vector<float>& b);
/// Returns KL(softmax(b) || softmax(a)) of rows of V logits, the mean over rows.
double mean_kl(const std::vector<float>& a, const std::vector<float>& b, std::int64_t V,
               double unit);

/// Observes a float run and holds what the first chip of each block has of every named value
/// against the unsharded model's, as others do.
class Others : public Observer {
 public:
  Others(const oracle::Answer& right, const ModelConfig& model) : right_(right), model_(model) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;
  /// Returns what was seen; `ended` if the run came to its end: a run that did not is seen by all.
  OtherSights finish(bool ended) const;

 private:
  void of_logits(const std::vector<float>& a, const std::vector<float>& b);
  void of_values(const std::vector<float>& a, const std::vector<float>& b, bool logits);

  const oracle::Answer& right_;
  const ModelConfig& model_;
  OtherSights sights_;
};

}  // namespace shardproof::faults
