#include "golden/compare/joined.h"

#include "weights/model/prefix.h"

namespace shardproof {

std::vector<JoinedElement> joined_elements(std::string_view letters, const Shape& of_prefixes,
                                           const Shape& of_rows) {
  const std::size_t rows = letters.find('B'), slots = letters.find('M');
  const SharedPrefix shared{of_prefixes.at(slots), of_prefixes.at(rows)};
  Shape whole = of_rows;
  whole.at(slots) += shared.length;
  std::vector<JoinedElement> elements(static_cast<std::size_t>(element_count(whole)));
  Shape index(whole.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = index.size(); d-- > 0; rest /= whole[d]) index[d] = rest % whole[d];
    const bool of_prefix = index[slots] < shared.length;
    if (of_prefix)
      index[rows] = shared.of_row(index[rows], of_rows[rows]);
    else
      index[slots] -= shared.length;
    std::int64_t place = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      place = place * (of_prefix ? of_prefixes : of_rows)[d] + index[d];
    elements[i] = {of_prefix, static_cast<std::size_t>(place)};
  }
  return elements;
}

}  // namespace shardproof
