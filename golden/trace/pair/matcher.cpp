#include "golden/trace/pair/matcher.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
/// The dims of an array that say which row, token and slot an element belongs to; -1: none.
struct Matcher::Roles {
  int row = -1, token = -1, slot = -1;
  std::vector<std::int64_t> strides;

  Roles(const std::string& dims, const Shape& shape) : strides(shape.size(), 1) {
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    const auto find = [&](char letter) {
      const std::size_t at = dims.find(letter);
      return at == std::string::npos ? -1 : static_cast<int>(at);
    };
    row = find('B') >= 0 ? find('B') : find('N');
    token = find('L');
    slot = find('M') >= 0 ? find('M') : row >= 0 ? find('T') : -1;
  }
  /// Returns whether it is a cache: slots of rows, and no tokens.
  bool is_cache() const { return token < 0 && slot >= 0; }
};

/// Returns whether the shapes agree in all dims but those of rows, tokens and slots.
bool Matcher::alike(const MatchedArray& a, const Roles& of_a, const MatchedArray& b,
                    const Roles& of_b) {
  const auto rest = [](const MatchedArray& array, const Roles& roles) {
    std::vector<std::pair<char, std::int64_t>> dims;
    for (int d = 0; d < static_cast<int>(array.shape.size()); ++d)
      if (d != roles.row && d != roles.token && d != roles.slot)
        dims.emplace_back(array.dims[at(d)], array.shape[at(d)]);
    return dims;
  };
  return rest(a, of_a) == rest(b, of_b);
}

Matcher::Matcher(std::vector<MatchedArray> a, TokenPlaces places_a, std::vector<MatchedArray> b,
                 TokenPlaces places_b)
    : sides_{Side{std::move(a), std::move(places_a), {}, {}, {}},
             Side{std::move(b), std::move(places_b), {}, {}, {}}} {
  for (Side& side : sides_) {
    find_drafts(side);
    index(side);
  }
}

/// Rejected tokens follow those that are kept: their positions are counted from the first one's.
void Matcher::find_drafts(Side& side) {
  std::vector<std::pair<std::int64_t, const PassPlaces*>> passes;
  for (const auto& [name, places] : side.places) passes.emplace_back(place_of_pass(name), &places);
  stable_sort(passes, [](const auto& x, const auto& y) { return x.first < y.first; });
  for (const bool rejected : {true, false})
    for (const auto& [order, places] : passes)
      for (std::int64_t b = 0; b < places->B; ++b) {
        const std::int64_t first = places->L > 0 ? places->positions[at(b * places->L)] : -1;
        for (std::int64_t l = 0; l < places->L && first >= 0; ++l) {
          const bool kept = places->positions[at(b * places->L + l)] >= 0;
          if (kept == rejected) continue;
          for (const std::int64_t row : places->rows[at(b)]) {
            const RowAndPosition position{row, first + l};
            if (rejected || side.drafts.contains(position))
              side.drafts[position].emplace_back(order, kept);
          }
        }
      }
}

bool Matcher::Side::holds(const std::string& pass, const RowAndPosition& position) const {
  const auto found = drafts.find(position);
  if (found == drafts.end()) return true;
  const std::int64_t now = place_of_pass(pass);
  std::int64_t last = -1;
  bool kept = true;
  for (const auto& [order, was_kept] : found->second)
    if (order <= now && order >= last) last = order, kept = was_kept;
  return kept;
}

const Matcher::Entry* Matcher::Side::entry(const MatchedArray& of,
                                           const RowAndPosition& place) const {
  const auto in = [&](const auto& all, const auto& key) -> const Entry* {
    const auto of_key = all.find(key);
    if (of_key == all.end()) return nullptr;
    const auto found = of_key->second.find(place);
    return found == of_key->second.end() ? nullptr : &found->second;
  };
  const Entry* const named = in(of_names, std::pair(of.group, of.name));
  return named != nullptr ? named : in(of_groups, of.group);
}

void Matcher::index(Side& side) {
  std::vector<std::size_t> order(side.arrays.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  stable_sort(order, [&](std::size_t i, std::size_t j) {
    return place_of_pass(side.arrays[i].pass) < place_of_pass(side.arrays[j].pass);
  });
  for (const std::size_t i : order) {
    const MatchedArray& array = side.arrays[i];
    const auto found = side.places.find(array.pass);
    const Roles roles(array.dims, array.shape);
    Side::Places* const all[]{&side.of_groups[array.group],
                              &side.of_names[{array.group, array.name}]};
    const auto first = [&](const RowAndPosition& place, const Entry& entry) {
      for (Side::Places* const places : all) places->try_emplace(place, entry);
    };
    const auto last = [&](const RowAndPosition& place, const Entry& entry) {
      for (Side::Places* const places : all) places->insert_or_assign(place, entry);
    };
    if (roles.row < 0 && roles.token >= 0) continue;  // positions alone
    if (found == side.places.end() || roles.row < 0) {
      first({-1, -1}, {i, 0, 0});
      continue;
    }
    const PassPlaces& places = found->second;
    for (std::int64_t b = 0; b < std::min(places.B, array.shape[at(roles.row)]); ++b)
      for (const std::int64_t row : places.rows[at(b)]) {
        if (roles.is_cache()) {
          for (std::int64_t m = 0; m < array.shape[at(roles.slot)]; ++m) {
            const RowAndPosition position{row, m + places.first_slot};
            if (side.holds(array.pass, position)) first(position, {i, b, m});
          }
        } else if (roles.token < 0) {
          const std::int64_t position = places.last_position(b);
          if (position >= 0) last({row, position}, {i, b, -1});
        } else {
          for (std::int64_t l = 0; l < std::min(places.L, array.shape[at(roles.token)]); ++l)
            if (const std::int64_t position = places.positions[at(b * places.L + l)]; position >= 0)
              last({row, position}, {i, b, l});
        }
      }
  }
}

/// Where the elements of one token of an array are in the other trace.
struct Matcher::Found {
  Found(const Side& other, const MatchedArray& mine, const Roles& roles, const Entry& entry)
      : array(entry.array),
        theirs(other.arrays[entry.array].dims, other.arrays[entry.array].shape) {
    const MatchedArray& of = other.arrays[entry.array];
    fits = alike(mine, roles, of, theirs);
    if (!fits) return;
    if (theirs.row >= 0) first += entry.b * theirs.strides[at(theirs.row)];
    const int moves = theirs.is_cache() ? theirs.slot : theirs.token;
    if (moves >= 0) first += entry.l * theirs.strides[at(moves)];
    if (theirs.slot >= 0) slots = of.shape[at(theirs.slot)];
    for (int d = 0; d < static_cast<int>(mine.shape.size()); ++d)
      strides.push_back(d == roles.row || d == roles.token || d == roles.slot
                            ? 0
                            : theirs.strides[of.dims.find(mine.dims[at(d)])]);
  }
  /// Returns the element for an index into the array and a slot; -1 if they have none.
  std::int64_t element(const Shape& index, std::int64_t slot) const {
    std::int64_t element = first;
    for (std::size_t d = 0; d < index.size(); ++d) element += index[d] * strides[d];
    if (theirs.slot < 0 || theirs.is_cache()) return element;
    return slot < slots ? element + slot * theirs.strides[at(theirs.slot)] : -1;
  }

  std::size_t array;
  Roles theirs;
  bool fits = false;
  std::int64_t first = 0, slots = 0;
  std::vector<std::int64_t> strides;
};

void Matcher::each(bool turned, std::size_t index,
                   const std::function<void(std::int64_t, const Partner&)>& see) const {
  const Side &mine = sides_[turned ? 1 : 0], &other = sides_[turned ? 0 : 1];
  const MatchedArray& array = mine.arrays[index];
  const Roles roles(array.dims, array.shape);
  if (roles.row < 0 && roles.token >= 0) return;
  const auto known = mine.places.find(array.pass);
  const PassPlaces* const places =
      known == mine.places.end() || roles.row < 0 ? nullptr : &known->second;
  Shape at_dim(array.shape.size(), 0);
  std::pair<std::int64_t, std::int64_t> before{-2, -2};
  std::optional<Found> found;  // of the row and position before
  for (std::int64_t i = 0; i < element_count(array.shape); ++i) {
    std::pair<std::int64_t, std::int64_t> now{-1, -1};
    std::int64_t slot = -1;
    bool left_out = false;
    if (places != nullptr) {
      const std::int64_t b = at_dim[at(roles.row)];
      left_out = b >= places->B || places->rows[at(b)].empty();
      if (!left_out) {
        if (roles.slot >= 0)
          slot = at_dim[at(roles.slot)] + (roles.is_cache() ? places->first_slot : 0);
        const std::int64_t l = roles.token >= 0 ? at_dim[at(roles.token)] : 0;
        const std::int64_t position = roles.is_cache()  ? slot
                                      : roles.token < 0 ? places->last_position(b)
                                      : l < places->L   ? places->positions[at(b * places->L + l)]
                                                        : -1;
        now = {places->rows[at(b)][0], position};
        left_out = position < 0 || slot > position;
      }
    }
    if (!left_out && now != before) {
      before = now;
      found.reset();
      const bool holds = !roles.is_cache() || mine.holds(array.pass, now);
      const Entry* const entry = other.entry(array, now);
      if (holds && entry != nullptr) found.emplace(other, array, roles, *entry);
    }
    if (!left_out && found && found->fits)
      if (const std::int64_t element = found->element(at_dim, slot); element >= 0)
        see(i, {found->array, element});
    for (std::size_t d = array.shape.size(); d-- > 0 && ++at_dim[d] == array.shape[d];)
      at_dim[d] = 0;
  }
}

}  // namespace shardproof::dump
