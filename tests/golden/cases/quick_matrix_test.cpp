// The quick matrix is of cases of the standard one and has all its cells.
#include "golden/cases/quick_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "engine/strategies/strategy.h"
#include "tests/golden/drawn.h"

namespace shardproof::cases {
namespace {

std::set<std::string> cells_of_all(const std::vector<Case>& all) {
  std::set<std::string> cells;
  for (const Case& c : all)
    for (const std::string& cell : quick_cells_of(c)) cells.insert(cell);
  return cells;
}

TEST(QuickMatrix, HasEveryCellOfTheStandardOne) {
  const std::vector<Case> quick = quick_matrix();
  EXPECT_EQ(cells_of_all(quick), cells_of_all(matrix()));
  EXPECT_LT(5 * quick.size(), matrix().size());
  for (const Case& c : quick)
    EXPECT_NE(std::find(matrix().begin(), matrix().end(), c), matrix().end());
  for (const Strategy& s : all_strategies())
    EXPECT_TRUE(std::any_of(quick.begin(), quick.end(), [&](const Case& c) {
      return c.prefill == s || c.decode == s;
    })) << s.to_string();
}

TEST(QuickMatrix, HasNoSuperfluousCase) {
  const std::vector<Case> quick = quick_matrix();
  for (std::size_t i = 0; i < quick.size(); ++i) {
    std::vector<Case> others = quick;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(cells_of_all(others), cells_of_all(quick)) << print_case(quick[i]);
  }
}

/// The regimes' times differ tenfold: of the longest there are no more than they have to be.
TEST(QuickMatrix, HasOneCaseOfTheFieldForEachStrategy) {
  std::map<std::string, int> of_field;
  for (const Case& c : quick_matrix())
    if (c.numerics.regime == Regime::field) ++of_field[c.prefill.to_string()];
  EXPECT_FALSE(of_field.empty());
  for (const auto& [strategy, cases] : of_field) EXPECT_EQ(cases, 1) << strategy;
}

TEST(QuickMatrix, CellsTellCasesApart) {
  const auto cells = [](const std::string& keys) {
    return quick_cells_of(parse_case("torus=2x2x2 batch=8 " + keys));
  };
  const auto plain = cells("model=palm-tiny prefill=ws2d decode=ws1d");
  for (const char* other : {" regime=f32", " block=serial", " weights=int8", " act=bf16",
                            " regime=field", " loop=one-way"})
    EXPECT_NE(cells("model=palm-tiny prefill=ws2d decode=ws1d" + std::string(other)), plain)
        << other;
  EXPECT_NE(cells("model=palm-tiny,K=24 prefill=ws2d decode=ws1d"), plain);
  EXPECT_NE(cells("model=palm-tiny prefill=ws1d decode=ws1d"), plain);
  EXPECT_NE(cells("model=palm-tiny prefill=ws2d decode=ws2d"), plain);
}

}  // namespace
}  // namespace shardproof::cases
