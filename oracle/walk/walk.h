#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"
#include "oracle/walk/before.h"
#include "oracle/walk/evaluation.h"
#include "oracle/walk/place.h"
#include "oracle/walk/position.h"
#include "weights/base/tensor.h"
#include "weights/text/loops.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Stands for a token's id that is not known.
inline constexpr std::int64_t kUnknownToken = -1;

/// One pass's rows at L neighbouring positions each. A row's tokens are the first ones; the rest is
/// padding, which no cache and no later pass sees.
struct Tokens {
  Shape shape;  ///< [B, L]
  std::vector<std::int64_t> ids, positions;
  std::vector<std::int64_t> tokens;  ///< [B], of each row
  std::int64_t slots = 0;            ///< M, of the caches after the pass
};

/// Runs a text, line by line, over whole tensors: an interpreter of expressions with numbers
/// `Math`, which shares nothing with the engine. Keeps the state between passes: caches, and the
/// last position of each value that `before` reads.
template <class Math>
class Walk {
 public:
  using Scalar = typename Math::Scalar;
  using Value = Lettered<Scalar>;
  /// Returns a weight, whose id in files is "layer0.wq", in this shape.
  using Weights =
      std::function<Value(const TextWeight& weight, const std::string& id, const Shape& shape)>;
  /// Is called with each named value, which it may replace for the lines that follow; layer -1
  /// stands for no layer.
  using Seen = std::function<void(std::int64_t layer, const TextLine& line, Value& value)>;

  Walk(const ModelText& text, const TextSizes& sizes, const Math& math, Weights weights)
      : text_(text),
        sizes_(sizes),
        math_(math),
        weights_(std::move(weights)),
        before_(text, math),
        evaluation_(text, sizes, math, place_, before_) {
    for (const TextSection section : kTextSections)
      orders_.push_back(order_of_lines(text, section));
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Runs one pass.
  void run(const Tokens& tokens, const Seen& seen) {
    seen_ = seen;
    place_.extents = sizes_.extents;
    place_.extents['B'] = tokens.shape[0];
    place_.extents['L'] = tokens.shape[1];
    place_.extents['M'] = tokens.slots;
    place_.positions = tokens.positions;
    place_.tokens = tokens.tokens;
    Names names;
    names["ids"] = integers("BL", tokens.ids);
    names["pos"] = integers("BL", tokens.positions);
    std::vector<std::int64_t> slots(static_cast<size_t>(tokens.slots));
    std::iota(slots.begin(), slots.end(), 0);
    names["slot"] = integers("M", slots);
    section(TextSection::embedding, -1, names);
    Value stream = everywhere(names.at("embed"));
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      Names own = names;
      own["in"] = stream;
      section(TextSection::layer, layer, own);
      stream = everywhere(own.at("out"));
    }
    names["in"] = stream;
    section(TextSection::head, -1, names);
    before_.end_pass();
  }

  /// Gives row b of the next pass the state of row rows[b] of the last one.
  void take_rows(const std::vector<std::int64_t>& rows) {
    evaluation_.take_rows(rows);
    before_.take_rows(rows);
  }

 private:
  using Names = NamedValues<Scalar>;

  /// The stream between layers exists everywhere: nothing outside of a layer knows its indicators.
  static Value everywhere(Value value) {
    value.presence.reset();
    return value;
  }

  Value integers(const std::string& letters, const std::vector<std::int64_t>& values) const {
    Value v{letters, place_.shape_of(letters), {}};
    for (const std::int64_t i : values)
      v.data.push_back(i == kUnknownToken ? math_.unknown() : math_.number(static_cast<double>(i)));
    return v;
  }

  void section(TextSection which, std::int64_t layer, Names& names) {
    const auto& own = text_.section(which);
    place_.layer = layer;
    place_.section = which;
    for (const TextWeight& weight : own.weights) {
      if (layer >= 0 && !sizes_.has(weight.guard, layer)) continue;
      const std::string& file = weight.from.empty() ? weight.name : weight.from;
      const std::string id = layer < 0 ? file : "layer" + std::to_string(layer) + "." + file;
      names[weight.name] = weights_(weight, id, place_.shape_of(weight.letters));
    }
    for (const LineGroup& group : orders_[static_cast<size_t>(which)]) {
      std::vector<const TextLine*> lines;
      for (const size_t i : group.lines)
        if (layer < 0 || sizes_.has(own.lines[i].guard, layer)) lines.push_back(&own.lines[i]);
      if (group.loop)
        loop(lines, names);
      else
        for (const TextLine* line : lines) names[line->name] = evaluation_.evaluate(*line, names);
      for (const TextLine* line : lines) {
        Value& value = names.at(line->name);
        seen_(layer, *line, value);
        evaluation_.put_cache(layer, *line, value);
        before_.keep(line->name, value, place_);
      }
    }
  }

  /// Lines that need one another one position earlier: all of them at one position, then at the
  /// next.
  void loop(const std::vector<const TextLine*>& lines, Names& names) {
    if (lines.empty()) return;
    const std::int64_t L = place_.extent('L');
    const std::vector<std::int64_t> positions = place_.positions;
    LoopPosition<Scalar> position{names};
    place_.loop = &position;
    std::map<std::string, std::vector<Value>, std::less<>> parts;
    for (std::int64_t i = 0; i < L; ++i) {
      Names here;
      for (const auto& [name, value] : names) here[name] = at_position(value, i);
      place_.extents['L'] = 1;
      place_.positions.clear();
      for (size_t b = 0; b < positions.size() / static_cast<size_t>(L); ++b)
        place_.positions.push_back(positions[b * static_cast<size_t>(L) + static_cast<size_t>(i)]);
      position.token = i;
      for (const TextLine* line : lines) {
        const Value value = evaluation_.evaluate(*line, here);
        here[line->name] = value;
        parts[line->name].push_back(value);
      }
      for (const TextLine* line : lines)
        (position.carried[line->name] = here.at(line->name)).presence.reset();
    }
    place_.extents['L'] = L;
    place_.positions = positions;
    place_.loop = nullptr;
    for (const TextLine* line : lines)
      names[line->name] = join_positions(parts.at(line->name), line->letters);
  }

  const ModelText& text_;
  const TextSizes& sizes_;
  const Math& math_;
  Weights weights_;
  Seen seen_;
  std::vector<std::vector<LineGroup>> orders_;
  Place<Scalar> place_;
  ValuesBefore<Math> before_;
  Evaluation<Math> evaluation_;
};

}  // namespace shardproof::oracle::graph
