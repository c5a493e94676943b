#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"

namespace shardproof::diagnosis {

/// A column of a part of a fused weight.
struct Column {
  std::size_t part = 0, column = 0;
  bool operator==(const Column&) const = default;
};

/// What is of another column: the matrix, its bias and scale too, or these alone.
enum class Moved { matrix, all, addends };
/// Returns what precedes the words of a fault.
std::string name_of_moved(Moved moved);

/// The matrices of a layer that multiply one operand, as parts of one weight: [wq|wk|wv], or
/// [w_gate|w_up].
class Fused {
 public:
  struct Part {
    std::string id, matrix;      ///< of the value that it makes; its own name in files
    std::size_t columns, heads;  ///< heads: how often its columns are cut at most
    std::size_t first;           ///< its first column among those of all parts
  };

  /// Reads the parts off the lines of the layer, without their numbers. The question outlives it.
  explicit Fused(const Question& question);

  /// At least two, or none: then the value is no such product.
  const std::vector<Part>& parts() const { return parts_; }
  std::size_t own() const { return own_; }  ///< the part that makes the value
  std::size_t columns() const;              ///< of all parts
  /// Reads the parts' numbers; returns whether they are sums of products of one operand each.
  bool read();
  // What follows is known once they are read.

  /// Returns whether each part has a bias or a scale, as all others have.
  bool addends() const { return addends_; }

  /// Returns the element `global` of a part's value, of which another column is in place of its
  /// own.
  bounds::Number number(std::size_t part, std::size_t global, const Column& from,
                        Moved moved) const;
  /// Returns the product of the row of element `global` of the question's value with a column.
  bounds::Number product(std::size_t global, const Column& column) const {
    return product(sum(own_), global, column);
  }
  /// Returns the sum that makes a part's value.
  const Contraction& sum(std::size_t part) const { return *sums_[part]; }

 private:
  void add(const TextLine& line);
  bounds::Number product(const Contraction& of, std::size_t global, const Column& column) const;

  const Question& q_;
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<const Contraction>> sums_;
  std::size_t own_ = 0;
  bool addends_ = false;
};

/// How the parts of a fused weight lie: `blocks` times one block of each, in this order.
struct Arrangement {
  std::size_t blocks = 1;
  std::vector<std::size_t> order;

  /// Returns where a column lies among all of them, and which one lies there.
  std::size_t place_of(const Fused& fused, const Column& column) const;
  Column column_at(const Fused& fused, std::size_t place) const;
  bool operator==(const Arrangement&) const = default;
};

}  // namespace shardproof::diagnosis
