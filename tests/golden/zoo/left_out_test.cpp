// Each dump of the zoo, explained by a table that lacks the kind of its fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "engine/run/case_weights.h"
#include "golden/corpus/detail/listed.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/verdict/wrong_value.h"
#include "golden/zoo/zoo.h"
#include "oracle/request/storage.h"
#include "tests/sanitized.h"

namespace shardproof::zoo {
namespace {

using diagnosis::Hypothesis;

const std::filesystem::path kZoo = std::filesystem::path(SHARDPROOF_SOURCE) / "golden/zoo/v1";

/// A kind that predicts the same numbers as the one that is left out, where its words begin so.
struct Same {
  std::string kind, instead, words;
  auto operator<=>(const Same&) const = default;
};
const std::set<Same> kSame{
    // A factor is what a scale that is missing, or applied twice, comes to.
    {"scale missing", "another factor", "times 2"},
    {"scale missing", "another factor", "times 1/4"},
    {"scale missing", "another factor", "times 16"},
    {"scale missing", "another factor", "all columns times 0.003014718, in place of w_gate_scale"},
    {"scale doubled", "another factor", "times 1/2"},
    {"scale doubled", "another factor", "times 1/4"},
    {"reduction twice", "another factor", "times 4"},
    // Sums over chips, as the counts of their partial sums.
    {"reduction missing", "partial sum missing", "partial sums over H_x are not counted once"},
    {"reduction missing", "partial sum missing",
     "the partial sum of the chip 1 further is left out"},
    {"reduction missing", "reduction over another axis", "summed over y in place of xy"},
    {"reduction twice", "partial sum twice", "partial sums over F_x are not counted once"},
    {"never written", "partial sum missing", "partial sums over F_x are not counted once"},
    // What is read in the place of an operand.
    {"another layer's or pass's value", "stale slot", "attention reads layer0's contents"},
    {"gate and up swapped", "columns of a fused weight", "stored as [w_up|w_gate]"},
    {"gate and up swapped", "columns of a fused weight", "stored as 4 blocks [w_up w_gate]"},
    {"axes in another order", "another chip's block", "(0,1,0) holds that of (1,0,0)"},
};

/// Where a kind is not in the table, nothing is said, or one that predicts the same numbers.
TEST(LeftOut, NoOtherCauseTakesItsPlace) {
  std::set<Same> unseen = kSame;
  OneInN taken(7, "dumps of the zoo");
  std::set<std::string> left_out;
  for (const Fault& fault : parse_faults(corpus::list_text(kZoo / std::string(kFaults), "faults")))
    for (const Specimen& specimen : fault.dumps) {
      if (!taken()) continue;
      const dump::Dump d = dump::read_dump(kZoo / (specimen.id + ".npz"));
      const dump::Claim claim = dump::read_claim(d.attributes, std::nullopt);
      const Weights weights = oracle::as_stored(generated_weights(claim.source_case),
                                                claim.source_case.numerics.weights);
      const dump::Values values = dump::read_values(d, claim, weights);
      dump::Reference reference(values, claim, weights);
      const dump::Verdict verdict = dump::judge(values, claim, reference);
      ASSERT_TRUE(verdict.first) << specimen.id;
      left_out.insert(specimen.cause);
      for (const Hypothesis& h :
           dump::diagnosed(verdict, values, claim, reference, specimen.cause)) {
        EXPECT_NE(h.fault, specimen.cause) << specimen.id << ": " << h.detail;
        if (!h.explains) continue;
        const auto same = std::find_if(kSame.begin(), kSame.end(), [&](const Same& s) {
          return s.kind == specimen.cause && s.instead == h.fault && h.detail.starts_with(s.words);
        });
        if (same == kSame.end()) {
          ADD_FAILURE() << specimen.id << " without " << specimen.cause << ": " << h.fault << ": "
                        << h.detail << ", residual " << h.residual;
          continue;
        }
        // What is said of these few is of f32, so that equal numbers are equal to many digits.
        EXPECT_LT(h.residual, 0x1p-16) << specimen.id << ": " << h.fault << ": " << h.detail;
        unseen.erase(*same);
      }
    }
  EXPECT_GE(left_out.size(), taken.all() ? 28U : 10U);
  for (const Same& s : unseen)
    EXPECT_FALSE(taken.all()) << "never said: " << s.kind << " as " << s.instead << ": " << s.words;
}

}  // namespace
}  // namespace shardproof::zoo
