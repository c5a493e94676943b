#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "golden/bounds/text/interval_math.h"
#include "golden/bounds/value/derivation.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"
#include "weights/text/text_model.h"

namespace shardproof::bounds {

/// The derivation of a model that is given as a text: the walk over its flat form
/// (weights/text/flat.h) with intervals, in which each value that the dump has takes the place of
/// the derived one for the lines that follow (docs/bounds.md section 10). Values are derived once,
/// all of a run, when one is asked for.
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

 private:
  struct Derived {
    IntervalTensor expected, exact, value;
    std::vector<bool> absent;  ///< elements that do not exist; empty: all do
  };

  const Derived& derived(const std::string& id);
  void derive(bool exactly);
  void take(const std::string& id, const TextLine& line, oracle::graph::Lettered<Estimate>& value,
            bool exactly);
  LineArithmetic arithmetic_of(const std::string& pass, const TextLine& line, std::int64_t layer,
                               bool in_loop, bool exactly) const;
  bool is_matrix_product(const TextLine& line) const;
  std::string id_of_operand(const Place& place, std::string_view name) const;
  std::string id_of(const std::string& pass, std::int64_t layer, std::string_view name) const;
  const TextLine* line_of(const Place& place) const;

  const Weights& weights_;
  const TextModel& model_;
  const std::map<std::string, IntTensor>& ids_;
  ModelText text_;                  ///< the flat form; no line stores its own value
  std::set<std::string> of_layer_;  ///< names of lines of the layer section
  std::set<std::string> integral_;  ///< names of lines that make integers of positions alone
  std::map<std::string, IntervalTensor> assumed_;  ///< by id
  std::map<std::string, Derived> derived_;         ///< by id; empty: not yet
};

}  // namespace shardproof::bounds
