#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// A value that is a sum of products with a matrix, or two, times a scale, plus biases: any element
/// of it can be made alone, with each product counted as often as one likes. By docs/spec.md
/// section 2, as bounds::Replay reads it.
struct Contraction {
  /// One operand and its matrix. The contracted index is that of `letters`, row-major.
  struct Term {
    std::string operand, matrix;  ///< their names
    std::string letters = {};     ///< "E", "HQ", "F", "V"
    std::vector<std::int64_t> extents = {};
    std::size_t width = 0;
    std::shared_ptr<const bounds::Carried> x = {};      ///< [rows, width]
    std::shared_ptr<const std::vector<double>> w = {};  ///< [columns, width]
    /// Of each contracted index of x that of w which it meets; null: its own.
    std::shared_ptr<const std::vector<std::size_t>> meets = {};
    /// Of each column that of w which is in its place; null: its own.
    std::shared_ptr<const std::vector<std::size_t>> takes = {};
  };
  struct Bias {
    std::string name;
    std::vector<double> values;  ///< of each column
  };
  std::vector<Term> terms;
  std::size_t columns = 0;
  std::vector<std::size_t> rows;  ///< of x, of each row of the value
  std::vector<double> scales;     ///< of each column; empty where there are none
  std::vector<Bias> biases;
  bool likely = false;  ///< whether likely bounds of sums are taken, or those that always hold

  /// How often each product and each bias is counted: of term t's contracted index k
  /// counts[t][block[t][k]], or once where counts[t] is empty.
  struct Counts {
    std::vector<std::vector<int>> of_blocks;
    std::vector<const std::vector<int>*> block;
    std::vector<int> of_biases;
  };
  bounds::Evaluated at(std::size_t global, const Counts& counts, const bounds::Declared& by) const;
  /// A sum of products as it is added up, in which there are `more` additions beside those of each.
  bounds::Evaluated added(const bounds::CarriedSum& products, const bounds::Declared& by,
                          std::int64_t more = 0) const;
  /// As it must be.
  bounds::Evaluated at(std::size_t global, const bounds::Declared& by) const;
  /// Of one term, the summand of a block without scale or bias.
  bounds::Evaluated summand(std::size_t global, std::size_t term, const std::vector<int>& block,
                            int which, const bounds::Declared& by) const;
};

/// None where the value is no such sum.
std::optional<Contraction> contraction_of(const Question& question);

/// A weight as the columns of a term: [columns, width], of a matrix [width, columns] or transposed.
std::shared_ptr<const std::vector<double>> columns_of(const Tensor& matrix, std::size_t width,
                                                      bool table = false);

/// The block over `blocks` equal ones along one letter of a term, of each contracted index; empty
/// where they do not divide it.
std::vector<int> blocks_of(const Contraction::Term& term, char letter, int blocks);

}  // namespace shardproof::diagnosis
