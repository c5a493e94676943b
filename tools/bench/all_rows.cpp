#include <iterator>

#include "tools/bench/row.h"

namespace shardproof::bench {

std::vector<Row> all_rows(const std::string& program) {
  std::vector<Row> all;
  for (std::vector<Row>& rows :
       std::vector{process_rows(program), compare_rows(program), random_case_rows(), ffn_rows(),
                   exact_rows(), thread_rows(), kernel_rows(), collective_rows(), memory_rows()})
    all.insert(all.end(), std::make_move_iterator(rows.begin()),
               std::make_move_iterator(rows.end()));
  return all;
}

}  // namespace shardproof::bench
