#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/pair/places.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// An array of a trace, as its elements are matched with those of another.
struct MatchedArray {
  std::string pass;
  std::string group;  ///< what it is, but for the pass: arrays of one group hold one value
  std::string dims;   ///< B or N are rows, L tokens, M or T slots; all others are alike in both
  Shape shape;
};

/// Finds, for the elements of one trace's arrays, those of the other that belong to the same row,
/// position and slot. Of several arrays that hold a position the last in the order of passes counts,
/// as in a cache. Elements without a partner, and of slots after the query, are left out.
class Matcher {
 public:
  Matcher(std::vector<MatchedArray> a, TokenPlaces places_a, std::vector<MatchedArray> b,
          TokenPlaces places_b);

  /// An element of an array of the other trace.
  struct Partner {
    std::size_t array = 0;
    std::int64_t element = 0;
  };
  /// Calls see(element, partner) for each element of array `index` of the first trace, or with
  /// `turned` of the second, that has a partner in the other.
  void each(bool turned, std::size_t index,
            const std::function<void(std::int64_t, const Partner&)>& see) const;

 private:
  struct Entry {
    std::size_t array = 0;
    std::int64_t b = 0, l = 0;
  };
  struct Side {
    std::vector<MatchedArray> arrays;
    TokenPlaces places;
    /// By group, row and position: which array and token. Of caches by group and row, position -1:
    /// the last cache.
    std::map<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>, Entry> entries;
  };
  struct Roles;
  struct Found;
  static bool alike(const MatchedArray& a, const Roles& of_a, const MatchedArray& b,
                    const Roles& of_b);
  static void index(Side& side);

  std::array<Side, 2> sides_;
};

}  // namespace shardproof::dump
