#include "golden/judge/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "golden/compare/joined.h"
#include "golden/compare/row_padding.h"
#include "golden/judge/sampling_value.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Expects a tensor of the oracle, which outlives the result: its words are not copied.
template <class T>
Expected expect(std::string id, const Array<T>& tensor) {
  return {{tensor.shape, Words<std::uint32_t>::of(tensor.data), std::is_same_v<T, std::int32_t>},
          std::move(id)};
}

Expected expect(std::string id, const oracle::field::Tensor& tensor) {
  return {{tensor.shape, {}, false, Words<FieldElement>::of(tensor.data)}, std::move(id)};
}

/// Expects a temporary tensor, whose words the result owns.
template <class T>
Expected expect(std::string id, Array<T>&& made) {
  Expected e = expect(std::move(id), std::as_const(made));
  if (e.numbers.empty())
    e.bits = e.bits.copy();
  else
    e.numbers = e.numbers.copy();
  return e;
}

/// Calls body(words) to change a copy of the bits or the numbers, whichever exist.
template <class Body>
void with_words(Expected& e, Body&& body) {
  const auto changed = [&](auto& words) {
    auto copy = words.copy();
    body(copy);
    words = std::move(copy);
  };
  if (e.numbers.empty())
    changed(e.bits);
  else
    changed(e.numbers);
}

/// Returns the last token of every row of a tensor [B, L, ...], at the positions `last`: [B, ...].
Expected last_tokens(Expected e, const IntTensor& last) {
  const std::int64_t B = e.shape[0];
  const std::int64_t L = e.shape[1];
  e.shape.erase(e.shape.begin() + 1);
  if (L == 1) return e;
  const auto kept = [&](auto& words) {
    const std::size_t row = words.size() / static_cast<std::size_t>(B * L);
    std::vector<std::remove_cvref_t<decltype(words[0])>> rows;
    rows.reserve(row * static_cast<std::size_t>(B));
    for (std::int64_t b = 0; b < B; ++b) {
      const std::size_t begin =
          static_cast<std::size_t>(b * L + last.data[static_cast<std::size_t>(b)]) * row;
      for (std::size_t i = begin; i < begin + row; ++i) rows.push_back(words[i]);
    }
    words = std::move(rows);
  };
  if (e.numbers.empty())
    kept(e.bits);
  else
    kept(e.numbers);
  return e;
}

template <class Word>
Word unwritten() {
  if constexpr (std::is_same_v<Word, FieldElement>)
    return Field::unwritten();
  else
    return std::bit_cast<Word>(std::numeric_limits<float>::quiet_NaN());
}

/// Returns a cache [B, M, K, Q] as chips hold it: NaN in the slots that no token of their row has
/// reached, which exist if other rows are longer. The oracle stores +0 there, since all its values
/// are finite; append() leaves the one NaN (docs/spec.md section 2.2). That NaN is compared like
/// any value: otherwise a token in a slot of no row, or a buffer's former contents, would pass.
Expected with_unwritten_slots(Expected e, const IntTensor& written) {
  const std::int64_t B = e.shape[0];
  const std::int64_t M = e.shape[1];
  const auto end = [&](std::int64_t b) {
    return std::min<std::int64_t>(written.data[static_cast<std::size_t>(b)], M);
  };
  bool full = true;
  for (std::int64_t b = 0; b < B; ++b) full = full && end(b) == M;
  if (full) return e;
  with_words(e, [&](auto& words) {
    const std::int64_t slot = std::ssize(words) / (B * M);
    for (std::int64_t b = 0; b < B; ++b)
      std::fill(words.begin() + (b * M + end(b)) * slot, words.begin() + (b + 1) * M * slot,
                unwritten<typename std::remove_reference_t<decltype(words)>::value_type>());
  });
  return e;
}

/// Returns the logits [BV] that a pass samples by: of a text's model those of each row's last
/// token, which `room` then holds.
const Tensor& sampled_logits(const oracle::Answer& answer, const std::string& pass, Tensor& room) {
  const Tensor& logits = answer.checkpoints.at(checkpoint_id(pass, -1, "logits"));
  if (logits.shape.size() == 2) return logits;
  const std::int64_t B = logits.shape[0], L = logits.shape[1], V = logits.shape[2];
  const IntTensor& last = answer.last.at(pass);
  room = Tensor({B, V});
  for (std::int64_t b = 0; b < B; ++b)
    std::copy_n(logits.data.begin() + (b * L + last.data[static_cast<std::size_t>(b)]) * V, V,
                room.data.begin() + b * V);
  return room;
}

/// Returns the best logit of each of C equal blocks of the vocabulary, the first of equal ones: its
/// value or its index. A block of padding has none.
Expected candidates(const oracle::Answer& answer, const std::string& id, const std::string& pass,
                    std::int64_t C, bool index, const DimPadding& padding) {
  Tensor room;
  const Tensor& logits = sampled_logits(answer, pass, room);
  const std::int64_t B = logits.shape[0];
  const std::int64_t V = logits.shape[1];
  const std::int64_t width = padding.placed('V', V) / C;
  Expected e{{{B, C}, {}, index}, id};
  std::vector<std::uint32_t> bits;
  if (padding.pads('V')) e.padding.assign(static_cast<std::size_t>(B * C), false);
  for (std::int64_t i = 0; i < B * C; ++i) {
    const float* const row = logits.data.data() + i / C * V;
    const std::int64_t first = i % C * width;
    if (first >= V) {
      e.padding[static_cast<std::size_t>(i)] = true;
      bits.push_back(0);
      continue;
    }
    std::int64_t best = first;
    for (std::int64_t v = first; v < std::min(first + width, V); ++v)
      if (row[v] > row[best]) best = v;
    bits.push_back(index ? static_cast<std::uint32_t>(best)
                         : std::bit_cast<std::uint32_t>(row[best]));
  }
  e.bits = std::move(bits);
  return e;
}

/// Returns the field regime's best logit of each of C blocks of the vocabulary: value or index.
Expected candidates(const oracle::field::Answer& answer, const std::string& id,
                    const std::string& pass, std::int64_t C, bool index,
                    const DimPadding& padding) {
  const std::int64_t V = answer.config.V;
  const std::int64_t placed = padding.placed('V', V);
  Expected e =
      expect(id, index ? answer.indices(pass, C, placed) : answer.candidates(pass, C, placed));
  e.integer = index;
  if (padding.pads('V'))
    for (std::size_t i = 0; i < e.numbers.size(); ++i)
      e.padding.push_back(static_cast<std::int64_t>(i) % C * (placed / C) >= V);
  return e;
}

/// Returns a value of random sampling, from the logits and the random numbers.
Expected drawing(const oracle::Answer& answer, const std::string& id, const std::string& pass,
                 const ValueRow& row, const Shape& shape, const DimPadding& padding) {
  const std::int64_t blocks = row.dims.find('C') == row.dims.npos ? 1 : shape.at(1);
  Tensor room;
  const Tensor& logits = sampled_logits(answer, pass, room);
  return {sampling_value(row.name, logits, answer.draws.at(pass), blocks,
                         padding.placed('V', logits.shape[1])),
          id};
}
/// Throws Error("oracle_id", ...): the field samples greedily.
Expected drawing(const oracle::field::Answer&, const std::string& id, const std::string&,
                 const ValueRow&, const Shape&, const DimPadding&) {
  throw Error("oracle_id", fmt::format("{:?} is not a value of the field regime", id));
}

Expected token(const oracle::Answer& answer, const std::string& id) {
  return expect(id, answer.tokens.at(id));
}
Expected token(const oracle::field::Answer& answer, const std::string& id) {
  Expected e = expect(id, answer.checkpoints.at(id));
  e.integer = true;
  return e;
}

/// Returns the pass whose caches hold all prefixes: the last prefix pass; "" if there is none.
std::string last_of_prefixes(const std::vector<std::string>& passes) {
  std::string last;
  for (std::int64_t i = 0; i < std::ssize(passes); ++i)
    if (passes[static_cast<std::size_t>(i)] == prefix_pass(i)) last = prefix_pass(i);
  return last;
}

/// Returns the caches of rows behind the slots of the prefixes that they continue.
template <class T>
Array<T> joined(const Array<T>& prefixes, const Array<T>& own, std::string_view letters) {
  Array<T> whole;
  whole.shape = own.shape;
  whole.shape.at(letters.find('M')) += prefixes.shape.at(letters.find('M'));
  for (const JoinedElement& from : joined_elements(letters, prefixes.shape, own.shape))
    whole.data.push_back((from.of_prefix ? prefixes : own).data[from.place]);
  return whole;
}

std::string full_checkpoint(const Scope& scope, const std::string& pass, const std::string& name) {
  const ValueRow* const row = value_row(name, scope.rows);
  if (row != nullptr && row->kind == ValueKind::layer_input)
    return scope.layer == 0 ? checkpoint_id(pass, 0, "embed", scope.rows)
                            : checkpoint_id(pass, scope.layer - 1, "out", scope.rows);
  return checkpoint_id(pass, scope.layer, name, scope.rows);
}

/// Return an expected weight, from the run's weights or the oracle.
Expected weight_of(const Weights& weights, const std::string& id) {
  const std::shared_ptr<const Tensor> weight = weights.at(id);
  Expected e = expect("weight " + id, *weight);
  e.weight = weight;
  return e;
}
Expected weight_of(const oracle::field::Answer& answer, const std::string& id) {
  return expect("weight " + id, answer.weight(id));
}
Tensor constant_of(const Weights& weights, const std::string&) {
  return constant_tensor(weights.config());
}
const oracle::field::Tensor& constant_of(const oracle::field::Answer& answer,
                                         const std::string& name) {
  return answer.weight(name);
}

template <class Answer, class Given>
Expected whole_value(const Answer& answer, const Given& weights, const Scope& scope,
                     const Role& role, const Shape& shape, const DimPadding& padding) {
  const std::string id = full_checkpoint(scope, scope.pass, role.name);
  const ValueRow* const row = value_row(role, scope.rows);
  // Slots that no token of a row has reached hold 0 in the model of a text, as the oracle has them.
  const bool cache = row != nullptr && row->cache && scope.rows == nullptr;
  switch (role.kind) {
    case Role::Kind::checkpoint:
      if (row != nullptr && row->integer) return token(answer, id);
      if (cache)
        return with_unwritten_slots(expect(id, answer.checkpoints.at(id)),
                                    answer.written.at(scope.pass));
      return expect(id, answer.checkpoints.at(id));
    case Role::Kind::raw:
      return expect("raw " + id, answer.raw_of(id));
    case Role::Kind::scaled:
      return expect("scaled " + id, answer.scaled_of(id));
    case Role::Kind::unstored:
      return expect("unstored " + id, answer.unstored_of(id));
    case Role::Kind::stat:
      if (row != nullptr && row->per_block)
        return candidates(answer, "stat " + id, scope.pass, shape.back(), row->integer, padding);
      if (row != nullptr && row->drawing)
        return drawing(answer, "stat " + id, scope.pass, *row, shape, padding);
      return expect("stat " + id, answer.stats.at(id));
    case Role::Kind::weight:
      return weight_of(weights, weight_id(scope.layer, role.name, scope.rows));
    case Role::Kind::constant:
      return expect("constant " + role.name, constant_of(weights, role.name));
    case Role::Kind::input:
      return expect("input " + id, answer.inputs.at(id));
    case Role::Kind::previous: {
      if (scope.previous.empty()) {  // nothing is cached before the first pass
        Shape empty = shape;
        const auto slots = row == nullptr ? std::string_view::npos : row->dims.find('M');
        if (slots < empty.size()) empty[slots] = 0;
        return {{empty, {}, false}, "previous " + role.name};
      }
      const std::string before = full_checkpoint(scope, scope.previous, role.name);
      Expected held = expect("previous " + before, answer.checkpoints.at(before));
      return cache ? with_unwritten_slots(std::move(held), answer.written.at(scope.previous))
                   : held;
    }
    case Role::Kind::joined:
      return expect("joined " + id, joined(answer.checkpoints.at(full_checkpoint(
                                               scope, last_of_prefixes(answer.passes), role.name)),
                                           answer.checkpoints.at(id), row->dims));
    case Role::Kind::prefix: {
      // [B,M,K,Q] of the prefix passes is read as [N,T,K,Q] by later passes.
      const std::string filled = last_of_prefixes(answer.passes);
      const std::string made = full_checkpoint(scope, filled, role.name);
      Expected held = expect("prefix " + made, answer.checkpoints.at(made));
      return cache ? with_unwritten_slots(std::move(held), answer.written.at(filled)) : held;
    }
  }
  return {};
}

/// Returns the rows' last tokens for a role with `last`, otherwise the whole value, with its
/// padding.
template <class Answer>
Expected kept_rows(const Answer& answer, const Scope& scope, const Role& role, Expected whole) {
  Expected kept =
      role.last ? last_tokens(std::move(whole), answer.last.at(scope.pass)) : std::move(whole);
  const auto tokens = answer.tokens_in.find(scope.pass);
  if (tokens == answer.tokens_in.end()) return kept;
  const std::vector<std::int32_t>& samples = answer.samples.at(scope.pass).data;
  const std::vector<bool> of_rows = row_padding(
      role, kept.shape,
      {{tokens->second.data.begin(), tokens->second.data.end()}, {samples.begin(), samples.end()}},
      scope.rows);
  if (kept.padding.empty()) kept.padding = of_rows;
  // Blocks of candidates without an id are padding already.
  for (std::size_t i = 0; i < of_rows.size(); ++i)
    if (of_rows[i]) kept.padding[i] = true;
  return kept;
}

}  // namespace

Expected expected_value(const oracle::Answer& answer, const Weights& weights, const Scope& scope,
                        const Role& role, const Shape& shape, const DimPadding& padding) {
  return kept_rows(answer, scope, role, whole_value(answer, weights, scope, role, shape, padding));
}

Expected expected_value(const oracle::field::Answer& answer, const Scope& scope, const Role& role,
                        const Shape& shape, const DimPadding& padding) {
  return kept_rows(answer, scope, role, whole_value(answer, answer, scope, role, shape, padding));
}

Expected as_placed(Expected e, const Role& role, std::string_view letters,
                   const DimPadding& padding, const ModelRows* of_model) {
  if (padding.none() || letters.size() != e.shape.size()) return e;
  const Shape shape = padding.placed(letters, e.shape);
  if (shape == e.shape) return e;
  const WeightRow* const weight =
      role.kind == Role::Kind::weight ? weight_row(role.name, of_model) : nullptr;
  const bool scale = weight != nullptr && weight->kind == WeightKind::scale;
  // The field's padding of a scale depends on its lanes and is not known here.
  const bool known = weight != nullptr && !(scale && !e.numbers.empty());
  if (!known) {
    // Keep the existing padding of ended rows.
    if (e.padding.empty()) e.padding.resize(static_cast<std::size_t>(element_count(e.shape)));
    e.padding = with_padding(e.padding, e.shape, shape, true);
  }
  if (e.numbers.empty())
    e.bits = with_padding(e.bits.copy(), e.shape, shape,
                          std::bit_cast<std::uint32_t>(scale ? 1.0F : 0.0F));
  else
    e.numbers = with_padding(e.numbers.copy(), e.shape, shape, FieldElement{});
  e.shape = shape;
  return e;
}

}  // namespace shardproof
