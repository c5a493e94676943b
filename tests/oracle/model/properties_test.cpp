// What must hold of the oracle for any model: a row's values depend on its own past and on nothing
// else, and the Answer accounts for every checkpoint and every rounding.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "oracle/model/oracle.h"
#include "oracle/numeric/detail/functions.h"
#include "tests/oracle/random_case.h"
#include "tests/weights/on_demand.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {
namespace {

using std::size_t;

bool same(const float* a, const float* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && same(a.data.data(), b.data.data(), a.data.size());
}

/// Every checkpoint of every pass against the one prefill pass of `whole`, which has all the
/// positions: row [b, i] of a pass is its row [b, start + i].
void require_rows_of(const Drawn& d, const Answer& whole, const Answer& answer) {
  for (const std::string& pass : answer.passes) {
    const auto& pos = answer.inputs.at(pass + ".pos");
    const auto batch = static_cast<size_t>(pos.shape[0]);
    const auto length = static_cast<size_t>(pos.shape[1]);
    const auto start = static_cast<size_t>(pos.data[0]);
    for (const CheckpointSpec& spec : checkpoint_specs(d.config)) {
      for (int layer = 0; layer < (spec.per_layer ? d.config.layers : 1); ++layer) {
        const int at = spec.per_layer ? layer : -1;
        if (spec.dims.substr(0, 2) != "BL" && spec.dims.substr(0, 2) != "BM") continue;
        const Tensor& part = answer.checkpoints.at(checkpoint_id(pass, at, spec.name));
        const Tensor& all = whole.checkpoints.at(checkpoint_id("prefill.c0", at, spec.name));
        const auto all_length = static_cast<size_t>(all.shape[1]);
        const bool cache = spec.dims[1] == 'M';
        const bool keys = spec.dims.back() == 'M';
        const size_t rows = cache ? start + length : length;
        RC_ASSERT(static_cast<size_t>(part.shape[1]) == rows);
        const size_t width =
            keys ? static_cast<size_t>(part.shape[3]) : part.data.size() / (batch * rows);
        const size_t heads = keys ? static_cast<size_t>(part.shape[2]) : 1;
        const size_t all_width = keys ? static_cast<size_t>(all.shape[3]) : width;
        for (size_t b = 0; b < batch; ++b)
          for (size_t i = 0; i < rows; ++i)
            for (size_t h = 0; h < heads; ++h) {
              const size_t p = cache ? i : start + i;
              const float* mine = &part.data[((b * rows + i) * heads + h) * width];
              const float* other = &all.data[((b * all_length + p) * heads + h) * all_width];
              RC_ASSERT(same(mine, other, width));
            }
      }
    }
  }
}

RC_GTEST_PROP(OracleProperties, ChunkedPrefillEqualsWholePrefill, ()) {
  Drawn d = draw_case();
  RC_LOG() << d << "\n";
  const Answer chunked = d.answer();
  const std::int64_t length = d.request.prompt.shape[1];
  const std::int64_t chunk = d.chunk == 0 ? length : d.chunk;
  const std::int64_t chunks = (length + chunk - 1) / chunk;
  RC_TAG(chunks > 1 ? "chunked" : "whole");
  d.chunk = 0;
  const Answer whole = d.answer();
  RC_ASSERT(std::ssize(chunked.passes) == std::ssize(whole.passes) + chunks - 1);

  const std::string last = prefill_pass(chunks - 1);
  RC_ASSERT(chunked.tokens.size() == whole.tokens.size());
  RC_ASSERT(chunked.tokens.at(last + ".token").data == whole.tokens.at("prefill.c0.token").data);
  RC_ASSERT(
      same(chunked.checkpoints.at(last + ".logits"), whole.checkpoints.at("prefill.c0.logits")));
  for (const auto& [id, value] : whole.checkpoints)
    if (id.starts_with("decode.")) RC_ASSERT(same(chunked.checkpoints.at(id), value));

  Answer prefill = chunked;
  prefill.passes.resize(static_cast<size_t>(chunks));
  require_rows_of(d, whole, prefill);
}

RC_GTEST_PROP(OracleProperties, DecodeEqualsAPrefillOfWhatItRead, ()) {
  Drawn d = draw_case();
  d.gen = draw(2, 4);
  RC_LOG() << d << "\n";
  const Answer stepwise = d.answer();

  const IntTensor prompt = d.request.prompt;
  const auto batch = static_cast<size_t>(prompt.shape[0]);
  const auto length = static_cast<size_t>(prompt.shape[1]);
  const auto added = static_cast<size_t>(d.gen - 1);
  IntTensor longer({prompt.shape[0], prompt.shape[1] + d.gen - 1});
  for (size_t b = 0; b < batch; ++b)
    for (size_t i = 0; i < length + added; ++i)
      longer.data[b * (length + added) + i] =
          i < length
              ? prompt.data[b * length + i]
              : stepwise.inputs.at(decode_pass(static_cast<std::int64_t>(i - length) + 1) + ".ids")
                    .data[b];
  d.request.prompt = longer;
  d.chunk = 0;
  d.gen = 1;
  const Answer whole = d.answer();
  require_rows_of(d, whole, stepwise);
  const std::string last = stepwise.passes.back();
  RC_ASSERT(
      same(stepwise.checkpoints.at(last + ".logits"), whole.checkpoints.at("prefill.c0.logits")));
  RC_ASSERT(stepwise.tokens.at(last + ".token").data == whole.tokens.at("prefill.c0.token").data);
}

/// Two rows, of which the second has a shorter prompt and is padded.
RC_GTEST_PROP(OracleProperties, ARowOfItsOwnLengthIsThatRowAlone, ()) {
  Drawn d = draw_case();
  const std::int64_t length = draw(2, 6), shorter = draw(1, static_cast<int>(length) - 1);
  RC_LOG() << d << " shorter=" << shorter << "\n";
  d.gen = 3;
  d.chunk = 0;
  d.request.prompt = generate_prompt(d.config, d.seed, 2, length);
  const auto pass = [&](std::int64_t n) {
    PassPlan plan = Passes(2, length, 0, d.gen).at(n);
    plan.rows = {
        {.rows = 1, .start = plan.cached, .tokens = plan.L},
        {.rows = 1, .start = n == 0 ? 0 : shorter + n - 1, .tokens = n == 0 ? shorter : 1}};
    return plan;
  };
  Request ragged = d.request;
  ragged.passes = Passes({pass(0), pass(1), pass(2)});
  const Answer together = run(generate_weights(d.config, d.seed), ragged);
  for (const std::int64_t row : {0, 1}) {
    const std::int64_t own = row == 0 ? length : shorter;
    Drawn alone = d;
    alone.request.prompt = IntTensor({1, own});
    std::copy_n(d.request.prompt.data.begin() + row * length, own,
                alone.request.prompt.data.begin());
    const Answer answer = alone.answer();
    for (const std::string& name : answer.passes) {
      const auto b = static_cast<size_t>(row);
      RC_ASSERT(together.tokens.at(name + ".token").data[b] ==
                answer.tokens.at(name + ".token").data[0]);
      const auto V = static_cast<size_t>(d.config.V);
      RC_ASSERT(same(&together.checkpoints.at(name + ".logits").data[b * V],
                     answer.checkpoints.at(name + ".logits").data.data(), V));
      RC_ASSERT(together.last.at(name).data[b] == answer.last.at(name).data[0]);
    }
  }
}

/// Large models: each weight is read for the pass and layer that need it, and then given up.
RC_GTEST_PROP(OracleProperties, WeightsThatAreReadOnDemandGiveTheSameAnswer, ()) {
  const Drawn d = *rc::gen::exec(draw_case);
  Request request = d.request;
  request.passes = Passes(request.prompt.shape[0], request.prompt.shape[1], d.chunk, d.gen);
  const Weights weights = generate_weights(d.config, d.seed);
  std::map<std::string, int> read;
  const Weights each = on_demand(weights, 0, [&read](const std::string& name) { ++read[name]; });
  const Answer whole = run(weights, request), parts = run(each, request);
  RC_ASSERT(whole.tokens.size() == parts.tokens.size());
  for (const auto& [id, token] : whole.tokens) RC_ASSERT(parts.tokens.at(id).data == token.data);
  RC_ASSERT(whole.checkpoints.size() == parts.checkpoints.size());
  for (const auto& [id, value] : whole.checkpoints) {
    RC_ASSERT(parts.checkpoints.at(id).shape == value.shape);
    RC_ASSERT(parts.checkpoints.at(id).data == value.data);
  }
  // Int8 weights are made of whole ones at once.
  if (request.numerics.weights != NumberFormat::int8)
    RC_ASSERT(read.at("layer0.wq") == static_cast<int>(request.passes.size()));
}

RC_GTEST_PROP(OracleProperties, PermutingTheBatchPermutesEveryResult, ()) {
  Drawn d = draw_case();
  RC_LOG() << d << "\n";
  const Answer plain = d.answer();
  const auto batch = static_cast<size_t>(d.request.prompt.shape[0]);
  std::vector<size_t> order(batch);
  std::iota(order.begin(), order.end(), size_t{0});
  std::rotate(order.begin(), order.begin() + draw(0, static_cast<int>(batch) - 1), order.end());
  if (*rc::gen::arbitrary<bool>()) std::reverse(order.begin(), order.end());

  const auto permuted = [&](const auto& t) {
    auto y = t;
    const size_t n = t.data.size() / batch;
    for (size_t b = 0; b < batch; ++b) std::copy_n(&t.data[order[b] * n], n, &y.data[b * n]);
    return y;
  };
  d.request.prompt = permuted(d.request.prompt);
  const Answer other = d.answer();
  const auto require = [&](const auto& mine, const auto& theirs) {
    RC_ASSERT(mine.size() == theirs.size());
    for (const auto& [id, value] : mine) RC_ASSERT(same(permuted(value), theirs.at(id)));
  };
  require(plain.checkpoints, other.checkpoints);
  require(plain.raw, other.raw);
  require(plain.unstored, other.unstored);
  require(plain.stats, other.stats);
  for (const auto& [id, value] : plain.tokens)
    RC_ASSERT(permuted(value).data == other.tokens.at(id).data);
}

RC_GTEST_PROP(OracleProperties, TheAnswerAccountsForEveryCheckpointAndRounding, ()) {
  const Drawn d = draw_case();
  RC_LOG() << d << "\n";
  const Answer answer = d.answer();
  std::set<std::string> expected, found;
  for (const auto& [id, value] : answer.checkpoints) found.insert(id);
  for (const auto& [id, value] : answer.tokens) found.insert(id);
  for (size_t n = 0; n < answer.passes.size(); ++n) {
    const std::string& pass = answer.passes[n];
    const bool last_chunk = n + static_cast<size_t>(d.gen) >= answer.passes.size();
    for (const CheckpointSpec& spec : checkpoint_specs(d.config))
      for (int layer = 0; layer < (spec.per_layer ? d.config.layers : 1); ++layer)
        if (!spec.integer || last_chunk)
          expected.insert(checkpoint_id(pass, spec.per_layer ? layer : -1, spec.name));
  }
  RC_ASSERT(found == expected);

  static const std::set<std::string> never_stored{"score", "max", "exp", "denom", "logits"};
  for (const auto& [id, value] : answer.checkpoints) {
    Tensor stored = answer.unstored_of(id);
    const bool rounds = d.request.numerics.act == NumberFormat::bf16 &&
                        !never_stored.contains(id.substr(id.rfind('.') + 1));
    if (rounds)
      for (float& v : stored.data) v = bf16(v);
    RC_ASSERT(same(stored, value));
  }
  // Without a scale, a bias and a rounding, S is the checkpoint; of score and attn it never is.
  for (const auto& [id, value] : answer.raw) {
    RC_ASSERT(answer.checkpoints.at(id).shape == value.shape);
    if (d.request.numerics.weights != NumberFormat::int8 && d.config.bias == Bias::none &&
        d.config.embed_scale == 1.0F)
      RC_ASSERT(id.ends_with(".score") || id.ends_with(".attn") || id.ends_with(".logits") ||
                same(answer.unstored_of(id), value));
  }
}

double rms(const Tensor& t) {
  double sum = 0;
  for (float v : t.data) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(t.data.size()));
}

/// Over the queries of the pass: the mean of the largest probability, and of the entropy over that
/// of a uniform choice.
struct Sharpness {
  double largest = 0, entropy = 0;
};

Sharpness sharpness(const Tensor& exp, const Tensor& denom) {
  const auto L = static_cast<size_t>(exp.shape[1]), H = static_cast<size_t>(exp.shape[2]);
  const auto M = static_cast<size_t>(exp.shape[3]);
  Sharpness sum;
  double queries = 0;
  for (size_t n = 0; n < denom.data.size(); ++n) {
    const size_t visible = M - L + n / H % L + 1;
    if (visible < 4) continue;  // too few keys to be sharp or flat
    double largest = 0, entropy = 0;
    for (size_t p = 0; p < visible; ++p) {
      const double share = static_cast<double>(exp.data[n * M + p]) / denom.data[n];
      largest = std::max(largest, share);
      if (share > 0) entropy -= share * std::log(share);
    }
    sum.largest += largest * static_cast<double>(visible);
    sum.entropy += entropy / std::log(static_cast<double>(visible));
    ++queries;
  }
  return {sum.largest / queries, sum.entropy / queries};
}

void require_living_activations(const std::string& model) {
  const ModelConfig config = parse_model(model);
  Request request;
  request.prompt = generate_prompt(config, 1, 2, 16);
  request.passes = Passes(2, 16, 0, 1);
  const Answer answer = run(generate_weights(config, 1), request);
  for (int layer = 0; layer < config.layers; ++layer) {
    const auto of = [&](const char* name) -> const Tensor& {
      return answer.checkpoints.at(checkpoint_id("prefill.c0", layer, name));
    };
    const Sharpness s = sharpness(of("exp"), of("denom"));
    std::printf(
        "%s layer %d: rms q %.3f gate %.3f hidden %.3f attn %.3f block_out %.3f out %.3f; "
        "largest share %.2f of uniform, entropy %.3f of uniform\n",
        model.c_str(), layer, rms(of("q")), rms(of("gate")), rms(of("hidden")), rms(of("attn")),
        rms(of("block_out")), rms(of("out")), s.largest, s.entropy);
    for (const char* name : {"q", "gate", "hidden", "attn", "block_out", "out"}) {
      EXPECT_GT(rms(of(name)), 0.02) << model << " layer " << layer << " " << name;
      EXPECT_LT(rms(of(name)), 50) << model << " layer " << layer << " " << name;
    }
    EXPECT_GT(s.largest, 1.2) << "attention is uniform";
    EXPECT_GT(s.entropy, 0.2) << "attention is one-hot";
    EXPECT_LT(s.entropy, 0.98) << "attention is uniform";
  }
}

TEST(Activations, NeitherVanishNorExplodeNorAttendUniformly) {
  require_living_activations("palm-tiny");
  require_living_activations("palm-tiny,layers=8");
  require_living_activations("palm-mini");
}

}  // namespace
}  // namespace shardproof::oracle
