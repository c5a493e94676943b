#pragma once

// A trace that Shardproof writes of a case, and that nothing of it is left out or wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/verdict.h"
#include "tests/golden/trace/write/traced_run.h"

namespace shardproof::dump {

inline dump::Dump own_trace(const std::string& line) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) /
      (std::string("own_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5");
  const Traced traced = trace_case(parse_case(line), file);
  EXPECT_EQ(traced.judgement.verdict, shardproof::Verdict::equal) << line;
  dump::Dump d = dump::read_dump(file.string());
  std::filesystem::remove(file);
  return d;
}

inline void expect_all_judged(const Verdict& v, const std::string& what) {
  EXPECT_EQ(v.compared, v.whole) << what;
  EXPECT_TRUE(v.unknown.empty()) << what << ": " << v.unknown[0].name;
  EXPECT_EQ(v.count(Fit::different), 0)
      << what << ": " << (v.first ? v.rows[*v.first].title : std::string());
  EXPECT_EQ(v.exit_code(), 0) << what;
  for (const Row& row : v.rows) {
    EXPECT_TRUE(row.fit != Fit::not_judged || row.why == "an input") << what << ": " << row.title;
    EXPECT_FALSE(row.incomplete) << what << ": " << row.title;
  }
}

}  // namespace shardproof::dump
