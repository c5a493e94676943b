// Rows that share prefixes: the passes over these are of each one's first row, all others of the
// rows, whose own caches begin behind their prefix; and each row has the values that it has alone.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "oracle/field/answer.h"
#include "oracle/request/detail/row_alone.h"
#include "tests/oracle/random_case.h"
#include "tests/oracle/row_values.h"

namespace shardproof::oracle {
namespace {

using std::size_t;
using Ints = std::vector<std::int32_t>;

/// A row's own run, not by passes_alone: its prefix in chunks, then what is left of its prompt,
/// then its steps, over one cache.
Passes one_row(std::int64_t prefix, std::int64_t length, std::int64_t chunk, std::int64_t gen) {
  std::vector<PassPlan> list;
  const auto add = [&](const std::string& name, Phase phase, std::int64_t start,
                       std::int64_t tokens, bool sample) {
    const std::string previous = list.empty() ? "" : list.back().name;
    list.push_back({name, previous, phase, tokens, start, {{1, start, tokens}}, sample});
  };
  for (std::int64_t start = 0; start < prefix; start += chunk)
    add(prefix_pass(start / chunk), Phase::prefill, start, std::min(chunk, prefix - start), false);
  for (std::int64_t start = prefix; start < length; start += chunk)
    add(prefill_pass((start - prefix) / chunk), Phase::prefill, start,
        std::min(chunk, length - start), start + chunk >= length);
  for (std::int64_t step = 1; step < gen; ++step)
    add(decode_pass(step), Phase::decode, length + step - 1, 1, true);
  return Passes(list);
}

/// Three rows of 4, 3 and 5 tokens; the first two go on from 7 8, the third from 5 6.
struct ThreeRows {
  ModelConfig config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10");
  Weights weights = generate_weights(config, 1);
  Request request;

  ThreeRows() {
    request.prompt = IntTensor({3, 5});
    request.prompt.data = {7, 8, 1, 2, 0,  //
                           7, 8, 3, 0, 0,  //
                           5, 6, 4, 9, 2};
    request.passes = Passes({4, 3, 5}, 5, 2, 2, {2, 2});
  }
};

TEST(SharedPrefixes, AreReadOnceAndRowsBeginBehindThem) {
  const ThreeRows three;
  const Answer answer = run(three.weights, three.request);
  EXPECT_EQ(answer.passes,
            (std::vector<std::string>{"prefix.c0", "prefill.c0", "prefill.c1", "decode.1"}));
  EXPECT_EQ(answer.inputs.at("prefix.c0.ids").data, (Ints{7, 8, 5, 6}));
  EXPECT_EQ(answer.inputs.at("prefill.c0.ids").data, (Ints{1, 2, 3, 0, 4, 9}));
  EXPECT_EQ(answer.inputs.at("prefill.c1.ids").data, (Ints{0, 0, 2}));
  EXPECT_EQ(answer.inputs.at("prefix.c0.pos").data, (Ints{0, 1, 0, 1}));
  EXPECT_EQ(answer.inputs.at("prefill.c0.pos").data, (Ints{2, 3, 2, 3, 2, 3}));
  EXPECT_EQ(answer.inputs.at("decode.1.pos").data, (Ints{4, 3, 5}));
  // Slots of the caches of the pass: of the prefixes, then of the rows' own.
  EXPECT_EQ(answer.written.at("prefix.c0").data, (Ints{2, 2}));
  EXPECT_EQ(answer.written.at("prefill.c0").data, (Ints{2, 1, 2}));
  EXPECT_EQ(answer.written.at("prefill.c1").data, (Ints{2, 1, 3}));
  EXPECT_EQ(answer.written.at("decode.1").data, (Ints{3, 2, 4}));
  EXPECT_EQ(answer.samples.at("prefix.c0").data, (Ints{0, 0}));
  EXPECT_EQ(answer.samples.at("prefill.c0").data, (Ints{1, 1, 0}));
  EXPECT_EQ(answer.samples.at("prefill.c1").data, (Ints{0, 0, 1}));
  EXPECT_FALSE(answer.tokens.contains("prefix.c0.token"));
  const auto shape = [&](const char* id) { return answer.checkpoints.at(id).shape; };
  EXPECT_EQ(shape("prefix.c0.logits"), (Shape{2, 10}));
  EXPECT_EQ(shape("prefix.c0.layer0.k_cache"), (Shape{2, 2, 1, 4}));
  EXPECT_EQ(shape("prefix.c0.layer0.score"), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(shape("prefill.c0.layer0.k_cache"), (Shape{3, 2, 1, 4}));
  EXPECT_EQ(shape("prefill.c0.layer0.score"), (Shape{3, 2, 2, 4}));
  EXPECT_EQ(shape("prefill.c1.layer0.v_cache"), (Shape{3, 3, 1, 4}));
  EXPECT_EQ(shape("decode.1.layer0.v_cache"), (Shape{3, 4, 1, 4}));
  EXPECT_EQ(shape("decode.1.layer0.exp"), (Shape{3, 1, 2, 6}));
}

TEST(SharedPrefixes, AreTheBeginningsOfARowsOwnRun) {
  const ThreeRows three;
  const Answer batch = run(three.weights, three.request);
  // The first row as anybody would run it, in one chunk.
  Request own;
  own.prompt = IntTensor({1, 4});
  own.prompt.data = {7, 8, 1, 2};
  own.passes = Passes(1, 4, 0, 2);
  const Answer alone = run(three.weights, own);
  const auto of = [](const Answer& answer, const char* id, size_t from, size_t count) {
    const auto begin = answer.checkpoints.at(id).data.begin() + static_cast<std::ptrdiff_t>(from);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  const size_t slot = 4;  // K·Q
  EXPECT_EQ(of(batch, "prefix.c0.layer0.k_cache", 0, 2 * slot),
            of(alone, "prefill.c0.layer0.k_cache", 0, 2 * slot));
  EXPECT_EQ(of(batch, "prefill.c0.layer0.k_cache", 0, 2 * slot),
            of(alone, "prefill.c0.layer0.k_cache", 2 * slot, 2 * slot));
  EXPECT_EQ(of(batch, "decode.1.layer0.v_cache", 0, 3 * slot),
            of(alone, "decode.1.layer0.v_cache", 2 * slot, 3 * slot));
  // Five keys, by position; the batch's sixth is the third row's.
  for (const size_t head : {0U, 1U}) {
    EXPECT_EQ(of(batch, "decode.1.layer0.score", head * 6, 5),
              of(alone, "decode.1.layer0.score", head * 5, 5));
    EXPECT_EQ(of(batch, "decode.1.layer0.score", head * 6 + 5, 1), std::vector<float>{0.0F});
  }
  for (const char* token : {"prefill.c0.token", "decode.1.token"})
    EXPECT_EQ(batch.tokens.at(token).data[0], alone.tokens.at(token).data[0]) << token;
}

/// Holds every value of a batch against those of its rows, each of which ran alone by one_row.
template <class T>
void expect_rows_alone(const ModelValues<T>& batch, std::vector<ModelValues<T>> rows,
                       const SharedPrefix& prefix) {
  const auto over_prefixes = [](const std::string& id) { return id.starts_with("prefix."); };
  // The batch's own caches begin behind the prefix.
  for (ModelValues<T>& row : rows)
    for (auto& [id, value] : row.checkpoints)
      if (value_row(name_of(id))->cache && !over_prefixes(id)) {
        value.shape[1] -= prefix.length;
        const std::int64_t first = prefix.length * value.shape[2] * value.shape[3];
        value.data.erase(value.data.begin(), value.data.begin() + first);
      }
  const auto expect = [&](const std::string& id, const T& value, auto&& of) {
    if (!over_prefixes(id)) {
      expect_rows(std::map<std::string, T>{{id, value}}, rows.size(),
                  [&](size_t b, const std::string&) { return of(rows[b]); });
      return;
    }
    RC_ASSERT(value.shape[0] == prefix.rows);
    for (size_t b = 0; b < rows.size(); ++b) {  // not the first row alone that has the prefix
      const T* const own = of(rows[b]);
      const auto n =
          static_cast<size_t>(prefix.of_row(static_cast<std::int64_t>(b), std::ssize(rows)));
      RC_ASSERT(own != nullptr);
      RC_ASSERT(value.data.size() == own->data.size() * static_cast<size_t>(prefix.rows));
      RC_ASSERT(std::memcmp(value.data.data() + n * own->data.size(), own->data.data(),
                            own->data.size() * sizeof own->data[0]) == 0);
    }
  };
  const auto where_run = [](const std::string& id, auto&& get) {
    return [id, get](const ModelValues<T>& row) {
      return row.checkpoints.contains(id) ? &get(row, id) : nullptr;
    };
  };
  for (const auto& [id, value] : batch.checkpoints) {
    expect(id, value,
           [&of = id](const ModelValues<T>& row) { return own_value(row, row.checkpoints, of); });
    if (value_row(name_of(id))->contraction)
      expect(id, batch.raw_of(id),
             where_run(id, [](const ModelValues<T>& row, const std::string& of) -> const T& {
               return row.raw_of(of);
             }));
  }
  for (const auto& [id, value] : batch.stats)
    expect(id, value,
           [&of = id](const ModelValues<T>& row) { return own_value(row, row.stats, of); });
  for (const std::string& id : batch.with_scale)
    expect(id, batch.scaled_of(id),
           where_run(id, [](const ModelValues<T>& row, const std::string& of) -> const T& {
             return row.scaled_of(of);
           }));
  for (const auto& [id, value] : batch.unstored)
    expect(id, value,
           where_run(id, [](const ModelValues<T>& row, const std::string& of) -> const T& {
             return row.unstored_of(of);
           }));
}

/// Prefixes and lengths for a batch of rows and a prompt of at least 2.
struct DrawnPrefix {
  DrawnPrefix(std::int64_t rows, std::int64_t prompt)
      : prefix{draw(1, static_cast<int>(prompt) - 1), draw(1, static_cast<int>(rows))} {
    const auto least = static_cast<int>(prefix.length) + 1;
    for (std::int64_t b = 0; b < rows; ++b)
      lengths.push_back(draw(least, static_cast<int>(prompt)));
  }

  SharedPrefix prefix;
  std::vector<std::int64_t> lengths;
};

RC_GTEST_PROP(SharedPrefixes, LeaveEachRowTheValuesThatItHasAlone, ()) {
  const Drawn d = draw_case();
  const std::int64_t B = d.request.prompt.shape[0], prompt = d.request.prompt.shape[1];
  RC_PRE(prompt > 1);
  const DrawnPrefix drawn(B, prompt);
  const Weights weights = generate_weights(d.config, d.seed);
  Request request = d.request;
  request.prompt = generate_prompt(d.config, d.seed, B, prompt, drawn.prefix);
  request.passes = Passes(drawn.lengths, prompt, d.chunk, d.gen, drawn.prefix);
  const Answer batch = run(weights, request);
  RC_ASSERT(std::ssize(batch.passes) == request.passes.size());
  std::vector<ModelValues<Tensor>> rows;
  for (size_t b = 0; b < drawn.lengths.size(); ++b) {
    Request own = request;
    own.prompt = ids_alone(request.prompt, b);
    own.passes = one_row(drawn.prefix.length, drawn.lengths[b],
                         d.chunk == 0 ? prompt : std::min(d.chunk, prompt), d.gen);
    Answer alone = run(weights, own);
    for (const auto& [id, token] : alone.tokens)
      RC_ASSERT(batch.tokens.at(id).data[b] == token.data[0]);
    rows.push_back(std::move(alone));
  }
  expect_rows_alone(batch, std::move(rows), drawn.prefix);
}

/// The field's numbers likewise.
RC_GTEST_PROP(SharedPrefixes, LeaveEachRowItsNumbersOfTheField, ()) {
  field::Request request;
  request.config = parse_model("palm-tiny,layers=2,E=6,F=8,H=2,Q=4,V=24");
  request.act = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  request.weights = *rc::gen::element(NumberFormat::f32, NumberFormat::int8);
  const std::int64_t B = draw(1, 4), prompt = draw(2, 5), chunk = draw(1, 5), gen = draw(1, 3);
  const DrawnPrefix drawn(B, prompt);
  request.ids = generate_ids(request.config, 3, B, prompt + gen - 1, drawn.prefix);
  request.passes = Passes(drawn.lengths, prompt, chunk, gen, drawn.prefix);
  const field::Answer batch = field::run(request);
  std::vector<ModelValues<field::Tensor>> rows;
  for (size_t b = 0; b < drawn.lengths.size(); ++b) {
    field::Request own = request;
    own.ids = ids_alone(request.ids, b);
    own.passes = one_row(drawn.prefix.length, drawn.lengths[b], std::min(chunk, prompt), gen);
    field::Answer alone = field::run(own);
    for (const auto& [pass, hashed] : alone.hashed_logits)
      for (size_t v = 0; v < hashed.data.size(); ++v)
        RC_ASSERT(batch.hashed_logits.at(pass).data[b * hashed.data.size() + v] == hashed.data[v]);
    rows.push_back(std::move(alone));
  }
  expect_rows_alone(batch, std::move(rows), drawn.prefix);
}

TEST(PassesAlone, BeginWithThePrefixOfTheRow) {
  const ThreeRows three;
  for (const auto& [row, length] : {std::pair<size_t, std::int64_t>{0, 4}, {1, 3}, {2, 5}})
    EXPECT_EQ(passes_alone(three.request.passes, row), one_row(2, length, 2, 2)) << row;
  EXPECT_FALSE(is_one_batch(three.request.passes));
  EXPECT_FALSE(is_one_batch(Passes({5, 5}, 5, 2, 2, {2, 1})));
  EXPECT_FALSE(is_one_batch(Passes({5, 4}, 5, 2, 2)));
  EXPECT_TRUE(is_one_batch(Passes({5, 5}, 5, 2, 2)));
}

}  // namespace
}  // namespace shardproof::oracle
