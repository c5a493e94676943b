#include "engine/field_sums.h"

#include <stdexcept>

#include "engine/runs.h"

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
  FieldShards to{from.values, from.field, FieldSort::number, {}};
  threads.for_each(static_cast<std::int64_t>(to.values.size()), [&](std::int64_t chip) {
    for (FieldElement& v : to.values[static_cast<std::size_t>(chip)]) v = from.field->apply(f, v);
  });
  return to;
}

FieldShards field_sums(const FieldShards& given, const Moves& moves, Threads& threads) {
  const FieldShards from = as_numbers(given, threads);
  FieldShards to{{}, from.field, FieldSort::number, from.degree};
  to.values.resize(from.values.size());
  const Field& field = *from.field;
  const Runs runs(moves);
  threads.for_each(static_cast<std::int64_t>(to.values.size()), [&](std::int64_t chip) {
    auto& buffer = to.values[static_cast<std::size_t>(chip)];
    buffer.assign(static_cast<std::size_t>(element_count(moves.to_local)), Field::unwritten());
    bool first = true;
    for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)]) {
      const FieldElement* const in =
          from.values[static_cast<std::size_t>(piece.from_chip)].data() + piece.from;
      FieldElement* const out = buffer.data() + piece.to;
      for (const Run& run : runs.all)
        for (std::int64_t i = 0; i < runs.length; ++i)
          out[run.to + i] = first ? in[run.from + i] : field.add(out[run.to + i], in[run.from + i]);
      first = false;
    }
  });
  return to;
}

}  // namespace shardproof
