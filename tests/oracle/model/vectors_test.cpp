// The specification worked out on seven tiny models (tests/data/vectors): the oracle must give
// every file's bits, and the files must be all that it gives.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "oracle/model/oracle.h"
#include "tests/oracle/vector_case.h"

namespace shardproof {
namespace {

template <class T>
::testing::AssertionResult equal(const Array<T>& expected, const Array<T>& found) {
  if (expected.shape != found.shape) return ::testing::AssertionFailure() << "shapes differ";
  for (std::size_t n = 0; n < expected.data.size(); ++n)
    if (std::memcmp(&expected.data[n], &found.data[n], sizeof(T)) != 0)
      return ::testing::AssertionFailure()
             << "element " << n << " is " << found.data[n] << ", expected " << expected.data[n];
  return ::testing::AssertionSuccess();
}

class Vectors : public ::testing::TestWithParam<const char*> {};

TEST_P(Vectors, EveryCheckpointOfEveryPassBitForBit) {
  const fs::path folder = fs::path(SHARDPROOF_SOURCE "/tests/data/vectors") / GetParam();
  const VectorCase c = read_case(folder);
  const oracle::Answer answer = oracle::run(c.weights, c.request);

  std::set<std::string> files;
  for (const auto& file : fs::directory_iterator(folder / "expected")) {
    ASSERT_EQ(file.path().extension(), ".npy");
    const std::string id = file.path().stem().string();
    files.insert(id);
    if (id.ends_with(".token")) {
      ASSERT_TRUE(answer.tokens.contains(id)) << id;
      EXPECT_TRUE(equal(read_npy<std::int32_t>(file.path()), answer.tokens.at(id))) << id;
    } else {
      ASSERT_TRUE(answer.checkpoints.contains(id)) << id;
      EXPECT_TRUE(equal(read_npy<float>(file.path()), answer.checkpoints.at(id))) << id;
    }
  }
  std::set<std::string> ids;
  for (const auto& [id, value] : answer.checkpoints) ids.insert(id);
  for (const auto& [id, value] : answer.tokens) ids.insert(id);
  EXPECT_EQ(files, ids);
  EXPECT_GE(files.size(), 100U);
}

INSTANTIATE_TEST_SUITE_P(, Vectors,
                         ::testing::Values("bf16", "chunked", "gqa", "int8", "layernorm", "palm",
                                           "serial"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace shardproof
