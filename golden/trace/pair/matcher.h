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
  std::string name = {};  ///< in the file, but for the pass: of a group those of one name match
};

/// Finds, for the elements of one trace's arrays, those of the other that belong to the same row,
/// position and slot: of arrays of one name if the other trace has it, else of one group. Of
/// several passes that compute a position the last counts; of the caches that hold a slot the
/// first. Elements without a partner are left out, and so are slots after the query, and slots of a
/// cache whose last token was not kept: of a draft that was rejected.
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
    std::int64_t b = 0, l = 0;  ///< l: token; of a cache the slot
  };
  using RowAndPosition = std::pair<std::int64_t, std::int64_t>;
  struct Side {
    std::vector<MatchedArray> arrays;
    TokenPlaces places;
    using Places = std::map<RowAndPosition, Entry>;
    std::map<std::string, Places> of_groups;
    std::map<std::pair<std::string, std::string>, Places> of_names;  ///< by group and name
    /// By row and position the places of passes that computed it, and whether it was kept; only of
    /// positions of which some pass was rejected.
    std::map<RowAndPosition, std::vector<std::pair<std::int64_t, bool>>> drafts;

    bool holds(const std::string& pass, const RowAndPosition& position) const;
    /// Returns the entry that an array of the other trace has at a place; null if there is none.
    const Entry* entry(const MatchedArray& of, const RowAndPosition& place) const;
  };
  struct Roles;
  struct Found;
  static bool alike(const MatchedArray& a, const Roles& of_a, const MatchedArray& b,
                    const Roles& of_b);
  static void find_drafts(Side& side);
  static void index(Side& side);

  std::array<Side, 2> sides_;
};

}  // namespace shardproof::dump
