#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/numeric/threads.h"
#include "golden/bounds/number/carried.h"
#include "golden/bounds/number/fit.h"
#include "golden/bounds/number/rounding.h"
#include "golden/bounds/value/matrix_sums.h"
#include "weights/base/error.h"
#include "weights/model/passes.h"
#include "weights/storage/weights.h"

namespace shardproof::bounds {

/// One named value of a dump, judged.
struct Judged {
  Fit fit = Fit::different;
  Extent extent;       ///< what fit_of made the verdict of
  double slack = 0.0;  ///< of the largest error; 0 where there is none
  /// How far the widest interval reaches, over the value's root mean square.
  double reach = 0.0;
  // Of the first element outside:
  Shape index;
  Interval expected;  ///< of values
  double actual = 0.0;
};

/// What values of this name are rounded to.
Format format_of(std::string_view name, const ModelConfig& config, const Declared& declared);

/// Whether a value is one of the two terms of a parallel block's sum, which a dump may have though
/// the model does not name them: attn_out, of attn and wo, or ffn_out, of hidden and w_out.
bool is_block_term(std::string_view name, const ModelConfig& config);

/// Whether a value is a product with matrices of its layer: q, k, v, gate, up, attn_out, ffn_out
/// and block_out.
bool is_matrix_product(std::string_view name);

/// The logical model, unsharded, judged by somebody's dump of its named values
/// ("decode.1.layer0.gate"): each is held against what follows from those it is made of, as the
/// dump has them. One that the dump lacks is replayed from its own operands, and what that leaves
/// open is carried on. In a parallel block the dump may have the two terms of block_out, too, as
/// attn_out and ffn_out.
class Replay {
 public:
  /// A radius is how far the copies of a number are from the one that is its center; infinite where
  /// nothing is known of it.
  using Dump = std::map<std::string, Carried>;

  /// `weights` as stored for the run; kept as int8, codes and scales. `ids` [BL] are the tokens of
  /// each pass, by pass. All outlive the replay.
  Replay(const Weights& weights, const Passes& passes, const std::map<std::string, IntTensor>& ids,
         const Dump& dump, const Declared& declared);

  /// The same dump with other weights, of a model whose values have the same shapes, for what would
  /// have been. Values that the dump lacks are made anew, unless they are assumed. `weights`
  /// outlives the replay.
  Replay(const Weights& weights, const Replay& like);
  /// From now on, whatever was dumped or derived: a value, where a pass's rows stand, how it is
  /// computed. Values that have been made already stay as they are.
  void assume(const std::string& id, Carried value);
  void assume(const PassPlan& pass);
  void assume(const Declared& declared);
  /// How one value is computed, in place of what is declared of all.
  void declare(const std::string& id, const Declared& declared);
  /// A token that nobody knows: its embedding is an unknown number, of infinite radius.
  static constexpr std::int32_t kUnknownId = -1;
  /// Nothing is known of a pass: so are its caches, where the dump has none.
  void forget(const std::string& pass) { forgotten_.insert(pass); }
  /// How values lie on the chips of a torus, as the dump declares it: sums over cut dims are sums
  /// of partial sums.
  void lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus);
  /// From now on products with matrices are made by these threads, which outlive the replay.
  void use(Threads& threads) { threads_ = &threads; }

  /// Padding is not judged (padding_in_trace). Throws Error("bounds_c1", ...) if the dump has no
  /// such value, the model none of that name or of another shape, or something that the value is
  /// made of has another shape; of ids that are missing or out of range, too.
  Judged judge(const std::string& id);

  /// Where a named value stands: its pass, its layer (0 where it has none) and its name.
  struct Place {
    std::string pass;
    std::int64_t layer;
    std::string name;
  };
  /// Throws Error("bounds_c1", ...) if the model has no such value.
  Place place_of(const std::string& id) const;
  /// The ids of what a value is made of, whether the dump has them or not.
  std::vector<std::string> operands(const std::string& id) const;
  /// What follows for a value from those it is made of, whether the dump has it or not: the real
  /// numbers whose rounding it is, of every way of rounding that is left open. Throws as judge
  /// does.
  Carried expected(const std::string& id) { return derived(place_of(id)); }
  /// From now on, or no longer, what follows from operands is made as if nothing were rounded on
  /// the way, whatever is declared: its centers are exact.
  void make_exactly(bool exactly) { exactly_ = exactly; }
  /// The same by one way of rounding after the other.
  struct Variant {
    std::string words;
    Carried value;
  };
  std::vector<Variant> variants(const std::string& id);
  /// What follows for the S of a contraction, before scale, bias and st ("raw q"), from the
  /// checkpoint's operands, and for S times its scale ("scaled q": of int8, of logits); for a
  /// norm's statistic, by its name; for exp/denom. Throws as judge does; nothing where the value is
  /// not a contraction, has no scale, or is not a statistic.
  std::optional<Carried> expected_raw(const std::string& id);
  std::optional<Carried> expected_scaled(const std::string& id);
  std::optional<Carried> expected_statistic(const Place& place);
  Carried expected_probs(const std::string& pass, std::int64_t layer);
  /// Of S cut over chips as lay_out says, the partial sum of each block over some of the axes that
  /// cut it, which are in the order x, y, z: over the others the operands are gathered. Nothing
  /// where they do not cut it.
  std::optional<std::vector<Carried>> expected_partials(const std::string& id, const Axes& axes);
  /// The factors of each product of one element of a contraction in the order of the sum; nothing
  /// of other values, and where some factor is not known exactly.
  std::optional<std::vector<std::pair<double, double>>> products(const std::string& id,
                                                                 std::size_t element);
  /// The value as others are made of it: the dump's, or what follows, rounded. Throws as judge
  /// does.
  const Carried& value(const std::string& id);
  bool dumped(const std::string& id) const { return dump_.contains(id); }
  /// What values of this name are rounded to.
  Format format_of(std::string_view name) const {
    return bounds::format_of(name, config_, declared_);
  }
  /// What this value is rounded to, by what is declared of it.
  Format format_at(const Place& place) const;
  const Weights& weights() const { return weights_; }
  const Declared& declared() const { return declared_; }
  const Declared& declared(const Place& place) const;
  /// Throws Error("bounds_c1", ...) if there is none.
  const PassPlan& pass(const std::string& name) const;
  /// Of every pass, in order.
  const std::vector<PassPlan>& passes() const { return passes_; }
  /// The pass whose caches hold the prefixes that a pass's rows go on from; null where they go on
  /// from none.
  const PassPlan* prefix_of(const PassPlan& pass) const;
  /// The position of a row's token in a pass.
  std::int64_t position(const PassPlan& pass, std::size_t row, std::size_t token) const;
  /// How many keys it sees, those of its prefix included: all up to its own. Padding sees the row's
  /// tokens.
  std::size_t visible(const PassPlan& pass, std::size_t row, std::size_t token) const;

 private:
  using Known = std::map<std::string, Carried>;
  /// How far a contraction is: its sum, with its scale, with the bias, too.
  enum class Stage { raw, scaled, finished };
  /// A value while it is made: where it stands, by what arithmetic and which way of rounding.
  struct Making {
    const Place& at;
    Declared by;
    Way way;
  };
  /// A product with a matrix, or two: what each_sum and what comes after it need.
  struct Product {
    std::vector<MatrixTerm> terms;
    std::vector<std::size_t> rows;
    std::size_t columns = 0;
    Axes axes;                 ///< of the chips that have partial sums, none where it is not known
    std::vector<int> extents;  ///< of these axes
    Depth depth;
    int split_terms = 1;    ///< how many sums there are of each chip
    bool of_chips = false;  ///< or of all together
    int chips() const;
    int sums() const { return split_terms * (of_chips ? chips() : 1); }
  };
  /// A row of a norm, less its mean where there is one, with its sums.
  struct NormRow {
    std::vector<Number> x;
    Number sum, mean, squares;
  };

  /// Those that a row is one of.
  static const PassRows& rows_of(const PassPlan& pass, std::size_t row);
  /// As the dump has it, or derived and rounded.
  const Carried& operand(const Place& at, std::string_view name);
  /// The same for an operation that engines fuse with the one before it: of a value of 16 bits that
  /// the dump lacks, also what it is before it is rounded.
  const Carried& fusible(const Place& at, std::string_view name);
  bool is_given(const std::string& id) const { return dump_.contains(id) || assumed_.contains(id); }
  Carried derived(const Place& at);
  /// What is declared of a value that is made now.
  Declared arithmetic(const Place& at) const;
  Carried made(const Making& m);
  Carried weight(std::int64_t layer, std::string_view name) const;
  const Tensor& matrix(std::int64_t layer, std::string_view name) const;
  bool has(std::string_view name) const;
  /// What a block is added to: the previous layer's out, or embed.
  std::string before(const Place& at) const;
  /// Its value, for an operation that may be fused.
  const Carried& stream(const Place& at);

  Carried embedded(const Making& m, Stage stage) const;
  Carried normed(const Making& m);
  NormRow norm_row(const Making& m, const Carried& x, std::size_t row) const;
  /// What a norm is computed of: x, or the dump's.
  const Carried& normed_of(const Place& at);
  Product product_of(const Place& at, const Declared& by);
  std::optional<Axes> axes_that_cut(const Place& at, const std::string& operand,
                                    const std::string& letters) const;
  /// The sum of one chip's terms: of both at once, or of each stored.
  Number partial(const Product& product, std::span<const Sum> terms, const Declared& by,
                 Rounds rounds) const;
  void cut(const Place& at, Product& product, const std::vector<std::string>& operands,
           const std::vector<std::string>& letters, const Declared& by) const;
  /// What may be done to a partial sum before it is sent, on the first of the chips or another.
  using Epilogue = std::function<Number(const Number& partial, bool first)>;
  Number summed(const Product& product, const Sums& sums, const Declared& by,
                const Epilogue& epilogue = nullptr) const;
  /// How many sums each_sum makes of an element: of each chip, and of each term where it may be
  /// stored; one alone where both do not matter.
  void split(Product& product, const Declared& by, bool of_chips) const;
  Carried projected(const Making& m, Stage stage);
  /// The same by each of several ways of rounding, in place of the one of `m`.
  std::vector<Carried> projected(const Making& m, Stage stage, const std::vector<Way>& ways);
  Carried rotated(const Making& m);
  Carried appended(const Place& at);
  /// A cache as an earlier pass leaves it; of one of which nothing is known, unknown numbers.
  const Carried& cache_of(const std::string& pass, std::int64_t layer, std::string_view cache);
  /// A cache as attention reads it: of each row the slots of its prefix, then its own.
  Carried read(const Place& at, std::string_view cache);
  /// Of q·k the score of a head's key at one position for the query at another.
  Number score(const Making& m, const CarriedSum& sum, std::size_t head, std::int64_t key,
               std::int64_t query, Rounds qk) const;
  Carried scores(const Making& m, Stage stage);
  Carried softmax(const Making& m);
  Carried mean(const Making& m, Stage stage);
  /// Where keys are cut over chips whose values have 16 bits: weighted parts travel as such,
  /// whether it is said or not.
  Making with_parts_of_keys(const Making& m) const;
  /// attn of q and the caches alone, as fused kernels make it.
  Carried attended(const Making& m);
  Carried hidden(const Making& m);
  Carried added(const Making& m);
  Carried added_terms(const Making& m);

  const Weights& weights_;
  const ModelConfig& config_;
  std::vector<PassPlan> passes_;
  const std::map<std::string, IntTensor>& ids_;
  const Dump& dump_;
  Declared declared_, of_matrices_;  ///< of products with matrices of layers
  std::map<std::string, Declared> own_;
  std::set<std::string> forgotten_;
  bool exactly_ = false;
  std::map<std::string, Layout> layouts_;
  std::optional<Torus> torus_;
  Threads* threads_;
  Known known_;
  Known
      unrounded_;  ///< of those of 16 bits that the dump lacks: before they are rounded, and after
  std::set<std::string> assumed_;
};

}  // namespace shardproof::bounds
