#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/text/interval_math.h"
#include "golden/bounds/text/text_lines.h"
#include "golden/bounds/value/derivation.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::bounds {

/// The derivation of a model that is given as a text: the walk over its flat form
/// (weights/text/flat.h) with intervals, in which each value that the dump has takes the place of
/// the derived one for the lines that follow (docs/bounds.md section 10), all of a run at once.
class TextReplay : public Derivation {
 public:
  /// `weights` as stored for the run, of a text's model. `ids` maps each pass to its tokens [BL].
  /// All arguments outlive the replay.
  TextReplay(const Weights& weights, const Passes& passes,
             const std::map<std::string, IntTensor>& ids, const Dump& dump,
             const DeclaredArithmetic& declared);

  void assume(const std::string& id, IntervalTensor value) override;
  void assume(const DeclaredArithmetic& declared) override;
  void declare(const std::string& id, const DeclaredArithmetic& declared) override;
  void forget(const std::string& pass) override;
  void lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) override;

  Place place_of(const std::string& id) const override;
  std::vector<std::string> operands(const std::string& id) const override;
  IntervalTensor expected(const std::string& id) override;
  const IntervalTensor& value(const std::string& id) override;
  void make_exactly(bool exactly) override { exactly_ = exactly; }
  const DeclaredArithmetic& declared(const Place& place) const override;
  std::vector<bool> absent(const std::string& id) override;
  std::optional<std::vector<IntervalTensor>> expected_partials(const std::string& id,
                                                               const Axes& axes, bool raw) override;

 private:
  struct Derived {
    IntervalTensor expected, exact, value;
    std::vector<bool> absent;  ///< elements that do not exist; empty: all do
  };

  const Derived& derived(const std::string& id);
  void derive(bool exactly);
  void take(const std::string& id, const TextLine& line, oracle::graph::Lettered<Estimate>& value,
            bool exactly);

  TextLines lines_;
  std::map<std::string, IntervalTensor> assumed_;  ///< by id
  std::map<std::string, Derived> derived_;         ///< by id; empty: not yet
  bool derived_exactly_ = false;                   ///< whether they have exact numbers, too
};

}  // namespace shardproof::bounds
