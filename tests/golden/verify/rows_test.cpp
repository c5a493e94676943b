// Rows of a batch that stand at different positions: what an op makes of each is what it makes of
// that row alone, on the chips and in the scalar model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "engine/ops/local_ops.h"
#include "engine/program/execute.h"
#include "golden/scalar/ops.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

constexpr std::int64_t kRows = 6, kL = 3, kCached = 5;

/// The first token of each row stands here; rows 0 and 3 alike.
const std::vector<std::int64_t> kStart{2, 0, 5, 2, 1, 4};

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

template <class T>
Array<T> row_of(const Array<T>& t, std::int64_t row) {
  Shape shape = t.shape;
  const auto size = static_cast<std::ptrdiff_t>(std::ssize(t.data) / shape[0]);
  shape[0] = 1;
  Array<T> one(shape);
  std::copy_n(t.data.begin() + row * size, size, one.data.begin());
  return one;
}

/// Holds each row of `all`, [B ...], against op(row) bit for bit.
void expect_rows(const Tensor& all, const std::function<Tensor(std::int64_t row)>& alone) {
  for (std::int64_t row = 0; row < kRows; ++row) {
    const Tensor mine = row_of(all, row), want = alone(row);
    ASSERT_EQ(mine.shape, want.shape);
    EXPECT_EQ(std::memcmp(mine.data.data(), want.data.data(), 4 * want.data.size()), 0) << row;
  }
}

const Torus kTorus(2, 1, 3);
const Torus kOne(1, 1, 1);
Threads& threads() {
  static Threads pool(1);
  return pool;
}

Sharded over_batch(const Tensor& t, const char* letters, const Torus& torus) {
  return shard(t, Layout::parse(torus.chips() > 1 ? "B_zx" + std::string(letters + 1) : letters),
               torus);
}
Sharded over_batch(const IntTensor& t, const Torus& torus) {
  return shard(t, Layout::parse(torus.chips() > 1 ? "B_zxL" : "BL"), torus);
}

/// An op of the scalar model on complete values, by its text.
std::vector<Tensor> scalar_results(const std::string& statement, const std::vector<Tensor>& floats,
                                   const IntTensor& pos, std::size_t at,
                                   const std::vector<PassRows>& rows = {}) {
  ModelConfig config;
  config.Q = floats[0].shape.back();
  const Program program = parse_program("rows", statement);
  std::vector<scalar::Value> values;
  std::size_t next = 0;
  for (std::size_t i = 0; i < program.ops[0].args.size(); ++i) {
    const Layout layout = program.inputs.at(i).layout;
    if (i == at)
      values.push_back({layout, pos.shape, {}, pos.data});
    else
      values.push_back({layout, floats[next].shape, {floats[next].data}, {}}), ++next;
  }
  std::vector<const scalar::Value*> args;
  for (const scalar::Value& value : values) args.push_back(&value);
  std::vector<Tensor> results;
  for (const scalar::Value& value :
       scalar::apply(program.ops[0], args, {config, kOne, Schedule::group, rows})) {
    Tensor t(value.shape);
    t.data = value.whole();
    results.push_back(t);
  }
  return results;
}

TEST(Rows, RotateByTheirOwnPositions) {
  const Tensor t = numbers({kRows, kL, 4, 6}), cos = numbers({16, 2}), sin = numbers({16, 2});
  const auto engine = [&](const Tensor& x, const IntTensor& pos, const Torus& torus) {
    return assemble(rope(RopePairs::half_split, over_batch(x, "BLHQ", torus),
                         over_batch(pos, torus), shard(cos, Layout::parse("PJ"), torus),
                         shard(sin, Layout::parse("PJ"), torus), threads()));
  };
  const Tensor all = engine(t, positions(), kTorus);
  expect_rows(all,
              [&](std::int64_t b) { return engine(row_of(t, b), row_of(positions(), b), kOne); });
  const char* const op =
      "input t : BLHQ is q\ninput p : BL is input pos\ninput c : PJ is weight rope_cos\n"
      "input s : PJ is weight rope_sin\nr : BLHQ = rope(t, p, c, s) is q_rot";
  EXPECT_EQ(scalar_results(op, {t, cos, sin}, positions(), 1)[0].data, all.data);
}

TEST(Rows, AppendInTheirOwnSlots) {
  const Tensor cache = numbers({kRows, kCached, 2, 3}), t = numbers({kRows, kL, 2, 3});
  const auto engine = [&](const Tensor& old, const Tensor& x, const IntTensor& pos,
                          const Torus& torus) {
    return assemble(append(over_batch(old, "BMKQ", torus), over_batch(x, "BLKQ", torus),
                           over_batch(pos, torus), threads()));
  };
  const Tensor all = engine(cache, t, positions(), kTorus);
  expect_rows(all, [&](std::int64_t b) {
    return engine(row_of(cache, b), row_of(t, b), row_of(positions(), b), kOne);
  });
  // Row 1 overwrites what it had; row 2 is not that far; slots that nothing wrote are not numbers.
  const std::int64_t width = 2 * 3, M = kCached + kL;
  const auto slot = [&](std::int64_t b, std::int64_t m) {
    return all.data[static_cast<std::size_t>((b * M + m) * width)];
  };
  EXPECT_EQ(slot(1, 0), t.data[static_cast<std::size_t>(1 * kL * width)]);
  EXPECT_EQ(slot(2, 5), t.data[static_cast<std::size_t>(2 * kL * width)]);
  EXPECT_EQ(slot(2, 4), cache.data[static_cast<std::size_t>((2 * kCached + 4) * width)]);
  EXPECT_TRUE(std::isnan(slot(1, 7)));
  const char* const op =
      "input c : BMKQ is previous k_cache\ninput t : BLKQ is k\ninput p : BL is input pos\n"
      "r : BMKQ = append(c, t, p) is k_cache";
  const Tensor scalar = scalar_results(op, {cache, t}, positions(), 2)[0];
  EXPECT_EQ(std::memcmp(scalar.data.data(), all.data.data(), 4 * all.data.size()), 0);
}

TEST(Rows, SeeTheKeysOfTheirOwnPositions) {
  const std::int64_t M = kCached + kL;
  const Tensor q = numbers({kRows, kL, 4, 3}), k = numbers({kRows, M, 2, 3}),
               v = numbers({kRows, M, 2, 3});
  for (const Regime regime : {Regime::exact, Regime::f32}) {
    const auto engine = [&](std::optional<std::int64_t> row, const Torus& torus) {
      const auto part = [&](const auto& t) { return row ? row_of(t, *row) : t; };
      return attend(over_batch(part(q), "BLHQ", torus), over_batch(part(k), "BMKQ", torus),
                    over_batch(part(v), "BMKQ", torus), over_batch(part(positions()), torus),
                    threads(), regime);
    };
    const Attention all = engine({}, kTorus);
    using Member = Sharded Attention::*;
    for (const Member member :
         {&Attention::score, &Attention::max, &Attention::exp, &Attention::denom, &Attention::attn})
      expect_rows(assemble(all.*member),
                  [&](std::int64_t b) { return assemble(engine(b, kOne).*member); });
    // Row 1's first token sees one key, row 2's six: the others' scores are +0.
    const Tensor score = assemble(all.score);
    const auto seen = [&](std::int64_t b) {
      const auto at = score.data.begin() + b * kL * 4 * M;
      return M - std::count(at, at + M, 0.0F);
    };
    EXPECT_EQ(seen(1), 1);
    EXPECT_EQ(seen(2), 6);
    if (regime == Regime::exact) continue;
    const char* const op =
        "input q : BLHQ is q\ninput k : BMKQ is k_cache\ninput v : BMKQ is v_cache\n"
        "input p : BL is input pos\n"
        "s : BLHM, m : BLH, e : BLHM, d : BLH, o : BLHQ = attend(q, k, v, p) is score, max, exp, "
        "denom, attn";
    const std::vector<Tensor> scalar = scalar_results(op, {q, k, v}, positions(), 3);
    EXPECT_EQ(scalar[0].data, score.data);
    EXPECT_EQ(scalar[4].data, assemble(all.attn).data);
  }
}

/// Tokens 3, 1, 0, 2, 3, 2 of L = 3.
const std::vector<PassRows> kPadded{
    {.rows = 1, .start = 2, .tokens = 3}, {.rows = 1, .start = 0, .tokens = 1},
    {.rows = 1, .start = 5, .tokens = 0}, {.rows = 1, .start = 2, .tokens = 2},
    {.rows = 1, .start = 1, .tokens = 3}, {.rows = 1, .start = 4, .tokens = 2}};
const RowTokens kTokens{{3, 1, 0, 2, 3, 2}, {5, 1, 5, 4, 4, 6}};

TEST(Rows, DoNotCacheTheirPadding) {
  const Tensor cache = numbers({kRows, kCached, 2, 3}), t = numbers({kRows, kL, 2, 3});
  const auto appended = [&](const RowTokens* rows, const Torus& torus) {
    return assemble(append(over_batch(cache, "BMKQ", torus), over_batch(t, "BLKQ", torus),
                           over_batch(positions(), torus), threads(), CacheType::as_act, rows));
  };
  const Tensor whole = appended(nullptr, kOne), padded = appended(&kTokens, kOne);
  const std::int64_t width = 2 * 3, M = kCached + kL;
  for (std::int64_t i = 0; i < kRows * M * width; ++i) {
    const auto at = static_cast<std::size_t>(i), b = static_cast<std::size_t>(i / width / M);
    const std::int64_t m = i / width % M, start = kStart[b];
    const bool of_padding = m >= start + kTokens.tokens[b] && m < start + kL;
    const float was = m < kCached ? cache.data[static_cast<std::size_t>(
                                        ((i / width / M) * kCached + m) * width + i % width)]
                                  : std::nanf("");
    const float want = of_padding ? was : whole.data[at];
    EXPECT_EQ(std::memcmp(&padded.data[at], &want, 4), 0) << b << " " << m;
  }
  const Tensor on_chips = appended(&kTokens, kTorus);
  EXPECT_EQ(std::memcmp(on_chips.data.data(), padded.data.data(), 4 * padded.data.size()), 0);
  const char* const op =
      "input c : BMKQ is previous k_cache\ninput t : BLKQ is k\ninput p : BL is input pos\n"
      "r : BMKQ = append(c, t, p) is k_cache";
  const Tensor scalar = scalar_results(op, {cache, t}, positions(), 2, kPadded)[0];
  EXPECT_EQ(std::memcmp(scalar.data.data(), padded.data.data(), 4 * padded.data.size()), 0);
}

TEST(Rows, SeeNoPadding) {
  const std::int64_t M = kCached + kL;
  const Tensor q = numbers({kRows, kL, 4, 3}), k = numbers({kRows, M, 2, 3}),
               v = numbers({kRows, M, 2, 3});
  for (const Regime regime : {Regime::exact, Regime::f32}) {
    const auto scores = [&](const RowTokens* rows, const Torus& torus) {
      return assemble(attend(over_batch(q, "BLHQ", torus), over_batch(k, "BMKQ", torus),
                             over_batch(v, "BMKQ", torus), over_batch(positions(), torus),
                             threads(), regime, nullptr, rows)
                          .exp);
    };
    const Tensor all = scores(nullptr, kOne), padded = scores(&kTokens, kOne);
    for (std::int64_t i = 0; i < std::ssize(padded.data); ++i) {
      const auto b = static_cast<std::size_t>(i / M / 4 / kL);
      const std::int64_t l = i / M / 4 % kL;
      const std::int64_t visible = std::min(kStart[b] + l + 1, kTokens.ends[b]);
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(padded.data[at] != 0.0F, i % M < visible) << b << " " << l << " " << i % M;
      if (l < kTokens.tokens[b]) {
        EXPECT_EQ(padded.data[at], all.data[at]);
      }
    }
    EXPECT_EQ(scores(&kTokens, kTorus).data, padded.data);
    if (regime == Regime::exact) continue;
    const char* const op =
        "input q : BLHQ is q\ninput k : BMKQ is k_cache\ninput v : BMKQ is v_cache\n"
        "input p : BL is input pos\n"
        "s : BLHM, m : BLH, e : BLHM, d : BLH, o : BLHQ = attend(q, k, v, p) is score, max, exp, "
        "denom, attn";
    EXPECT_EQ(scalar_results(op, {q, k, v}, positions(), 3, kPadded)[2].data, padded.data);
  }
}

TEST(Rows, HaveTheirOwnLastTokens) {
  const Tensor x = numbers({kRows, kL, 2});
  // Tokens 3, 3, 1, 2, 2, 2 of L = 3.
  const std::vector<PassRows> rows{{.rows = 2, .start = 0, .tokens = 3},
                                   {.rows = 1, .start = 0, .tokens = 1},
                                   {.rows = 3, .start = 0, .tokens = 2}};
  Tensor want({kRows, 2});
  const std::vector<std::int64_t> last{2, 2, 0, 1, 1, 1};
  for (std::int64_t b = 0; b < kRows; ++b)
    for (std::int64_t e = 0; e < 2; ++e)
      want.data[static_cast<std::size_t>(b * 2 + e)] =
          x.data[static_cast<std::size_t>((b * kL + last[static_cast<std::size_t>(b)]) * 2 + e)];
  const ModelConfig config;
  for (const char* layout : {"BLE", "B_xLE", "B_zxLE", "B_xzLE", "BLE_x"}) {
    const Layout from = Layout::parse(layout);
    std::vector<Layout::Dim> dims = from.dims();
    dims.erase(dims.begin() + 1);
    const Program program = parse_program(
        "rows", "input x : " + from.to_string() + " is out\nr : " + Layout(dims, {}).to_string() +
                    " = last(x) is last out\noutput r");
    const auto run = [&](std::vector<PassRows> of_pass) {
      Execution execution{.config = config, .threads = threads()};
      execution.hazards = Hazards::hostile();
      execution.rows = std::move(of_pass);
      return assemble(
          *execute(program, {{"x", std::make_shared<Sharded>(shard(x, from, kTorus))}}, execution)
               .at("r"));
    };
    EXPECT_EQ(run(rows).data, want.data) << layout;
    // Without rows, or with rows as long as L, the last of L.
    EXPECT_EQ(run({}).data, run({{.rows = kRows, .start = 4, .tokens = kL}}).data) << layout;
    EXPECT_NE(run({}).data, want.data) << layout;
  }
  const char* const op = "input x : BLE is out\nr : BE = last(x) is last out";
  EXPECT_EQ(scalar_results(op, {x}, {}, 9, rows)[0].data, want.data);
}

}  // namespace
}  // namespace shardproof
