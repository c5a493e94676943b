#include "golden/trace/value/numbers.h"

namespace shardproof::dump {

std::vector<double>& Numbers::own() {
  if (stored_ != nullptr) {
    std::vector<double> copy(count_);
    for (std::size_t i = 0; i < count_; ++i) copy[i] = (*this)[i];
    *this = Numbers(std::move(copy));
  }
  return own_;
}

std::vector<std::int64_t>& Places::own() {
  if (blocks_) {
    std::vector<std::int64_t> copy(size());
    each([&](std::size_t i, std::int64_t place) { copy[i] = place; });
    *this = Places(std::move(copy));
  }
  return own_;
}

bool Places::operator==(const Places& other) const {
  if (blocks_ && blocks_ == other.blocks_) return first_ == other.first_;
  if (size() != other.size()) return false;
  for (std::size_t i = 0; i < size(); ++i)
    if ((*this)[i] != other[i]) return false;
  return true;
}

}  // namespace shardproof::dump
