#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/rerun/arithmetic.h"
#include "golden/rerun/model.h"
#include "golden/rerun/order.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"

namespace shardproof::rerun {

/// Receives the values of a run.
class Watch {
 public:
  virtual ~Watch() = default;
  /// Returns true if the checkpoint of this id is wanted.
  virtual bool wants(const std::string& id) const = 0;
  /// Receives a whole checkpoint, row-major; 0 at padding and in slots that no token has reached.
  virtual void see(const std::string& id, const std::vector<double>& numbers) = 0;
};

/// One run of the unsharded model in f32 or (Real = double) f64, with randomly drawn summation
/// orders and forms of formulas.
template <class Real>
class Run {
 public:
  /// `model` and `watch` must outlive it.
  Run(const Model<Real>& model, const Arithmetic& arithmetic, std::uint64_t seed,
      std::uint64_t number, Watch& watch);

  /// Runs the next pass, over ids [BL] of the vocabulary at positions within the RoPE tables.
  void pass(const PassPlan& plan, const IntTensor& ids);

 private:
  using Vector = std::vector<Real>;
  using Parts = typename Model<Real>::Parts;

  /// A token that is not padding: its row, its place in [BL], its position.
  struct Token {
    std::size_t row, place, position;
  };
  /// For each layer the numbers of its caches by name, by row, by position.
  using Caches = std::vector<std::map<std::string, std::vector<Vector>>>;

  /// The drawn forms of formulas that textbooks write in several ways.
  struct Forms {
    bool sigmoid = false;     ///< x·sigmoid(x), not x/(1+exp(−x))
    bool one_plus = false;    ///< gelu by 1+erf and 1+tanh
    bool quotients = false;   ///< attention averages with exp/denom
    std::size_t addends = 0;  ///< selects which two of x, attn_out and ffn_out are added first
  };

  Draw draw(std::string_view purpose) const { return {seed_, number_, purpose}; }
  Real kept(Real v) { return kept_as(v, arithmetic_.values); }
  Real kept(Real v, Place place) { return places_.has(place) ? kept(v) : v; }
  /// For random rounding adds a random offset of at most half a step before rounding to nearest.
  Real kept_as(Real v, NumberFormat kept) {
    if (!arithmetic_.by_chance) return rounded(v, kept);
    return rounded(
        static_cast<Real>(static_cast<double>(v) + (chance_.fraction() - 0.5) * step_of(v, kept)),
        kept);
  }

  void begin(const PassPlan& plan);
  void start_from_prefixes(const PassPlan& plan);

  /// Computes the values of a section from the stream that it reads, and returns the last one.
  Vector section(const Parts& parts, Vector in);
  /// Returns a value; nothing for a cache, for what attention computes with its mean, and for the
  /// sum of a parallel block whose terms are added one by one.
  Vector value(const Part<Real>& part);
  Vector embed(const Part<Real>& part);
  Vector norm(const Part<Real>& part);
  Vector rotation(const Part<Real>& part);
  void append(const Part<Real>& part);
  Vector attention(const Part<Real>& part);
  /// The names by which the sums of attention have their orders.
  struct Attention {
    const Part<Real>& scores;
    const std::string &denominator, &mean;
  };
  /// Computes attention for one head of one token.
  void attend(const Attention& of, const Token& token, std::size_t head, const Real* q,
              const Vector& keys, const Vector& values, Real* out);
  Vector hidden(const Part<Real>& part);
  Real activation(Real gate);
  /// Computes the sum S over all terms, then scale and biases, and stores the result.
  Vector project(const Part<Real>& part);
  Vector project_terms(const Part<Real>& part);
  Vector logits(const Part<Real>& part);
  Vector addition(const Part<Real>& part);
  Vector add(const Vector& x, const Vector& y);

  const Vector& operand(const Part<Real>& part, std::size_t i) const {
    return values_.at(part.of.operands[i]);
  }
  /// Returns a part of the section by name.
  const Part<Real>& part_of(const std::string& name) const;
  std::map<std::string, std::vector<Vector>>& caches_of_layer() {
    return (plan_.phase == Phase::prefix ? prefixes_ : caches_)[static_cast<std::size_t>(layer_)];
  }
  /// Returns the order of the sums, of n terms each, for a value of this layer.
  const Order& order(std::string_view name, std::size_t n);

  std::string id(std::string_view name) const;
  /// Shows a value [BL…] or, with `last`, [B…] for the last tokens alone.
  void show(std::string_view name, const Vector& rows, bool last = false);
  void show_cache(const std::string& name);

  const Model<Real>& model_;
  const Arithmetic& arithmetic_;
  std::uint64_t seed_, number_;
  Watch& watch_;
  Draw chance_;  // for random roundings
  Places places_;
  Forms forms_;
  Adder<Real> adder_;
  Caches caches_, prefixes_;
  // State of the current pass:
  PassPlan plan_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> last_;  // indices into tokens_ of each row's last token
  const IntTensor* ids_ = nullptr;
  std::int64_t layer_ = 0;
  const Parts* parts_ = nullptr;                                 // of the current section
  std::map<std::string, Vector> values_;                         // of the current section, and "in"
  std::map<std::pair<std::string, std::size_t>, Order> orders_;  // for the current layer
  Vector scores_;                                                // for one query
};

}  // namespace shardproof::rerun
