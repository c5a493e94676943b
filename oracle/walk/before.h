#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"
#include "oracle/walk/place.h"
#include "oracle/walk/position.h"
#include "weights/text/model_text.h"
#include "weights/text/rules.h"

namespace shardproof::oracle::graph {

/// Values one position earlier, as `before` reads them. Keeps the last position of each of them
/// between passes.
template <class Math>
class ValuesBefore {
 public:
  using Scalar = typename Math::Scalar;
  using Value = Lettered<Scalar>;

  ValuesBefore(const ModelText& text, const Math& math) : text_(text), math_(math) {
    for (const TextSection section : kTextSections)
      for (const TextLine& line : text.section(section).lines)
        for (const std::string& read : reads_of(text, line).before) read_before_.insert(read);
  }

  /// Returns the value one position earlier: of the pass before at the pass's first position, the
  /// start at position 0. `names`: the values of the pass.
  Value value(const std::string& name, const Value& start, const NamedValues<Scalar>& names,
              const Place<Scalar>& place) const {
    const LoopPosition<Scalar>* const loop = place.loop;
    const NamedValues<Scalar>& whole = loop != nullptr ? loop->outside : names;
    const bool of_loop = loop != nullptr && !whole.contains(name);
    const std::string letters = letters_of_line(name, place.section);
    const Value* state = nullptr;
    if (const auto at = ended_.find({place.layer, name}); at != ended_.end()) state = &at->second;
    Value y{letters, place.shape_of(letters), {}};
    const auto l = static_cast<size_t>(letters.find('L')), b = letters.find('B');
    const auto of_start = places_in(y.letters, y.shape, start.letters, start.shape);
    const std::int64_t L = y.shape[l];
    const size_t l_step = static_cast<size_t>(step_of(letters, y.shape, 'L'));
    const size_t b_step = static_cast<size_t>(step_of(letters, y.shape, 'B'));
    // A state has the value's letters without L.
    std::string rest = letters;
    rest.erase(l, 1);
    const auto in_state = places_in(letters, y.shape, rest, place.shape_of(rest));
    const Value* const loop_state =
        of_loop && loop->carried.contains(name) ? &loop->carried.at(name) : nullptr;
    // The whole value of the pass; null where the loop itself computes it, or nothing has yet.
    const auto source = whole.find(name);
    const Value* const shifted = source == whole.end() ? nullptr : &source->second;
    for (size_t i = 0; i < count_of(y.shape); ++i) {
      const size_t row = i / b_step % static_cast<size_t>(y.shape[b]);
      const size_t token = i / l_step % static_cast<size_t>(L);
      const std::int64_t p = place.positions[row * static_cast<size_t>(L) + token];
      const std::int64_t first_token =
          loop != nullptr ? loop->token : static_cast<std::int64_t>(token);
      if (p <= 0)
        y.data.push_back(start.data[of_start[i]]);
      else if (loop_state != nullptr)
        y.data.push_back(loop_state->data[in_state[i]]);
      else if (first_token > 0 && shifted != nullptr)
        y.data.push_back(element_before(*shifted, y, i, static_cast<size_t>(first_token), l));
      else
        y.data.push_back(state == nullptr ? math_.number(0) : state->data[in_state[i]]);
    }
    return y;
  }

  /// Keeps a value's last position in each row that has a token, if a line reads it.
  void keep(const std::string& name, const Value& value, const Place<Scalar>& place) {
    if (!read_before_.contains(name)) return;
    Value last = at_position(value, 0);
    const auto old = ended_.find({place.layer, name});
    last.presence.reset();
    const size_t b_step = static_cast<size_t>(step_of(last.letters, last.shape, 'B'));
    const auto rows = static_cast<size_t>(place.extent('B'));
    for (size_t i = 0; i < last.data.size(); ++i) {
      const std::int64_t tokens = place.tokens[i / b_step % rows];
      if (tokens > 0)
        last.data[i] = element_before(value, last, i, static_cast<size_t>(tokens),
                                      static_cast<size_t>(last.letters.find('L')));
      else
        last.data[i] = old == ended_.end() ? math_.number(0) : old->second.data[i];
    }
    next_ended_[{place.layer, name}] = std::move(last);
  }

  void end_pass() { ended_.swap(next_ended_); }

  /// Gives row b the state of row rows[b].
  void take_rows(const std::vector<std::int64_t>& rows) {
    for (auto& [of, state] : ended_) state = with_rows(state, rows);
  }

 private:
  std::string letters_of_line(const std::string& name, TextSection section) const {
    for (const TextLine& line : text_.section(section).lines)
      if (line.name == name) return line.letters;
    return "";
  }

  const ModelText& text_;
  const Math& math_;
  std::set<std::string, std::less<>> read_before_;
  std::map<std::pair<std::int64_t, std::string>, Value> ended_, next_ended_;  // by layer and name
};

}  // namespace shardproof::oracle::graph
