#pragma once

#include <cstdint>
#include <vector>

#include "engine/numeric/detail/compensated_sum.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Where partial sums come from of which each element of each chip has one term.
struct OneTermEach : PartialSource {
  std::vector<std::vector<float>> of_chip;

  void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const override {
    sum.add_product(term(chip, index), 1.0F);
  }
  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    sum.add_product(term(chip, index), 1.0F);
  }

 private:
  float term(int chip, std::int64_t index) const {
    return of_chip[static_cast<std::size_t>(chip)][static_cast<std::size_t>(index)];
  }
};

}  // namespace shardproof
