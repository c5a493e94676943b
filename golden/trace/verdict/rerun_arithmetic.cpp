#include "golden/trace/verdict/rerun_arithmetic.h"

#include "golden/bounds/number/rounding.h"

namespace shardproof::dump {

rerun::Arithmetic rerun_arithmetic(const bounds::DeclaredArithmetic& declared) {
  rerun::Places places;
  for (const rerun::PlaceRow& row : rerun::all_places()) {
    const bounds::Rounds rounds = bounds::declared_way(row.formula, declared).rounds(row.key);
    if (rounds != bounds::Rounds::none) places.set(row.place, rounds == bounds::Rounds::some);
  }
  return {.values = declared.values,
          .places = places,
          .sums = declared.of_matrix_product().sums,
          .wire_roundings = declared.wire_roundings,
          .wire = declared.wire};
}

}  // namespace shardproof::dump
