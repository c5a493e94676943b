#include "golden/trace/pair/whole_value.h"

#include <algorithm>

#include "golden/bounds/value/derivation.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/same_bits.h"
#include "golden/trace/verdict/measure.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/words.h"

namespace shardproof::dump {
namespace {

/// Returns a value with the elements of another, which outlives it.
Value borrowed(const Value& of) {
  const auto lend = [](const StoredArray& array) {
    return StoredArray{array.shape, array.encoding, {}, array.elements()};
  };
  Value value{of.attributes, {}, lend(of.whole), of.unread};
  for (const auto& [chip, array] : of.chips) value.chips.emplace(chip, lend(array));
  return value;
}

}  // namespace

WholeValue whole_value(const DumpedValue& dumped) {
  WholeValue whole;
  whole.shape = dumped.subject.shape;
  whole.numbers.resize(at(element_count(whole.shape)));
  whole.present.resize(whole.numbers.size(), false);
  whole.computed =
      dumped.terms > 1 || !dumped.units.empty() || dumped.torus.size(dumped.layout.partial()) > 1;
  each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t place, double) {
    if (whole.present[at(place)]) return;
    whole.numbers[at(place)] = v * dumped.unit(place);
    whole.present[at(place)] = true;
  });
  whole.copies_differ = !dumped.layout.is_partial() && copies_differ(dumped);
  return whole;
}

ValueAgain read_value(const Dump& dump, const std::string& name, const std::string& title,
                      const Claim& claim, const Weights& weights) {
  auto arrays = std::make_unique<Dump>();
  Dump& one = *arrays;
  one.attributes = dump.attributes;
  // The terms of a sum are named together.
  std::vector<std::string> names{name};
  if (!dump.values.contains(name)) {
    names.clear();
    for (const std::string_view term : split(name, "+")) names.emplace_back(term);
  }
  for (const std::string& array : names)
    if (const auto found = dump.values.find(array); found != dump.values.end()) {
      one.values.emplace(array, borrowed(found->second));
      one.order.push_back(array);
    }
  Claim without_patterns = claim;
  without_patterns.operands.clear();
  Values values = read_values(one, without_patterns, weights);
  for (DumpedValue& dumped : values.dumped)
    if (dumped.subject.title() == title) return {std::move(arrays), std::move(dumped)};
  DumpedValue none;
  none.name = name;
  none.misfit = true;
  none.torus = Torus(1, 1, 1);
  none.shards.resize(1);
  none.places.resize(1);
  return {std::move(arrays), std::move(none)};
}

NumberFormat stored_format(const DumpedValue& dumped, const Claim& claim) {
  const Subject& s = dumped.subject;
  if (s.meaning == Meaning::weight || s.meaning == Meaning::ids || s.meaning == Meaning::token ||
      s.meaning == Meaning::positions || s.meaning == Meaning::indices)
    return dumped.encoding;
  const bounds::DeclaredArithmetic& declared = dumped.declared_or(claim.declared);
  const bool stored = s.meaning == Meaning::checkpoint || s.meaning == Meaning::joined;
  const NumberFormat format =
      stored ? bounds::format_of(s.name, claim.source_case.model, declared) : declared.unstored();
  return dumped.coarser_than(format) ? dumped.encoding : format;
}

bool same_shards(const DumpedValue& a, const DumpedValue& b) {
  if (!(a.layout == b.layout) || !(a.torus == b.torus) || a.units != b.units ||
      a.padding != b.padding || a.terms > 1 || b.terms > 1)
    return false;  // of sums of several arrays these are not the writer's bits
  for (std::size_t chip = 0; chip < a.shards.size(); ++chip) {
    if (a.shards[chip].size() != b.shards[chip].size()) return false;
    for (std::size_t i = 0; i < a.shards[chip].size(); ++i)
      if (!same_bits<double>(a.shards[chip][i], b.shards[chip][i])) return false;
  }
  return true;
}

}  // namespace shardproof::dump
