#pragma once

#include <cstddef>
#include <functional>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// A norm computed element by element, with chosen statistics.
class NormRow {
 public:
  explicit NormRow(const Question& question);

  struct Statistics {
    bounds::FunctionValue mu, ss;
    double extent = 0.0;  ///< divisor of the sums
  };
  /// Returns the statistics over the channels of a row for which `part` is true.
  Statistics statistics(std::size_t row, const std::function<bool(std::size_t)>& part,
                        double extent) const;
  bounds::FunctionValue at(std::size_t global, const Statistics& statistics) const;

  /// Returns whether the first row is right if computed so: not every norm of a text is.
  bool fits() const;
  std::size_t width() const { return E_; }

 private:
  const Question* q_;
  std::size_t E_ = 0;
  const bounds::IntervalTensor* x_;
  std::shared_ptr<const Tensor> gain_, bias_;
  bool centered_ = false;
  double eps_ = 0.0;
};

}  // namespace shardproof::diagnosis
