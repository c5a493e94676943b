#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "golden/bounds/number/fit.h"
#include "golden/bounds/number/interval_tensor.h"
#include "golden/bounds/number/rounding.h"
#include "golden/bounds/value/derivation.h"
#include "golden/bounds/value/matrix_sums.h"
#include "weights/base/error.h"
#include "weights/model/passes.h"
#include "weights/model/registry.h"
#include "weights/text/composites.h"

namespace shardproof::bounds {

/// The verdict on one named value of a dump.
struct ValueVerdict {
  Fit fit = Fit::different;
  Extent extent;       ///< the input of fit_of
  double slack = 0.0;  ///< at the largest error; 0 if there is none
  /// Reach of the widest interval over the value's root mean square.
  double reach = 0.0;
  // The first element outside its bounds:
  Shape index;
  Interval expected;  ///< the values that would be right
  double actual = 0.0;
};

/// Returns whether a value is a product with the matrices of its layer: q, k, v, gate, up,
/// attn_out, ffn_out and block_out.
bool is_matrix_product(std::string_view name);

/// Judges another program's dump of the named values of the logical, unsharded model
/// ("decode.1.layer0.gate"): compares each value with what its operands in the dump imply. An
/// operand that the dump lacks is replayed from its own operands, and its uncertainty is
/// propagated. In a parallel block it may also have the terms of block_out, attn_out and ffn_out.
class Replay : public Derivation {
 public:
  /// `weights` as stored for the run, int8 weights as codes and scales. `ids` maps each pass to its
  /// tokens [BL]. All arguments outlive the replay.
  Replay(const Weights& weights, const Passes& passes, const std::map<std::string, IntTensor>& ids,
         const Dump& dump, const DeclaredArithmetic& declared);

  /// Values already computed stay as they are.
  void assume(const std::string& id, IntervalTensor value) override;
  void assume(const DeclaredArithmetic& declared) override;
  void declare(const std::string& id, const DeclaredArithmetic& declared) override;
  void forget(const std::string& pass) override { forgotten_.insert(pass); }
  void lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) override;

  /// Judges a dumped value; skips padding (padding_in_trace). Throws Error("bounds_c1", ...) if the
  /// dump lacks the value, the model has no value of that name, the shape of the value or of an
  /// operand is not the model's, or ids are missing or out of range.
  ValueVerdict judge(const std::string& id);

  Place place_of(const std::string& id) const override;
  std::vector<std::string> operands(const std::string& id) const override;
  IntervalTensor expected(const std::string& id) override { return derive(place_of(id)); }
  void make_exactly(bool exactly) override { exactly_ = exactly; }
  /// Of products, if no value of the trace is rounded to 16 bits or on the wire.
  bool has_exact_centers(const std::string& id) const override;
  std::vector<Variant> variants(const std::string& id) override;
  std::optional<IntervalTensor> expected_raw(const std::string& id) override;
  std::optional<IntervalTensor> expected_scaled(const std::string& id) override;
  std::optional<IntervalTensor> expected_statistic(const Place& place) override;
  std::optional<IntervalTensor> expected_probs(const std::string& pass,
                                               std::int64_t layer) override;
  std::optional<std::vector<IntervalTensor>> expected_partials(const std::string& id,
                                                               const Axes& axes, bool raw) override;
  std::optional<std::vector<std::pair<double, double>>> products(const std::string& id,
                                                                 std::size_t element) override;
  const IntervalTensor& value(const std::string& id) override;
  /// Returns the storage format of the values with this name.
  NumberFormat format_of(std::string_view name) const {
    return bounds::format_of(name, config_, declared_);
  }
  const DeclaredArithmetic& declared() const { return declared_; }
  const DeclaredArithmetic& declared(const Place& place) const override;

 private:
  using Known = std::map<std::string, IntervalTensor>;
  /// Stage of a contraction: the sum, the sum times its scale, or also with biases.
  enum class Stage { raw, scaled, finished };
  /// A derivation in progress: the value's place, the arithmetic, and the way of rounding.
  struct Making {
    const Place& at;
    DeclaredArithmetic by;
    Way way;
  };
  /// Chips along some of the axes, each with the sums of all chips along the others.
  struct Grouping {
    std::vector<int> extents;        ///< of these axes
    std::vector<std::size_t> place;  ///< [all chips]: the chip that has their sums
    std::size_t chips = 1;           ///< along these axes

    /// Of the axes d of `of_axes` whose bit d of `some` is set.
    Grouping(const std::vector<int>& of_axes, unsigned some);
    /// Returns [chips, terms] of [all chips, terms].
    Sums group(const Sums& sums, std::size_t terms) const;
  };
  /// Inputs of each_sum for a product with one matrix or two, and of the steps that follow it.
  struct Product {
    std::vector<std::shared_ptr<const Tensor>> matrices;  // of the terms
    std::vector<MatrixTerm> terms;
    std::vector<std::size_t> rows;
    std::size_t columns = 0;
    Shape shape;               ///< of the result
    Axes axes;                 ///< axes of the chips that hold partial sums; empty if unknown
    std::vector<int> extents;  ///< sizes of `axes`
    std::vector<Grouping> groupings;  ///< by `some`; empty if the axes are unknown
    Depth depth;
    int split_terms = 1;    ///< number of sums per chip
    bool of_chips = false;  ///< false: one sum over all chips
    int chips() const;
    int sums() const { return split_terms * (of_chips ? chips() : 1); }
  };
  /// A row of a norm, minus its mean if the norm is centered, with its sums.
  struct NormRow {
    std::vector<Number> x;
    Number sum, mean, squares;
  };

  static std::string id_of(const Place& p) { return checkpoint_id(p.pass, p.layer, p.name); }
  const Composite& composite(const std::string& name) const { return composites_.at(name); }
  /// Returns where an operand of a value's composite is.
  Place operand_of(const Place& at, std::size_t operand) const;
  /// Returns a value as dumped, or derived and rounded.
  const IntervalTensor& operand(const Place& value);
  /// Returns a value for an operation that engines fuse with the preceding one: if a 16-bit value
  /// is not in the dump, the hull of the unrounded and the rounded number.
  const IntervalTensor& fusible(const Place& value);
  bool is_given(const Place& value) const {
    const std::string id = id_of(value);
    return dump_.contains(id) || assumed_.contains(id);
  }
  IntervalTensor derive(const Place& at);
  /// Returns the way of rounding a value's composite that its arithmetic declares.
  Way way_of(const Place& at, const DeclaredArithmetic& by) const;
  /// Returns the arithmetic in effect for a value: as declared, or exact under make_exactly.
  DeclaredArithmetic arithmetic(const Place& at) const;
  IntervalTensor compute(const Making& m);
  IntervalTensor weight(std::int64_t layer, std::string_view name) const;
  std::shared_ptr<const Tensor> matrix(std::int64_t layer, std::string_view name) const;

  IntervalTensor embed(const Making& m, Stage stage) const;
  IntervalTensor normalize(const Making& m);
  NormRow norm_row(const Making& m, const IntervalTensor& x, std::size_t row) const;
  /// Returns whether a product is the head's, of each row's last token.
  static bool is_logits(const Place& product) {
    return product.name == result_of(TextSection::head);
  }
  Product product_of(const Place& at, const DeclaredArithmetic& by);
  std::optional<Axes> axes_that_cut(const Place& operand, const std::string& letters) const;
  /// Returns one chip's partial sum: the hull with and without rounding its terms first.
  Number partial(const Product& product, std::span<const Sum> terms, const DeclaredArithmetic& by,
                 Rounds rounds) const;
  void cut(const Place& at, Product& product, const DeclaredArithmetic& by) const;
  /// Applied to a column's partial sum before it is sent; `first` marks the first chip.
  using Epilogue = std::function<Number(const Number& partial, std::size_t column, bool first)>;
  Lanes reduce_sums(const Product& product, std::span<const Sums> of_columns,
                    const DeclaredArithmetic& by, const Epilogue& epilogue = nullptr) const;
  /// Decides how many sums each_sum makes per element: one per chip if `of_chips`, and one per term
  /// if terms may be stored; otherwise a single one.
  void split(Product& product, const DeclaredArithmetic& by, bool of_chips) const;
  IntervalTensor project(const Making& m, Stage stage);
  /// Computes the projection once per way of rounding, ignoring the way of `m`.
  std::vector<IntervalTensor> project(const Making& m, Stage stage, const std::vector<Way>& ways);
  IntervalTensor rotate(const Making& m);
  IntervalTensor append_to_cache(const Place& at);
  /// Returns a cache as an earlier pass leaves it; unknown numbers for an unknown pass.
  const IntervalTensor& cache_of(const Place& cache);
  /// Returns a cache as attention reads it: per row the slots of its prefix, then its own.
  IntervalTensor read(const Place& cache);
  /// Returns the score of a head's key at one position for the query at another, from q·k.
  Number score(const Making& m, const Composite& of, const IntervalSum& sum, std::size_t head,
               std::int64_t key, std::int64_t query, Rounds qk) const;
  IntervalTensor scores(const Making& m, Stage stage);
  IntervalTensor softmax(const Making& m);
  IntervalTensor mean(const Making& m, Stage stage);
  /// Adds wire roundings if keys are cut over chips and values have 16 bits: weighted parts are
  /// sent in that format, whether declared or not.
  Making with_parts_of_keys(const Making& m) const;
  /// Returns attn computed from q and the caches alone, as by a fused kernel.
  IntervalTensor attend(const Making& m);
  IntervalTensor hidden(const Making& m);
  IntervalTensor add_residual(const Making& m);
  IntervalTensor add_terms(const Making& m);

  const ModelConfig& config_;
  std::map<std::string, Composite> composites_;  ///< by name
  std::string mean_;                             ///< name of attention's mean
  DeclaredArithmetic of_matrices_;               ///< for products with the layers' matrices
  Known known_;
  Known unrounded_;  ///< 16-bit values that the dump lacks: hull of unrounded and rounded
  std::set<std::string> assumed_;
};

}  // namespace shardproof::bounds
