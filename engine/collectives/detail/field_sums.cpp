#include "engine/collectives/detail/field_sums.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/collectives/detail/runs.h"
#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr std::pair<std::string_view, FieldSort> kFunctions[] = {
    {"number of max", FieldSort::max},
    {"number of candidate", FieldSort::candidate},
    {"number of index", FieldSort::index},
    {"number of token", FieldSort::token}};

}  // namespace

FieldShards as_numbers(const FieldShards& from, Threads& threads) {
  if (from.sort == FieldSort::number) return from;
  const FieldFunction& f = from.field->function(word_in(kFunctions, from.sort));
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
