#pragma once

// Case lines that are judged equal, as products: tests/golden/verify/equal.cases.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "golden/cases/products.h"
#include "golden/verify/verify.h"
#include "tests/golden/text_file.h"
#include "tests/sanitized.h"

namespace shardproof {

/// Judges the cases of a section: all are equal. `look` may see more of each; `words` stand before
/// the section.
inline void expect_equal_cases(
    const std::string& section,
    const std::function<void(const Case&, const Judgement&)>& look = nullptr,
    const std::string& words = "") {
  OracleMemo memo;
  OneInN some(5, "cases");
  int judged = 0;
  const std::string text = section_of_file("tests/golden/verify/equal.cases", section);
  for (const Case& c : cases::cases_of(words + "\n" + text)) {
    if (!some()) continue;
    const Judgement j = verify_case(c, memo);
    EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
    if (look) look(c, j);
    ++judged;
  }
  EXPECT_GT(judged, 0) << section;
}

}  // namespace shardproof
