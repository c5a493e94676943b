#include "engine/collectives/detail/field_sums.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "engine/collectives/detail/runs.h"

namespace shardproof {
namespace {

std::string_view function_of(FieldSort sort) {
  switch (sort) {
    case FieldSort::number:
      break;
    case FieldSort::max:
      return "number of max";
    case FieldSort::candidate:
      return "number of candidate";
    case FieldSort::index:
      return "number of index";
    case FieldSort::token:
      return "number of token";
  }
  throw std::logic_error("numbers need no function");
}

}  // namespace

FieldShards as_numbers(const FieldShards& from, Threads& threads) {
  if (from.sort == FieldSort::number) return from;
  const FieldFunction& f = from.field->function(function_of(from.sort));
  FieldShards to{ChipArrays<FieldElement>(from.values.size()), from.field, FieldSort::number, {}};
  // Converts each buffer once, since chips may share buffers.
  std::map<const void*, std::size_t> first;
  std::vector<std::size_t> firsts;
  for (std::size_t chip = 0; chip < from.values.size(); ++chip)
    if (first.emplace(from.values.identity(chip), chip).second) firsts.push_back(chip);
  threads.for_each(static_cast<std::int64_t>(firsts.size()), [&](std::int64_t i) {
    const std::size_t chip = firsts[static_cast<std::size_t>(i)];
    Buffer<FieldElement>& numbers = to.values[chip];
    numbers = from.values[chip];
    for (FieldElement& v : numbers) v = from.field->apply(f, v);
  });
  for (std::size_t chip = 0; chip < from.values.size(); ++chip)
    if (const std::size_t of = first.at(from.values.identity(chip)); of != chip)
      to.values.share(chip, of);
  return to;
}

FieldShards field_sums(const FieldShards& given, const Moves& moves, const ChipGroups& groups,
                       Threads& threads) {
  const FieldShards from = as_numbers(given, threads);
  const Field& field = *from.field;
  const Runs runs(moves);
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  const auto sum = [&](std::int64_t chip, FieldElement* to) {
    std::fill_n(to, count, Field::unwritten());
    bool first = true;
    for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)]) {
      const FieldElement* const in =
          from.values[static_cast<std::size_t>(piece.from_chip)].data() + piece.from;
      FieldElement* const out = to + piece.to;
      for (const Run& run : runs.all)
        for (std::int64_t i = 0; i < runs.length; ++i)
          out[run.to + i] = first ? in[run.from + i] : field.add(out[run.to + i], in[run.from + i]);
      first = false;
    }
  };
  return {made_by<FieldElement>(groups, from.values.size(), count, threads, sum), from.field,
          FieldSort::number, from.degree};
}

}  // namespace shardproof
