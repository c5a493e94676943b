#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/pair/apart.h"
#include "golden/trace/pair/side.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// What is said of one value of two traces.
enum class Likeness {
  same,      ///< the same bits in both
  rounding,  ///< apart by rounding that both declarations allow
  a_wrong,   ///< not what follows from its own operands, in A; likewise b_wrong
  b_wrong,
  both_wrong,
  not_the_same,  ///< apart, although both claim one defined order of sums
  operands,      ///< right in both, of operands that are apart for another reason than rounding
  not_judged
};
std::string_view to_string(Likeness likeness);
/// Returns whether it names a wrong value: a_wrong, b_wrong, both_wrong or not_the_same.
bool is_wrong(Likeness likeness);

/// One value of two traces, or of one that the other lacks.
struct PairRow {
  std::string title;                ///< as A has it, or else B
  std::optional<std::size_t> a, b;  ///< rows of the verdicts; of several of B the first
  Likeness likeness = Likeness::not_judged;
  std::string why = {};  ///< why it is not judged; what its operands differ by; a remark
  Apart apart = {};      ///< of the elements that both have
  NumberFormat coarser = NumberFormat::f32;  ///< of the two storage formats
  bool other_tokens = false;  ///< of other tokens in A and B: how far it is apart means nothing
  bool input = false;         ///< a weight, ids or positions
  /// Of a relation: B's value is matched with A's, not A's with B's; and further rows of the other.
  bool turned = false;
  std::vector<std::size_t> more = {};

  bool paired() const { return a && b; }
};

/// Something that the two runs have otherwise before any value.
struct Difference {
  std::string of;    ///< "weights", "prompts", "positions", "numbers", "passes", "sampling"
  std::string text;  ///< in words
};

/// How far the probabilities of one position are apart.
struct PositionOfLogits {
  std::string pass;
  std::int64_t row = 0;         ///< of A's batch
  double most = 0.0;            ///< the largest |Δ log p|
  std::int64_t token = 0;       ///< where
  double divergence = 0.0;      ///< KL of B from A, in nats
  std::optional<double> moved;  ///< how far runs in random orders move a log p, of A and B together
  /// Returns the share of `most` that these runs explain, at most 1; nullopt without runs.
  std::optional<double> explained() const;
};

/// A position whose token differs, of rows with the same tokens before.
struct Parting {
  enum class Says { near_tie, wrong, unclear };
  std::string pass;
  std::int64_t row = 0;
  std::int64_t token_a = 0, token_b = 0;
  /// By how much each prefers its own token to the other's; NaN without logits.
  double margin_a = 0.0, margin_b = 0.0;
  double apart = 0.0;  ///< distances of the two logits in A and B, added: margins move by it
  std::optional<double>
      moved;  ///< how far runs in random orders move a margin, of A and B together
  Says says = Says::unclear;
};

/// Two traces of one model, side by side.
struct Pair {
  JudgedTrace a, b;
  bool same = false;                    ///< a relation that holds bit for bit where it is defined
  std::vector<Difference> differences;  ///< said before any value
  std::vector<PairRow> rows;            ///< in the order of A's run; then what only B has
  std::vector<PositionOfLogits> logits;
  std::vector<Parting> partings;
  /// The first value that is wrong in one or both: it parts although its operands agree.
  std::optional<std::size_t> first;
  std::optional<std::size_t> first_a, first_b;  ///< the first wrong ones of each

  /// Returns the row of A's verdict, or of B's, that makes the first wrong value of it wrong; null
  /// if none is. Of a relation it may have another name than the value that it is matched with.
  const Row* wrong(bool of_b) const;
  /// Returns the first value of both of which neither is wrong, and which is not explained: not
  /// judged, or of operands that differ; nullopt if there is none.
  std::optional<std::size_t> first_open() const;
  std::int64_t count(Likeness likeness) const;
  /// Returns whether some whole value of the run is right in both, and the same or apart by
  /// rounding.
  bool proves() const;
  /// Returns 0 if this proves something and every value is the same or apart by rounding; else 1.
  int exit_code() const;
};

/// What two traces are compared by.
struct PairRequest {
  bool same = false;  ///< match by rows and positions, and hold a defined order to its bits
  int runs = -1;      ///< of wander_of
};

/// A trace, what it claims, and the weights of its run.
struct ClaimedTrace {
  const Dump& dump;
  Claim claim;
  std::shared_ptr<const Weights> weights;
};

/// Judges two traces of one model, and compares them value by value. Their numbers are held one
/// trace after the other, then one value after the other. Throws Error: "compare_pair" (not two
/// traces of one model, or of the field regime), and what judged_trace and places_of throw.
Pair compare_pair(ClaimedTrace a, ClaimedTrace b, const PairRequest& request);

/// Throws Error("compare_pair", ...) if two claims are not of one model.
void require_pair(const Claim& a, const Claim& b);

}  // namespace shardproof::dump
