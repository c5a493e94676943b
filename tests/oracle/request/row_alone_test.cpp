// Rows of unequal length: each has the values that it has alone, at its tokens, and +0 elsewhere.
#include "oracle/request/detail/row_alone.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "oracle/field/answer.h"
#include "tests/oracle/random_case.h"
#include "tests/oracle/row_values.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {
namespace {

using std::size_t;

std::vector<std::int64_t> draw_lengths(std::int64_t rows, std::int64_t prompt) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < rows; ++b) lengths.push_back(draw(1, static_cast<int>(prompt)));
  return lengths;
}

/// A row's own run, not by passes_alone: its own prompt in chunks of as many tokens.
Request alone(const Drawn& d, size_t b, std::int64_t length) {
  Request own = d.request;
  own.prompt = IntTensor({1, length});
  for (size_t p = 0; p < own.prompt.data.size(); ++p)
    own.prompt.data[p] =
        d.request.prompt.data[b * static_cast<size_t>(d.request.prompt.shape[1]) + p];
  own.passes = Passes(1, length, d.chunk, d.gen);
  return own;
}

RC_GTEST_PROP(RowsAlone, HaveTheirOwnValuesInABatch, ()) {
  const Drawn d = draw_case();
  const std::int64_t B = d.request.prompt.shape[0], prompt = d.request.prompt.shape[1];
  const std::vector<std::int64_t> lengths = draw_lengths(B, prompt);
  RC_PRE(std::any_of(lengths.begin(), lengths.end(), [&](auto n) { return n < prompt; }));
  const Weights weights = generate_weights(d.config, d.seed);
  Request request = d.request;
  request.passes = Passes(lengths, prompt, d.chunk, d.gen);
  const Answer batch = run(weights, request);
  std::vector<Answer> rows;
  for (size_t b = 0; b < lengths.size(); ++b) rows.push_back(run(weights, alone(d, b, lengths[b])));

  RC_ASSERT(std::ssize(batch.passes) == request.passes.size());
  expect_rows(batch.checkpoints, rows.size(), [&](size_t b, const std::string& id) {
    return own_value(rows[b], rows[b].checkpoints, id);
  });
  expect_rows(batch.stats, rows.size(), [&](size_t b, const std::string& id) {
    return own_value(rows[b], rows[b].stats, id);
  });
  for (const auto& [id, checkpoint] : batch.checkpoints)
    if (value_row(name_of(id))->contraction)
      expect_rows(std::map<std::string, Tensor>{{id, batch.raw_of(id)}}, rows.size(),
                  [&](size_t b, const std::string& of) {
                    return rows[b].checkpoints.contains(of) ? &rows[b].raw_of(of) : nullptr;
                  });
  for (const std::string& id : batch.with_scale)
    expect_rows(std::map<std::string, Tensor>{{id, batch.scaled_of(id)}}, rows.size(),
                [&](size_t b, const std::string& of) {
                  return rows[b].checkpoints.contains(of) ? &rows[b].scaled_of(of) : nullptr;
                });
  for (const auto& [id, unstored] : batch.unstored)
    expect_rows(std::map<std::string, Tensor>{{id, unstored}}, rows.size(),
                [&](size_t b, const std::string& of) {
                  return rows[b].checkpoints.contains(of) ? &rows[b].unstored_of(of) : nullptr;
                });
  // Each row's tokens, in order; no pass has a token of a row that its own run has not.
  for (size_t b = 0; b < rows.size(); ++b) {
    std::vector<std::int32_t> own, together;
    for (const std::string& pass : rows[b].passes)
      if (const auto at = rows[b].tokens.find(pass + ".token"); at != rows[b].tokens.end())
        own.push_back(at->second.data[0]);
    for (const std::string& pass : batch.passes)
      if (batch.samples.at(pass).data[b] == 1)
        together.push_back(batch.tokens.at(pass + ".token").data[b]);
    RC_ASSERT(own == together);
  }
}

RC_GTEST_PROP(RowsAlone, DoNotSeeWhatStandsBesideThem, ()) {
  const Drawn d = draw_case();
  const std::int64_t B = d.request.prompt.shape[0], prompt = d.request.prompt.shape[1];
  const std::vector<std::int64_t> lengths = draw_lengths(B, prompt);
  const Weights weights = generate_weights(d.config, d.seed);
  Request request = d.request;
  request.passes = Passes(lengths, prompt, d.chunk, d.gen);
  const Answer before = run(weights, request);
  // Other ids at padding, and in the other rows.
  const auto kept = static_cast<size_t>(draw(0, static_cast<int>(B) - 1));
  for (size_t at = 0; at < request.prompt.data.size(); ++at) {
    const size_t b = at / static_cast<size_t>(prompt), p = at % static_cast<size_t>(prompt);
    if (b != kept || static_cast<std::int64_t>(p) >= lengths[b])
      request.prompt.data[at] =
          static_cast<std::int32_t>((request.prompt.data[at] + 1) % d.config.V);
  }
  const Answer after = run(weights, request);
  for (const auto& [id, value] : before.checkpoints) {
    const Tensor& other = after.checkpoints.at(id);
    const size_t row = value.data.size() / static_cast<size_t>(B);
    RC_ASSERT(std::memcmp(value.data.data() + kept * row, other.data.data() + kept * row,
                          row * sizeof(float)) == 0 ||
              lengths == std::vector<std::int64_t>(lengths.size(), prompt));
  }
}

/// The field's numbers of a row are its own, too.
TEST(RowsAlone, HaveTheirOwnNumbersOfTheField) {
  field::Request request;
  request.config = parse_model("palm-tiny,layers=2,E=6,F=8,H=2,Q=4,V=24");
  request.act = NumberFormat::bf16;
  request.weights = NumberFormat::int8;
  const std::vector<std::int64_t> lengths{5, 2, 4, 1};
  request.ids = generate_ids(request.config, 3, 4, 7);
  request.passes = Passes(lengths, 5, 2, 3);
  const field::Answer batch = field::run(request);
  for (size_t b = 0; b < lengths.size(); ++b) {
    field::Request own = request;
    own.ids = ids_alone(request.ids, b);
    own.passes = Passes(1, lengths[b], 2, 3);
    const field::Answer row = field::run(own);
    for (const auto& [id, value] : row.checkpoints) {
      // A decode step of the batch is the same step of the row.
      const field::Tensor& all = batch.checkpoints.at(id);
      for (size_t at = 0; at < all.data.size(); ++at) {
        const Element e = element(at, all.shape, value.shape);
        if (e.b != b) continue;
        EXPECT_EQ(all.data[at], e.held ? value.data[e.of_row] : field::Number{}) << id << " " << at;
      }
    }
    for (const auto& [pass, hashed] : row.hashed_logits)
      for (size_t v = 0; v < hashed.data.size(); ++v)
        EXPECT_EQ(batch.hashed_logits.at(pass).data[b * hashed.data.size() + v], hashed.data[v]);
  }
  EXPECT_EQ(batch.candidates("decode.1", 4).shape, (Shape{4, 4}));
}

TEST(PassesAlone, AreThoseInWhichTheRowHasTokens) {
  const Passes all({5, 2, 1}, 5, 2, 3);
  for (const auto& [row, length] : {std::pair<size_t, std::int64_t>{0, 5}, {1, 2}, {2, 1}})
    EXPECT_EQ(passes_alone(all, row), Passes(1, length, 2, 3)) << row;
}

}  // namespace
}  // namespace shardproof::oracle
