// The walk over a text against the model that is written by hand: every value that both have, bit
// for bit, for the whole family of keys.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "oracle/field/answer.h"
#include "oracle/graph/field_run.h"
#include "oracle/graph/run.h"
#include "oracle/request/storage.h"
#include "tests/oracle/random_case.h"
#include "weights/text/writer.h"

namespace shardproof::oracle {
namespace {

/// The names of lines that have S of a contraction, before scale, bias and st.
std::string raw_name(const std::string& id) {
  const auto dot = id.rfind('.');
  return id.substr(0, dot + 1) + "raw_" + id.substr(dot + 1);
}

void require_bits(const std::string& id, const Tensor& walked, const Tensor& by_hand) {
  if (walked.shape != by_hand.shape || std::memcmp(walked.data.data(), by_hand.data.data(),
                                                   walked.data.size() * sizeof(float)) != 0) {
    RC_LOG() << id << " differs\n";
    RC_ASSERT(walked.shape == by_hand.shape);
    for (size_t i = 0; i < walked.data.size(); ++i)
      if (walked.data[i] != by_hand.data[i])
        RC_FAIL(id + " at " + std::to_string(i) + ": " + std::to_string(walked.data[i]) + " and " +
                std::to_string(by_hand.data[i]));
    RC_FAIL(id + ": a zero of the other sign");
  }
}

/// The last position of each row of logits, [BV].
template <class T>
Array<T> last_position(const Array<T>& x, const IntTensor& last) {
  const std::int64_t L = x.shape[1], V = x.shape[2];
  Array<T> y({x.shape[0], V});
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    std::copy_n(x.data.begin() + (b * L + last.data[static_cast<size_t>(b)]) * V, V,
                y.data.begin() + b * V);
  return y;
}

/// Returns how many values were compared.
int require_same(const graph::Answer& walked, const Answer& by_hand) {
  int compared = 0;
  const auto compare = [&](const std::string& id, const Tensor& value) {
    const auto at = walked.values.find(id);
    RC_ASSERT(at != walked.values.end());
    require_bits(id, at->second, value);
    ++compared;
  };
  for (const auto& [id, value] : by_hand.checkpoints) {
    if (id.ends_with(".logits")) {
      const std::string pass = id.substr(0, id.rfind('.'));
      require_bits(id, last_position(walked.values.at(id), by_hand.last.at(pass)), value);
      ++compared;
    } else if (walked.values.contains(id) || !id.ends_with("token")) {
      compare(id, value);
    }
  }
  for (const auto& [id, value] : by_hand.stats) compare(id, value);
  for (const auto& [id, value] : by_hand.raw)
    if (walked.values.contains(raw_name(id)) && !id.ends_with("logits") && !id.ends_with("score") &&
        !id.ends_with("attn"))
      compare(raw_name(id), value), --compared;
  RC_ASSERT(walked.tokens.size() == by_hand.tokens.size());
  for (const auto& [id, token] : by_hand.tokens) RC_ASSERT(walked.tokens.at(id).data == token.data);
  return compared;
}

graph::Answer walked(const Drawn& d, const Passes& passes) {
  const Numerics& n = d.request.numerics;
  const ModelText text = parse_model_text(text_of_model(d.config, n.weights));
  const TextSizes sizes = sizes_of(text);
  const Weights stored = as_stored(generate_weights(d.config, d.seed), n.weights);
  return graph::run([&](const std::string& id) { return stored.find(id); },
                    {.text = text,
                     .sizes = sizes,
                     .act = n.act,
                     .prompt = d.request.prompt,
                     .passes = passes,
                     .sampling = d.request.sampling,
                     .seed = d.request.seed});
}

RC_GTEST_PROP(GraphWalk, HasTheBitsOfTheModelByHand, ()) {
  const Drawn d = draw_case();
  RC_LOG() << d << "\n" << text_of_model(d.config, d.request.numerics.weights) << "\n";
  const IntTensor& prompt = d.request.prompt;
  RC_ASSERT(require_same(walked(d, Passes(prompt.shape[0], prompt.shape[1], d.chunk, d.gen)),
                         d.answer()) > 10);
}

/// The same in the field: a function of a formula has the name by which docs/field.md knows it.
RC_GTEST_PROP(GraphWalkInTheField, HasTheNumbersOfTheModelByHand, ()) {
  const Drawn d = draw_case();
  const IntTensor& prompt = d.request.prompt;
  const std::int64_t rows = prompt.shape[0], length = prompt.shape[1];
  const NumberFormat weights = d.request.numerics.weights;
  RC_LOG() << d << "\n" << text_of_model(d.config, weights) << "\n";
  const ModelText text = parse_model_text(text_of_model(d.config, weights));
  const TextSizes sizes = sizes_of(text);
  std::vector<std::int64_t> lengths;
  const bool ragged = *rc::gen::arbitrary<bool>();
  for (std::int64_t b = 0; b < rows; ++b)
    lengths.push_back(ragged ? draw(1, static_cast<int>(length)) : length);
  const Passes passes(lengths, length, d.chunk, d.gen);
  const IntTensor ids = generate_ids(d.config, d.seed, rows, length + d.gen);
  const FieldSetting setting{.seed = d.seed};
  const auto walked =
      graph::run_in_field({text, sizes, d.request.numerics.act, ids, passes, setting});
  const field::Answer by_hand = field::run({.config = d.config,
                                            .weights = weights,
                                            .act = d.request.numerics.act,
                                            .ids = ids,
                                            .passes = passes,
                                            .setting = setting});
  int compared = 0;
  const auto compare = [&](const std::string& id, const field::Tensor& value) {
    field::Tensor own = walked.at(id);
    if (id.ends_with(".logits"))
      own = last_position(own, by_hand.last.at(id.substr(0, id.rfind('.'))));
    RC_LOG() << id << "\n";
    RC_ASSERT(own.shape == value.shape);
    RC_ASSERT(own.data == value.data);
    ++compared;
  };
  for (const auto& [id, value] : by_hand.checkpoints)
    if (!id.ends_with(".token")) compare(id, value);
  for (const auto& [id, value] : by_hand.stats) compare(id, value);
  RC_ASSERT(compared > 10);
}

RC_GTEST_PROP(GraphWalk, RunsRowsOfUnequalLengthAlone, ()) {
  Drawn d = draw_case();
  const std::int64_t rows = d.request.prompt.shape[0], longest = d.request.prompt.shape[1];
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < rows; ++b) lengths.push_back(draw(1, static_cast<int>(longest)));
  RC_LOG() << d << "\n" << text_of_model(d.config, d.request.numerics.weights) << "\n";
  const Passes passes(lengths, longest, d.chunk, d.gen);
  Request whole = d.request;
  whole.passes = passes;
  require_same(walked(d, passes), run(generate_weights(d.config, d.seed), whole));
}

}  // namespace
}  // namespace shardproof::oracle
