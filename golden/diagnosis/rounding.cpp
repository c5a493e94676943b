// Missing and extra roundings to bf16.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/norm_row.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"

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

class Rounding : Family {
 public:
  using Family::Family;

  void run() {
    const NumberFormat own = q_.format();
    // Partial sums are rounded separately.
    if (own != NumberFormat::bf16 && q_.summed().empty())
      of_result(NumberFormat::bf16, "the result is rounded to bf16", 5);
    if (own == NumberFormat::f64 && q_.summed().empty())
      of_result(NumberFormat::f32, "the result is rounded to f32", 4);
    if (own == NumberFormat::bf16)
      of_result(NumberFormat::f32, "the result is not rounded to bf16", 4);
    if (const std::optional<Contraction> c = contraction_of(q_); c && q_.name() != "embed")
      of_sum(*c);
    else
      of_operands();
    if (q_.name() == "norm" || q_.name() == "norm2" || q_.name() == "final_norm") of_statistics();
    if (q_.name() == "q_rot" || q_.name() == "k_rot") of_tables();
  }

 private:
  Candidate candidate(std::string detail, int parameters, Prediction at = {},
                      std::optional<NumberFormat> format = std::nullopt) const {
    return {.fault = "rounding",
            .detail = std::move(detail),
            .parameters = parameters,
            .at = std::move(at),
            .format = format};
  }

  void of_result(NumberFormat format, std::string detail, int parameters) {
    search_.consider(candidate(std::move(detail), parameters,
                               q_.logical([&q = q_](std::size_t g) { return q.expected_at(g); }),
                               format));
    if (format != NumberFormat::bf16) return;
    // Then also rounds every operation before the result.
    bounds::DeclaredArithmetic by = q_.declared();
    by.sums = NumberFormat::bf16;
    of_arithmetic("sums are kept as bf16", 20, by);
    by.operations = bounds::Arithmetic::of(NumberFormat::bf16, 1);
    by.sums = q_.declared().sums;
    of_arithmetic("all operations are of bf16", 21, by);
    by.sums = NumberFormat::bf16;
    of_arithmetic("all operations and sums are of bf16", 22, by);
  }

  void of_arithmetic(std::string detail, int parameters, const bounds::DeclaredArithmetic& by) {
    try_change(candidate(std::move(detail), parameters, {}, NumberFormat::bf16), {.declared = by});
  }

  /// Tries a prediction with and without a rounded result.
  void both(const std::string& detail, int parameters, const Prediction& at) {
    search_.consider(candidate(detail, parameters, at));
    if (q_.format() != NumberFormat::bf16 && q_.summed().empty())
      search_.consider(
          candidate(detail + ", and so is the result", parameters + 6, at, NumberFormat::bf16));
  }

  void of_sum(const Contraction& c) {
    const auto& by = q_.declared();
    const auto with = [&](const std::string& detail, int parameters, bool operands, bool matrices,
                          const Contraction::Term* alone = nullptr) {
      Contraction other = c;
      for (Contraction::Term& t : other.terms) {
        if (alone != nullptr && t.matrix != alone->matrix) continue;
        if (operands) t.x = std::make_shared<const bounds::IntervalTensor>(rounded(*t.x));
        if (!matrices) continue;
        std::vector<double> w = *t.w;
        for (double& v : w) v = rounded(bounds::FunctionValue{v, 0.0, 0.0}).center;
        t.w = std::make_shared<const std::vector<double>>(std::move(w));
      }
      both(detail, parameters,
           q_.logical([&by, o = std::make_shared<const Contraction>(std::move(other))](
                          std::size_t g) { return o->at(g, by); }));
    };
    with("the operand is rounded to bf16", 0, true, false);
    with("the matrix is rounded to bf16", 1, false, true);
    with("operand and matrix are rounded to bf16", 2, true, true);
    if (c.terms.size() > 1)
      for (const Contraction::Term& t : c.terms) {
        with(t.operand + " is rounded to bf16", 3, true, false, &t);
        with(t.matrix + " is rounded to bf16", 4, false, true, &t);
        with(t.operand + " and " + t.matrix + " are rounded to bf16", 5, true, true, &t);
      }
    for (const Axes& list : q_.lists())
      for (const Axes& last : q_.lists()) {
        if (last.sorted() == list.sorted() && (c.terms.size() > 1 || last == list))
          of_partial_sums(c, list, last);
      }
  }

  /// Cuts the contracted dim of the first term over `list` and that of the last over `last`.
  void of_partial_sums(const Contraction& c, const Axes& list, const Axes& last) {
    std::vector<std::vector<int>> blocks;
    for (const Contraction::Term& t : c.terms)
      blocks.push_back(blocks_of(t, t.letters[0], q_.torus().size(list)));
    for (int& r : blocks.back()) r = q_.torus().block(with_block(q_.torus(), 0, last, r), list);
    if (std::any_of(blocks.begin(), blocks.end(), [](const auto& b) { return b.empty(); })) return;
    const int n = q_.torus().size(list);
    Candidate partial =
        candidate(fmt::format("the partial sums over {} are rounded to bf16", list.to_string()),
                  10 + list.size(),
                  q_.logical([&q = q_, n, blocks,
                              sum = std::make_shared<const Contraction>(c)](std::size_t g) {
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
                  }));
    partial.axes = list.sorted().to_string();
    search_.consider(partial);
    if (q_.format() == NumberFormat::bf16 || !q_.summed().empty()) return;
    partial.format = NumberFormat::bf16;
    partial.detail += ", and so is the result";
    partial.parameters += 6;
    search_.consider(std::move(partial));
  }

  void of_operands() {
    const std::vector<std::string> ids = q_.operands();
    Question::Change all;
    for (const std::string& id : ids) {
      const bounds::IntervalTensor value = rounded(q_.value(id));
      all.values.emplace_back(id, value);
      if (ids.size() > 1)
        of_change(id.substr(id.rfind('.') + 1) + " is rounded to bf16", 0,
                  {.values = {{id, value}}});
    }
    of_change("the operands are rounded to bf16", ids.size() > 1 ? 3 : 0, all);
    if (q_.name() != "attn") return;
    // The weights of the mean, rounded after the division.
    const bounds::IntervalTensor& e = q_.value(ids[0]);
    const bounds::IntervalTensor& Z = q_.value(ids[1]);
    bounds::IntervalTensor weights = e, one(Z.shape);
    const std::size_t M = at(e.shape[3]);
    for (double& z : one.center) z = 1.0;
    for (std::size_t i = 0; i < e.size(); ++i) {
      const double p = e.center[i] / Z.center[i / M];
      const double relative =
          Z.radius[i / M] / Z.center[i / M] + q_.declared().operations.unit + 0x1p-53;
      weights.set(
          i, rounded(bounds::FunctionValue{p, e.radius[i] / Z.center[i / M] + relative * p, 0.0}));
    }
    of_change("the probabilities are rounded to bf16", 1,
              {.values = {{ids[0], weights}, {ids[1], one}}});
  }

  void of_change(const std::string& detail, int parameters, const Question::Change& change) {
    if (change.values.empty() && change.weights.empty()) return;
    if (!search_.wants(candidate(detail, 0)) &&
        !search_.wants(candidate(detail + ", and so is the result", 0)))
      return;
    try {
      both(detail, parameters, q_.logical(q_.under(change)));
    } catch (const Error& e) {
      if (e.label() != "bounds_c1") throw;
    }
  }

  void of_statistics() {
    const auto E = at(q_.config().E);
    const auto norm = std::make_shared<const NormRow>(q_);
    const auto all = [](std::size_t) { return true; };
    for (const bool mean : {false, true}) {
      const auto rows = std::make_shared<std::map<std::size_t, NormRow::Statistics>>();
      both(
          mean ? "the mean of squares is rounded to bf16" : "the sum of squares is rounded to bf16",
          1, q_.logical([norm, rows, all, E, mean](std::size_t g) {
            auto known = rows->find(g / E);
            if (known == rows->end()) {
              NormRow::Statistics s = norm->statistics(g / E, all, static_cast<double>(E));
              const double extent = mean ? static_cast<double>(E) : 1.0;
              s.ss = times(rounded(times(s.ss, 1 / extent)), extent);
              known = rows->emplace(g / E, s).first;
            }
            return norm->at(g, known->second);
          }));
    }
  }

  void of_tables() {
    Step::WeightsById tables;
    for (const char* name : {"rope_cos", "rope_sin"}) {
      Tensor t = *q_.weight(name);
      for (float& v : t.data)
        v = static_cast<float>(
            rounded(bounds::FunctionValue{static_cast<double>(v), 0.0, 0.0}).center);
      tables.emplace(name, std::move(t));
    }
    of_change("sines and cosines are rounded to bf16", 1, {.weights = tables});
  }
};

}  // namespace

void try_rounding(const Question& q, Search& search) { Rounding(q, search).run(); }

}  // namespace shardproof::diagnosis
