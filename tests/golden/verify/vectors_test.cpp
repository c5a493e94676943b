// The specification's tiny models (tests/data/vectors) on simulated chips: what the engine computes
// under every strategy that divides them equals the files, without the oracle or the judge.
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <type_traits>

#include "engine/run/inference.h"
#include "engine/run/plan_types.h"
#include "golden/compare/comparison.h"
#include "tests/oracle/vector_case.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Compares every complete checkpoint of a run with its file.
class Comparer : public Observer {
 public:
  explicit Comparer(fs::path folder) : folder_(std::move(folder)) {}

  void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    const Role& m = declared.role;
    if (op == nullptr || m.kind != Role::Kind::checkpoint || m.name == "in" || m.last ||
        value.holds_partial())
      return;
    const std::string id = checkpoint_id(scope.pass, scope.layer, m.name);
    const fs::path file = folder_ / (id + ".npy");
    if (m.name == "token")
      expect_equal(id, read_npy<std::int32_t>(file), declared.layout, value);
    else
      expect_equal(id, read_npy<float>(file), declared.layout, value);
  }

  std::set<std::string> seen;

 private:
  template <class T>
  void expect_equal(const std::string& id, const Array<T>& expected, const Layout& declared,
                    const Sharded& value) {
    seen.insert(id);
    ASSERT_EQ(expected.shape, value.shape()) << id;
    const ExpectedBits bits{.shape = expected.shape,
                            .bits = Words<std::uint32_t>::of(expected.data),
                            .integer = std::is_integral_v<T>};
    const Comparison compared = compare(bits, declared, value);
    if (compared.mismatch)
      FAIL() << id << " on chip " << compared.mismatch->chip << ": expected "
             << compared.mismatch->expected << ", got " << compared.mismatch->actual;
  }

  fs::path folder_;
};

class EngineVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(EngineVectors, EveryCheckpointBitForBitInEveryLegalLayout) {
  const fs::path folder = fs::path(SHARDPROOF_SOURCE "/tests/data/vectors") / GetParam();
  const VectorCase v = read_case(folder);
  std::size_t files = 0;
  for (const auto& file : fs::directory_iterator(folder / "expected"))
    if (file.path().stem().string().find("final_norm") == std::string::npos) ++files;
  const IntTensor& prompt = v.request.prompt;
  int layouts = 0;
  for (const char* torus : {"1x1x1", "2x1x1", "1x2x1", "1x1x2"})
    for (const Strategy& prefill : all_strategies())
      // Each with itself, and handed over to one that keeps its caches over the heads and one that
      // keeps them over the batch: all pairs would be a thousand.
      for (const Strategy& decode : {prefill, Strategy(), Strategy::parse("ws2d:batch")}) {
        // One chip knows no layouts.
        if (std::string_view(torus) == "1x1x1" && decodes(prefill) && !(decode == prefill))
          continue;
        Case c;
        c.torus = Torus::parse(torus);
        c.model = v.weights.config();
        c.numerics = v.request.numerics;
        c.prefill = prefill;
        c.decode = decode;
        c.batch = prompt.shape[0];
        c.prompt = prompt.shape[1];
        c.chunk = v.chunk == 0 ? c.prompt : v.chunk;
        c.gen = v.gen;
        RunPlan plan;
        try {
          plan = make_plan(c);
        } catch (const Error&) {
          continue;  // a batch of 3 over two chips, a decode step's one position, a parallel block
        }
        SCOPED_TRACE(std::string(torus) + " " + prefill.to_string() + " " + decode.to_string());
        Comparer comparer(folder / "expected");
        Threads one(1);
        check(plan);
        run_inference(plan, v.weights, prompt, one, &comparer, Hazards::hostile());
        if (HasFatalFailure()) return;
        EXPECT_EQ(comparer.seen.size(), files);
        ++layouts;
      }
  // On one chip 31 that decode and 5 twice; on two those that leave the batch and positions whole.
  EXPECT_GE(layouts, 41 + 3 * 25);
}

INSTANTIATE_TEST_SUITE_P(, EngineVectors,
                         ::testing::Values("bf16", "chunked", "gqa", "int8", "layernorm", "palm",
                                           "serial"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace shardproof
