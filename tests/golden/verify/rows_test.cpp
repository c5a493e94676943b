// What padding sees, which no judge of a run looks at: an op and the scalar model give it the keys
// of its row's own tokens and no others. That rows rotate, append, see and end by their own
// positions is judged in whole runs (unequal_rows_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/ops/local_ops.h"
#include "golden/scalar/ops.h"

namespace shardproof {
namespace {

constexpr std::int64_t kRows = 6, kL = 3, kCached = 5, kM = kCached + kL;

/// The first token of each row stands here; tokens 3, 1, 0, 2, 3, 2 of L = 3.
const std::vector<std::int64_t> kStart{2, 0, 5, 2, 1, 4};
const RowTokens kTokens{{3, 1, 0, 2, 3, 2}, {5, 1, 5, 4, 4, 6}};

std::vector<PassRows> pass_rows() {
  std::vector<PassRows> rows;
  for (std::size_t b = 0; b < kStart.size(); ++b)
    rows.push_back({.rows = 1, .start = kStart[b], .tokens = kTokens.tokens[b]});
  return rows;
}

Tensor numbers(const Shape& shape) {
  Tensor t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<float>((i * 37 + 11) % 101) / 16.0F - 3.0F;
  return t;
}

IntTensor positions() {
  IntTensor t({kRows, kL});
  for (std::int64_t i = 0; i < kRows * kL; ++i)
    t.data[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(kStart[static_cast<std::size_t>(i / kL)] + i % kL);
  return t;
}

const Tensor kQ = numbers({kRows, kL, 4, 3}), kK = numbers({kRows, kM, 2, 3}),
             kV = numbers({kRows, kM, 2, 3});

/// The exponentials of the op, [B, L, H, M].
Tensor exponentials(const RowTokens* rows, const Torus& torus, Regime regime) {
  Threads threads(1);
  const std::string B = torus.chips() > 1 ? "B_zx" : "B";
  const auto over_batch = [&](const auto& t, const char* rest) {
    return shard(t, Layout::parse(B + rest), torus);
  };
  return assemble(attend(over_batch(kQ, "LHQ"), over_batch(kK, "MKQ"), over_batch(kV, "MKQ"),
                         over_batch(positions(), "L"), threads, regime, nullptr, rows)
                      .exp);
}

/// Those of the scalar model.
std::vector<float> scalar_exponentials() {
  ModelConfig config;
  config.Q = 3;
  const Program program = parse_program(
      "rows",
      "input q : BLHQ is q\ninput k : BMKQ is k_cache\ninput v : BMKQ is v_cache\n"
      "input p : BL is input pos\n"
      "s : BLHM, m : BLH, e : BLHM, d : BLH, o : BLHQ = attend(q, k, v, p) is score, max, exp, "
      "denom, attn");
  std::vector<scalar::Value> values;
  for (const Tensor* t : {&kQ, &kK, &kV})
    values.push_back({program.inputs[values.size()].layout, t->shape, {t->data}, {}});
  values.push_back({program.inputs[3].layout, {kRows, kL}, {}, positions().data});
  std::vector<const scalar::Value*> args;
  for (const scalar::Value& value : values) args.push_back(&value);
  return scalar::apply(program.ops[0], args, {config, Torus(1, 1, 1), Schedule::group, pass_rows()})
      .at(2)
      .whole();
}

TEST(Rows, SeeNoPadding) {
  for (const Regime regime : {Regime::exact, Regime::f32}) {
    const Tensor all = exponentials(nullptr, Torus(1, 1, 1), regime);
    const Tensor padded = exponentials(&kTokens, Torus(1, 1, 1), regime);
    for (std::int64_t i = 0; i < std::ssize(padded.data); ++i) {
      const auto b = static_cast<std::size_t>(i / kM / 4 / kL);
      const std::int64_t l = i / kM / 4 % kL;
      const std::int64_t visible = std::min(kStart[b] + l + 1, kTokens.ends[b]);
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(padded.data[at] != 0.0F, i % kM < visible) << b << " " << l << " " << i % kM;
      if (l < kTokens.tokens[b]) {
        EXPECT_EQ(padded.data[at], all.data[at]);
      }
    }
    EXPECT_EQ(exponentials(&kTokens, Torus(2, 1, 3), regime).data, padded.data);
    if (regime == Regime::f32) {
      EXPECT_EQ(scalar_exponentials(), padded.data);
    }
  }
}

}  // namespace
}  // namespace shardproof
