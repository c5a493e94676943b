// shardproof_bench: the cost of simulating chips, with targets.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/bench/eigen_pair.h"
#include "tools/bench/ffn.h"
#include "tools/bench/load.h"
#include "tools/bench/options.h"
#include "tools/bench/table.h"
#include "weights/base/isa.h"

namespace shardproof::bench {
namespace {

std::vector<Row> chosen_rows(const Options& options) {
  std::vector<Row> rows = all_rows(options.program);
  std::erase_if(rows, [&](const Row& row) {
    return options.filter.empty() ? row.apart : row.id.find(options.filter) == std::string::npos;
  });
  if (rows.empty())
    throw WrongUse(
        fmt::format("--filter {}: no row's id has it in it, see --list", options.filter));
  return rows;
}

void print_heading(const Load& load) {
  fmt::print("FFN: E={} F={}, 2D weight-stationary; ours {}; Eigen\n{}\n{}\n\n", Ffn::E, Ffn::F,
             to_string(isa_in_use()), eigen_in_use().isa(), sentence(load));
}

int run(const Options& options) {
  const std::vector<Row> rows = chosen_rows(options);
  if (options.list) {
    fmt::print("{}", list(rows));
    return 0;
  }
  const LoadWatch load;
  std::vector<Measured> all;
  for (const Row& row : rows) {
    fmt::print(stderr, "{}\n", row.id);
    all.push_back(measure(row, options.patience));
  }
  if (options.json) {
    fmt::print("{}", json(all, load.said()));
  } else {
    print_heading(load.said());
    fmt::print("{}", table(all, options.patience));
  }
  return std::any_of(all.begin(), all.end(), [](const Measured& m) { return !m.error.empty(); })
             ? 1
             : 0;
}

}  // namespace
}  // namespace shardproof::bench

int main(int argc, char** argv) {
  using namespace shardproof::bench;
  try {
    return run(parse_options(argc, argv));
  } catch (const HelpAsked& help) {
    fmt::print("{}", help.what());
    return 0;
  } catch (const WrongUse& error) {
    fmt::print(stderr, "shardproof_bench: {} (see shardproof_bench --help)\n", error.what());
    return 2;
  }
}
