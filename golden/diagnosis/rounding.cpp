// Edits of roundings: to bf16, missing and extra.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/norm_row.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/bf16.h"

namespace shardproof::diagnosis {
namespace {

/// Returns a number rounded to bf16; exact if its bounds round to a single value.
bounds::FunctionValue rounded(const bounds::FunctionValue& v) {
  const bounds::Interval to =
      bounds::values(bounds::around(v.center, v.radius), NumberFormat::bf16);
  return {0.5 * (to.low + to.high), 0.5 * (to.high - to.low), 0.0};
}

bounds::IntervalTensor rounded(const bounds::IntervalTensor& x) {
  bounds::IntervalTensor y = x;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.set(i, rounded(bounds::FunctionValue{x.center[i], x.radius[i], 0.0}));
  return y;
}

/// Tries a prediction with and without a rounded result.
void both(const Question& q, Search& search, Candidate c, const Prediction& at) {
  c.at = at;
  search.consider(c);
  if (q.format() == NumberFormat::bf16 || !q.summed().empty()) return;
  c.detail += ", and so is the result";
  c.parameters += 6;
  c.format = NumberFormat::bf16;
  search.consider(std::move(c));
}

void both(const Question& q, Search& search, const Candidate& c, const Step::Change& change) {
  Candidate with_result = c;
  with_result.detail += ", and so is the result";
  if (!search.wants(c) && !search.wants(with_result)) return;
  try {
    both(q, search, c, q.logical(q.under(change)));
  } catch (const Error& e) {
    if (e.label() != "bounds_c1") throw;
  }
}

/// Tries all terms of a contraction rounded, or one.
void try_terms(const Question& q, Search& search, const Candidate& c, const Contraction& sum,
               bool operands, bool matrices, const Contraction::Term* alone = nullptr) {
  Contraction other = sum;
  for (Contraction::Term& t : other.terms) {
    if (alone != nullptr && t.matrix != alone->matrix) continue;
    if (operands) t.x = std::make_shared<const bounds::IntervalTensor>(rounded(*t.x));
    if (!matrices) continue;
    std::vector<double> w = *t.w;
    for (double& v : w) v = rounded(bounds::FunctionValue{v, 0.0, 0.0}).center;
    t.w = std::make_shared<const std::vector<double>>(std::move(w));
  }
  both(q, search, c,
       q.logical([&by = q.declared(), o = std::make_shared<const Contraction>(std::move(other))](
                     std::size_t g) { return o->at(g, by); }));
}

/// Cuts the contracted dim of the first term over `list` and that of the last over `last`.
void try_partial_sums(const Question& q, Search& search, const Row& row, const Contraction& c,
                      const Axes& list, const Axes& last) {
  std::vector<std::vector<int>> blocks;
  for (const Contraction::Term& t : c.terms)
    blocks.push_back(blocks_of(t, t.letters[0], q.torus().size(list)));
  for (int& r : blocks.back()) r = q.torus().block(with_block(q.torus(), 0, last, r), list);
  if (std::any_of(blocks.begin(), blocks.end(), [](const auto& b) { return b.empty(); })) return;
  const int n = q.torus().size(list);
  Candidate partial = candidate(row, list.to_string());
  partial.parameters += list.size();
  const Prediction at =
      q.logical([&q, n, blocks, sum = std::make_shared<const Contraction>(c)](std::size_t g) {
        const auto& d = q.declared();
        bounds::FunctionValue all;
        for (int r = 0; r < n; ++r) {
          bounds::FunctionValue one;
          for (std::size_t t = 0; t < blocks.size(); ++t) {
            const bounds::FunctionValue term = sum->partial_sum(g, t, blocks[t], r, d);
            one = t == 0 ? term : plus(one, term, d);
          }
          all = r == 0 ? rounded(one) : plus(all, rounded(one), d);
        }
        if (!sum->scales.empty()) {
          all = times(all, sum->scales[g % sum->columns]);
          all.radius += 2 * d.operations.unit * std::abs(all.center);
        }
        for (const Contraction::Bias& bias : sum->biases)
          all = plus(all, {bias.values[g % sum->columns], 0.0, 0.0}, d);
        return all;
      });
  partial.axes = list.sorted().to_string();
  both(q, search, std::move(partial), at);
}

}  // namespace

Edit result_as(NumberFormat format) {
  return [=](const Question& q, Search& search, const Row& row) {
    Candidate c = candidate(row);
    c.at = q.logical([&q](std::size_t g) { return q.expected_at(g); });
    c.format = format;
    search.consider(std::move(c));
  };
}

Edit arithmetic_in_bf16(bool sums, bool operations) {
  return [=](const Question& q, Search& search, const Row& row) {
    bounds::DeclaredArithmetic by = q.declared();
    if (sums) by.sums = NumberFormat::bf16;
    if (operations) by.operations = bounds::Arithmetic::of(NumberFormat::bf16, 1);
    Candidate c = candidate(row);
    c.format = NumberFormat::bf16;
    Trial(q, search).try_change(std::move(c), {.declared = by});
  };
}

Edit terms_in_bf16(bool operands, bool matrices) {
  return [=](const Question& q, Search& search, const Row& row) {
    try_terms(q, search, candidate(row), *contraction_of(q), operands, matrices);
  };
}

Edit each_term_in_bf16() {
  return [](const Question& q, Search& search, const Row& row) {
    const Contraction sum = *contraction_of(q);
    for (const Contraction::Term& t : sum.terms) {
      if (sum.terms.size() == 1) return;
      const auto with = [&](const std::string& words, int more, bool operands, bool matrices) {
        Candidate c = candidate(row, words);
        c.parameters += more;
        try_terms(q, search, c, sum, operands, matrices, &t);
      };
      with(t.operand + " is", 0, true, false);
      with(t.matrix + " is", 1, false, true);
      with(t.operand + " and " + t.matrix + " are", 2, true, true);
    }
  };
}

Edit partial_sums_in_bf16() {
  return [](const Question& q, Search& search, const Row& row) {
    const Contraction sum = *contraction_of(q);
    for (const Axes& list : q.lists())
      for (const Axes& last : q.lists())
        if (last.sorted() == list.sorted() && (sum.terms.size() > 1 || last == list))
          try_partial_sums(q, search, row, sum, list, last);
  };
}

Edit operands_in_bf16() {
  return [](const Question& q, Search& search, const Row& row) {
    const std::vector<std::string>& ids = q.operands();
    const bool several = ids.size() > 1;
    Step::Change all;
    for (const std::string& id : ids) {
      const bounds::IntervalTensor value = rounded(q.value(id));
      all.values.emplace_back(id, value);
      if (several)
        both(q, search, candidate(row, id.substr(id.rfind('.') + 1) + " is"),
             {.values = {{id, value}}});
    }
    Candidate c = candidate(row, "the operands are");
    c.parameters = several ? 3 : 0;
    if (!ids.empty()) both(q, search, c, all);
  };
}

/// The weights of a mean, rounded after the division.
Edit shares_in_bf16() {
  return [](const Question& q, Search& search, const Row& row) {
    const auto [id, divisor] = *mean_of(q);
    const bounds::IntervalTensor& e = q.value(id);
    const bounds::IntervalTensor& Z = q.value(divisor);
    bounds::IntervalTensor weights = e, one(Z.shape);
    const std::size_t M = e.size() / Z.size();
    for (double& z : one.center) z = 1.0;
    for (std::size_t i = 0; i < e.size(); ++i) {
      const double p = e.center[i] / Z.center[i / M];
      const double relative =
          Z.radius[i / M] / Z.center[i / M] + q.declared().operations.unit + 0x1p-53;
      weights.set(
          i, rounded(bounds::FunctionValue{p, e.radius[i] / Z.center[i / M] + relative * p, 0.0}));
    }
    both(q, search, candidate(row), {.values = {{id, weights}, {divisor, one}}});
  };
}

Edit statistics_in_bf16(bool mean) {
  return [=](const Question& q, Search& search, const Row& row) {
    const auto norm = std::make_shared<const NormRow>(q);
    if (!norm->fits()) return;
    const auto E = norm->width();
    const auto rows = std::make_shared<std::map<std::size_t, NormRow::Statistics>>();
    both(q, search, candidate(row), q.logical([norm, rows, E, mean](std::size_t g) {
      auto known = rows->find(g / E);
      if (known == rows->end()) {
        NormRow::Statistics s = norm->statistics(
            g / E, [](std::size_t) { return true; }, static_cast<double>(E));
        const double extent = mean ? static_cast<double>(E) : 1.0;
        s.ss = times(rounded(times(s.ss, 1 / extent)), extent);
        known = rows->emplace(g / E, s).first;
      }
      return norm->at(g, known->second);
    }));
  };
}

Edit tables_in_bf16() {
  return [](const Question& q, Search& search, const Row& row) {
    Step::Change change;
    for (const TextWeight* const weight : q.step().weights(WeightKind::rope_table)) {
      Tensor t = *q.weight(q.step().weight_id(*weight));
      for (float& v : t.data) v = round_to_bf16(v);
      change.weights.emplace(q.step().weight_id(*weight), std::move(t));
    }
    both(q, search, candidate(row), change);
  };
}

}  // namespace shardproof::diagnosis
