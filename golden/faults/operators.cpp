#include <fmt/format.h>

#include <algorithm>

#include "golden/faults/operator.h"
#include "weights/base/nearest.h"

namespace shardproof::faults {

const std::vector<Operator>& all_operators() {
  static const std::vector<Operator> all = [] {
    std::vector<Operator> rows;
    for (std::vector<Operator> part :
         {operators_of_moves(), operators_of_sums(), operators_of_weights(),
          operators_of_attention(), operators_of_values(), operators_of_buffers(),
          operators_of_programs(), operators_of_hand_overs()})
      for (Operator& row : part) rows.push_back(std::move(row));
    std::vector<Operator> by_class;
    for (const FaultClass& one : all_classes())
      for (Operator& row : rows)
        if (row.fault_class == one.name) by_class.push_back(std::move(row));
    return by_class;
  }();
  return all;
}

const Operator& find_operator(std::string_view name) {
  std::vector<std::string> names;
  for (const Operator& row : all_operators()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  const std::string near = nearest(std::string(name), names);
  throw Error("faults_only",
              fmt::format("unknown operator '{}'{}", name,
                          near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

}  // namespace shardproof::faults
