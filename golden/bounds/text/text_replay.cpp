#include "golden/bounds/text/text_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "golden/bounds/value/replay.h"
#include "golden/compare/row_padding.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/walk.h"
#include "oracle/walk/weights.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::bounds {
namespace {

using oracle::graph::Lettered;

using oracle::graph::is_cache;
using oracle::graph::OwnSlots;

IntervalTensor numbers_of(const Lettered<Estimate>& value, const OwnSlots& own) {
  IntervalTensor t(own.shape);
  for (std::size_t i = 0; i < t.size(); ++i) t.set(i, value.data[own.places[i]].number);
  return t;
}

}  // namespace

TextReplay::TextReplay(const Weights& weights, const Passes& passes,
                       const std::map<std::string, IntTensor>& ids, const Dump& dump,
                       const DeclaredArithmetic& declared)
    : Derivation(weights, passes, ids, dump, declared), lines_(weights.config()) {}

void TextReplay::assume(const std::string& id, IntervalTensor value) {
  assumed_[id] = std::move(value);
  derived_.clear();
}

void TextReplay::assume(const DeclaredArithmetic& declared) {
  declared_ = declared;
  own_.clear();
  derived_.clear();
}

void TextReplay::declare(const std::string& id, const DeclaredArithmetic& declared) {
  own_[id] = declared;
  derived_.clear();
}

void TextReplay::forget(const std::string& pass) {
  forgotten_.insert(pass);
  derived_.clear();
}

void TextReplay::lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) {
  layouts_ = layouts;
  torus_ = torus;
  derived_.clear();
}

Derivation::Place TextReplay::place_of(const std::string& id) const {
  for (const PassPlan& p : passes_) {
    if (!id.starts_with(p.name + ".")) continue;
    Place place{p.name, 0, id.substr(p.name.size() + 1)};
    if (const std::size_t dot = place.name.find('.');
        dot != std::string::npos && place.name.starts_with("layer")) {
      const char* const end = place.name.data() + dot;
      const auto [at, error] = std::from_chars(place.name.data() + 5, end, place.layer);
      if (error != std::errc() || at != end || place.layer < 0 ||
          place.layer >= lines_.model().sizes().layers)
        break;
      place.name.erase(0, dot + 1);
      if (!lines_.of_layer(place.name)) break;
    } else if (lines_.of_layer(place.name)) {
      break;
    }
    if (lines_.line_of(place) != nullptr) return place;
  }
  throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
}

std::vector<std::string> TextReplay::operands(const std::string& id) const {
  const Place place = place_of(id);
  std::vector<std::string> ids;
  const TextLine& line = *lines_.line_of(place);
  for (const std::string& name : reads_of(lines_.text(), line).now) {
    if (name == "ids" || name == "pos" || name == "slot" || lines_.model().weight(name) != nullptr)
      continue;
    ids.push_back(lines_.id_of_operand(place, name));
    // What reads a cache reads that of the prefixes, too.
    const TextLine* const operand = lines_.line_of({place.pass, place.layer, name});
    if (const PassPlan* const filled = prefix_of(pass(place.pass));
        filled != nullptr && operand != nullptr && is_cache(*operand))
      ids.push_back(lines_.id_of(filled->name, place.layer, name));
  }
  const std::string& previous = pass(place.pass).previous;
  if (is_cache(line) && !previous.empty())
    ids.push_back(lines_.id_of(previous, place.layer, place.name));
  return ids;
}

const DeclaredArithmetic& TextReplay::declared(const Place& place) const {
  // What is declared of a value holds for what is nested in its line, unless that has its own.
  for (const std::string& name : {place.name, lines_.line_of_text(place.name)}) {
    const auto own = own_.find(lines_.id_of(place.pass, place.layer, name));
    if (own != own_.end()) return own->second;
  }
  return declared_;
}

/// Keeps what is derived for a line's value, and puts the number that later lines read in its
/// place: the dump's, an assumed one, or the derived one, rounded.
void TextReplay::take(const std::string& id, const TextLine& line, Lettered<Estimate>& value,
                      bool exactly) {
  Derived& of = derived_[id];
  const PassPlan& plan = pass(place_of(id).pass);
  const OwnSlots own(value.letters, value.shape, is_cache(line) ? plan.prefix.length : 0);
  if (exactly) {
    of.exact = numbers_of(value, own);
  } else {
    of.expected = numbers_of(value, own);
    const auto here = oracle::graph::here_in(value.presence, value.letters, value.shape);
    if (!here.empty())
      for (const std::size_t place : own.places)
        of.absent.push_back(here[place] == oracle::graph::Presence::kAbsent);
    const auto assumed = assumed_.find(id);
    const auto dumped = dump_.find(id);
    if (assumed != assumed_.end() || dumped != dump_.end()) {
      of.value = assumed != assumed_.end() ? assumed->second : dumped->second;
      if (of.value.shape != own.shape)
        throw Error("bounds_c1",
                    fmt::format("{} has shape [{}], the model's has [{}]", id,
                                fmt::join(of.value.shape, ","), fmt::join(own.shape, ",")));
      // A dump may have anything at padding.
      const std::vector<bool> padding =
          padding_in_trace(line.letters, own.shape, false, plan, !is_cache(line));
      for (std::size_t i = 0; i < padding.size(); ++i)
        if (padding[i]) of.value.set(i, of.expected.number(i));
    } else {
      of.value = lines_.as_read(line, of.expected, declared(place_of(id)));
    }
    // What does not exist is 0 for all that reads it, whatever a dump has there.
    for (std::size_t i = 0; i < of.absent.size(); ++i)
      if (of.absent[i]) of.value.set(i, Number{0.0, 0.0, 0.0});
  }
  for (std::size_t i = 0; i < own.places.size(); ++i)
    value.data[own.places[i]] = {of.value.number(i)};
}

void TextReplay::derive(bool exactly) {
  std::string pass;
  IntervalMath math(lines_.model().sizes(), [&](const TextLine& line, std::int64_t layer,
                                                bool in_loop) {
    return lines_.arithmetic(line, declared({pass, std::max<std::int64_t>(layer, 0), line.name}),
                             torus_, in_loop, exactly);
  });
  math.use(*threads_);
  const auto weights = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    const std::shared_ptr<const Tensor> stored = weights_.find(id);
    if (exactly)
      return oracle::graph::weight_of<IntervalMath>(stored, lines_.text(), lines_.model().sizes(),
                                                    weight, id, shape);
    return lines_.weight(stored, lines_.model().sizes(), weight, id, shape, declared_);
  };
  oracle::graph::Walk<IntervalMath> walk(lines_.text(), lines_.model().sizes(), math, weights);
  bool continues = false;
  for (const PassPlan& plan : passes_) {
    pass = plan.name;
    if (plan.prefix.given() && !std::exchange(continues, true))
      walk.take_rows(oracle::graph::prefixes_of(plan));
    const auto given = ids_.find(pass);
    if (given == ids_.end() || given->second.shape != Shape{plan.batch(), plan.L})
      throw Error("bounds_c1", fmt::format("{} has no ids [{},{}]", pass, plan.batch(), plan.L));
    for (const std::int32_t id : given->second.data)
      if (id != kUnknownId && (id < 0 || id >= weights_.config().V))
        throw Error("bounds_c1", fmt::format("{} has no token {}", pass, id));
    oracle::graph::Tokens tokens = oracle::graph::tokens_of(plan, given->second);
    if (forgotten_.contains(pass))
      std::fill(tokens.ids.begin(), tokens.ids.end(), oracle::graph::kUnknownToken);
    walk.run(tokens, [&](std::int64_t layer, const TextLine& line, Lettered<Estimate>& value) {
      take(oracle::graph::value_id(pass, layer, line.name), line, value, exactly);
    });
  }
}

const TextReplay::Derived& TextReplay::derived(const std::string& id) {
  if (derived_.empty()) derive(false), derived_exactly_ = false;
  if (exactly_ && !std::exchange(derived_exactly_, true)) derive(true);
  const auto at = derived_.find(id);
  if (at == derived_.end())
    throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
  return at->second;
}

IntervalTensor TextReplay::expected(const std::string& id) {
  const Derived& of = derived(id);
  return exactly_ ? of.exact : of.expected;
}

const IntervalTensor& TextReplay::value(const std::string& id) { return derived(id).value; }

std::vector<bool> TextReplay::absent(const std::string& id) { return derived(id).absent; }

}  // namespace shardproof::bounds
