#include "golden/trace/verdict/detail/repeats.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace shardproof::dump {
namespace {

/// The slices of a tensor along one dim, of `extent`: each `outer` runs of `inner` neighbours.
class Slices {
 public:
  Slices(const Tensor& t, std::size_t dim)
      : data_(t.data.data()),
        outer_(count(t.shape.begin(), t.shape.begin() + static_cast<std::ptrdiff_t>(dim))),
        extent_(static_cast<std::size_t>(t.shape[dim])),
        inner_(count(t.shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, t.shape.end())) {}

  std::size_t repeats() const {
    std::vector<std::size_t> all(extent_);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const std::vector<std::size_t> alike = with_equal_hash(all, hashes(all, kSample));
    return alike.size() - distinct(hashes(alike, std::max(outer_, inner_)));
  }

 private:
  using Hashes = std::vector<std::uint64_t>;
  static constexpr std::size_t kSample = 8;

  static std::size_t count(Shape::const_iterator first, Shape::const_iterator last) {
    return static_cast<std::size_t>(element_count(Shape(first, last)));
  }
  static std::size_t distinct(Hashes hashes) {
    std::sort(hashes.begin(), hashes.end());
    return static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  }
  /// Returns those of `slices` whose hash another one has, too.
  static std::vector<std::size_t> with_equal_hash(const std::vector<std::size_t>& slices,
                                                  const Hashes& hashes) {
    Hashes sorted = hashes;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::size_t> alike;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), hashes[k]);
      if (last - first > 1) alike.push_back(slices[k]);
    }
    return alike;
  }

  /// Returns hashes of the slices: of every element, or of at least `most` runs and elements of a
  /// run if there are more.
  Hashes hashes(const std::vector<std::size_t>& slices, std::size_t most) const {
    const std::size_t outer_step = std::max(outer_ / most, std::size_t{1});
    const std::size_t inner_step = std::max(inner_ / most, std::size_t{1});
    Hashes hashes(slices.size(), 0xcbf29ce484222325);
    for (std::size_t o = 0; o < outer_; o += outer_step)
      for (std::size_t k = 0; k < slices.size(); ++k) {
        const float* const run = data_ + (o * extent_ + slices[k]) * inner_;
        std::uint64_t hash = hashes[k];
        for (std::size_t i = 0; i < inner_; i += inner_step) {
          hash = (hash ^ std::bit_cast<std::uint32_t>(run[i])) * 0x100000001b3;
          hash ^= hash >> 29;
        }
        hashes[k] = hash;
      }
    return hashes;
  }

  const float* data_;
  std::size_t outer_, extent_, inner_;
};

}  // namespace

std::vector<std::size_t> repeats_by_dim(const Tensor& t) {
  std::vector<std::size_t> repeats;
  for (std::size_t dim = 0; dim < t.shape.size(); ++dim)
    repeats.push_back(Slices(t, dim).repeats());
  return repeats;
}

}  // namespace shardproof::dump
