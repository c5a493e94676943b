#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// A value that is a sum of products of two operands each, times a scale, plus biases, as the lines
/// of its step say. Computes single elements, with any multiplicity of each product.
struct Contraction {
  /// One operand and its matrix; `letters` are the contracted dims, row-major.
  struct Term {
    std::string id = {};          ///< the operand's; of a lookup ""
    std::string operand, matrix;  ///< their names; of a weight its name in files
    std::string letters = {};     ///< "E", "HQ", "F", "V"
    std::vector<std::int64_t> extents = {};
    std::size_t width = 0;
    std::shared_ptr<const bounds::IntervalTensor> x = {};  ///< [rows, width]
    std::shared_ptr<const std::vector<double>> w = {};     ///< [columns, width]
    std::vector<double> spread = {};                       ///< radii of w; empty if w is a weight
    /// Place in the weight of each number of w; null if w is not a weight.
    std::shared_ptr<const std::vector<std::size_t>> places = {};
    /// Rows of x and of w by element, where the value's dims are not those of x before those of w.
    std::vector<std::size_t> xs = {}, ws = {};
    /// meets[k]: index of w that multiplies index k of x; null: k itself.
    std::shared_ptr<const std::vector<std::size_t>> meets = {};
    /// takes[c]: column of w used for column c; null: c itself.
    std::shared_ptr<const std::vector<std::size_t>> takes = {};

    /// Returns the numbers of a weight of the matrix's shape as columns, [columns, width].
    std::shared_ptr<const std::vector<double>> columns_of(const Tensor& weight) const;
  };
  struct Bias {
    std::string name;
    std::vector<double> values;  ///< per column
  };
  std::vector<Term> terms;
  std::size_t columns = 0;
  std::vector<std::size_t> rows;  ///< rows[r]: row of x for row r of the value
  std::vector<double> scales;     ///< per column; empty: no scales
  std::vector<Bias> biases;
  std::string scale;    ///< the weight that the scales are of, by its name in files; "": a number
  bool likely = false;  ///< likely bounds of sums in place of the worst case

  /// Multiplicity of products and biases: index k of term t counts of_blocks[t][block[t][k]] times,
  /// or once if of_blocks[t] is empty.
  struct Counts {
    std::vector<std::vector<int>> of_blocks;
    std::vector<const std::vector<int>*> block;
    std::vector<int> of_biases;
  };
  std::size_t row_of(const Term& term, std::size_t global) const;
  std::size_t column_of(const Term& term, std::size_t global) const;
  bounds::FunctionValue at(std::size_t global, const Counts& counts,
                           const bounds::DeclaredArithmetic& by) const;
  /// Returns the rounded sum of products, with `more` additions beyond one per product.
  bounds::Number added(const bounds::IntervalSum& products, const bounds::DeclaredArithmetic& by,
                       std::int64_t more = 0) const;
  /// Returns a number with the radius that the value is compared with.
  bounds::FunctionValue known(const bounds::Number& v) const {
    return {v.center, likely ? v.likely : v.worst, 0.0};
  }
  /// Returns the right element.
  bounds::FunctionValue at(std::size_t global, const bounds::DeclaredArithmetic& by) const;
  /// Returns the contribution of block `which` of one term, without scale or bias.
  bounds::FunctionValue partial_sum(std::size_t global, std::size_t term,
                                    const std::vector<int>& block, int which,
                                    const bounds::DeclaredArithmetic& by) const;
};

/// Returns null if the value is not such a sum.
std::shared_ptr<const Contraction> contraction_of(const Question& question);
/// Likewise of another value of the question's pass.
std::shared_ptr<const Contraction> contraction_of(const Question& question, const std::string& id);

/// Returns, for each contracted index of a term, its block when `letter` is cut into `blocks` equal
/// blocks; empty if they do not divide it.
std::vector<int> blocks_of(const Contraction::Term& term, char letter, int blocks);

}  // namespace shardproof::diagnosis
