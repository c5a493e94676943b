#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/numeric/threads.h"
#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/bounds/number/interval_tensor.h"
#include "weights/base/error.h"
#include "weights/model/passes.h"
#include "weights/storage/weights.h"

namespace shardproof::bounds {

/// Returns the storage format of the values with this name.
NumberFormat format_of(std::string_view name, const ModelConfig& config,
                       const DeclaredArithmetic& declared);

/// Returns the rows of final_norm [BL] that logits are made of: each row's last token. A row
/// without tokens may read any place.
std::vector<std::size_t> rows_of_logits(const PassPlan& pass, std::size_t L);

/// Computes what the values of a dump imply for one another: each value of the logical, unsharded
/// model from its operands, as the dump has them, or derived in turn where it lacks them. Replay is
/// that of models of keys, TextReplay (golden/bounds/text) that of texts.
class Derivation {
 public:
  /// The radius of a number is the largest distance of its replicas from the center; infinite if
  /// nothing is known of it.
  using Dump = std::map<std::string, IntervalTensor>;

  /// Pass, layer (0 if there is none) and name of a value.
  struct Place {
    std::string pass;
    std::int64_t layer;
    std::string name;
  };
  /// A derived value under one way of rounding.
  struct Variant {
    std::string words;
    IntervalTensor value;
  };
  /// An unknown token: its embedding has an infinite radius.
  static constexpr std::int32_t kUnknownId = -1;

  /// `weights` as stored for the run. `ids` maps each pass to its tokens [BL]. All arguments but
  /// `passes` and `declared` outlive the derivation.
  Derivation(const Weights& weights, const Passes& passes,
             const std::map<std::string, IntTensor>& ids, const Dump& dump,
             DeclaredArithmetic declared);
  virtual ~Derivation() = default;
  Derivation(const Derivation&) = delete;
  Derivation& operator=(const Derivation&) = delete;

  /// Overrides, from now on, a value or the arithmetic, whatever was dumped or derived.
  virtual void assume(const std::string& id, IntervalTensor value) = 0;
  virtual void assume(const DeclaredArithmetic& declared) = 0;
  /// Declares the arithmetic of one value, in place of the common one.
  virtual void declare(const std::string& id, const DeclaredArithmetic& declared) = 0;
  /// Marks a pass as unknown; its caches are unknown too, unless the dump has them.
  virtual void forget(const std::string& pass) = 0;
  /// Declares the values' layouts on a torus: contractions over cut dims add up partial sums.
  virtual void lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) = 0;

  /// Throws Error("bounds_c1", ...) if the model has no such value.
  virtual Place place_of(const std::string& id) const = 0;
  /// Returns the ids of a value's operands, whether the dump has them or not.
  virtual std::vector<std::string> operands(const std::string& id) const = 0;
  /// Returns what the operands imply for a value, whether the dump has it or not: the real number
  /// before its last rounding, as the hull over every way of rounding left open. Throws
  /// Error("bounds_c1", ...) if the model has no such value, or an operand's shape is not its own.
  virtual IntervalTensor expected(const std::string& id) = 0;
  /// The value as later operations read it: dumped, or derived and rounded. Throws as expected().
  virtual const IntervalTensor& value(const std::string& id) = 0;
  /// If true, derivations have exact centers: they round nothing, whatever is declared.
  virtual void make_exactly(bool exactly) = 0;
  virtual const DeclaredArithmetic& declared(const Place& place) const = 0;
  /// Returns whether a value surely has the same centers under make_exactly as without it.
  virtual bool has_exact_centers(const std::string& id) const;

  // Parts that not every model has: nullopt or nothing without them.

  /// Returns the value under each way of rounding left open.
  virtual std::vector<Variant> variants(const std::string& id);
  /// expected_raw: the sum S of a contraction, before scale, bias and st ("raw q"), from the
  /// checkpoint's operands. expected_scaled: S times its scale ("scaled q", for int8 and logits).
  /// expected_statistic: a norm's statistic, by name. expected_probs: exp/denom. Each throws as
  /// expected(), and returns nullopt if the value is not a contraction, has no scale, or is not a
  /// statistic.
  virtual std::optional<IntervalTensor> expected_raw(const std::string& id);
  virtual std::optional<IntervalTensor> expected_scaled(const std::string& id);
  virtual std::optional<IntervalTensor> expected_statistic(const Place& place);
  virtual std::optional<IntervalTensor> expected_probs(const std::string& pass, std::int64_t layer);
  /// Returns the partial sums of a value, or if `raw` of its S, cut as lay_out says, one per block
  /// over `axes`; operands are gathered over the other axes that cut it. Blocks are ordered by axis
  /// x, y, z. Returns nullopt if `axes` do not all cut it, or the value is more than a sum.
  virtual std::optional<std::vector<IntervalTensor>> expected_partials(const std::string& id,
                                                                       const Axes& axes, bool raw);
  /// Returns the factors of each product of one element of a contraction, in the order of the sum;
  /// nullopt for other values, or if some factor is not known exactly.
  virtual std::optional<std::vector<std::pair<double, double>>> products(const std::string& id,
                                                                         std::size_t element);
  /// Returns which elements of a value do not exist, by the indicators of its text; empty: all do.
  virtual std::vector<bool> absent(const std::string& id);

  const Weights& weights() const { return weights_; }
  /// Uses these threads, which outlive the derivation, in place of the caller's.
  void use(Threads& threads) { threads_ = &threads; }
  Threads& threads() const { return *threads_; }
  /// Returns the tokens of each pass.
  const std::map<std::string, IntTensor>& ids() const { return ids_; }
  /// Returns the torus that lay_out declares, if any.
  const std::optional<Torus>& torus() const { return torus_; }
  bool dumped(const std::string& id) const { return dump_.contains(id); }
  /// Throws Error("bounds_c1", ...) if there is no such pass.
  const PassPlan& pass(const std::string& name) const;
  /// All passes, in order.
  const std::vector<PassPlan>& passes() const { return passes_; }
  /// Returns the pass whose caches hold the prefixes of the rows of `pass`; null if none.
  const PassPlan* prefix_of(const PassPlan& pass) const;
  /// Returns how many keys a token sees: all up to its own position, its prefix included. Padding
  /// sees the row's tokens.
  static std::size_t visible(const PassPlan& pass, std::size_t row, std::size_t token);
  /// Returns the storage format of this value under the arithmetic declared for it.
  NumberFormat format_at(const Place& place) const;
  /// Returns the position of a row's token in a pass.
  std::int64_t position(const PassPlan& pass, std::size_t row, std::size_t token) const;

 protected:
  /// Returns the group of rows that a row belongs to.
  static const PassRows& rows_of(const PassPlan& pass, std::size_t row);

  const Weights& weights_;
  std::vector<PassPlan> passes_;
  const std::map<std::string, IntTensor>& ids_;
  const Dump& dump_;
  DeclaredArithmetic declared_;
  std::map<std::string, DeclaredArithmetic> own_;  ///< by id
  std::set<std::string> forgotten_;                ///< passes
  std::map<std::string, Layout> layouts_;          ///< by id
  std::optional<Torus> torus_;
  bool exactly_ = false;
  Threads* threads_;  ///< the caller's, or those in use
};

}  // namespace shardproof::bounds
