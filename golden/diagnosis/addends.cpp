// Counts how often a residual, a bias or a term is added.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/fit.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::diagnosis {
namespace {

/// One addend of a value, and how often it should count.
struct Addend {
  std::string name;
  std::function<bounds::FunctionValue(std::size_t global)> at;
  int right = 1;
  int bias = -1;  ///< index in the contraction's biases; -1: not a bias
};

struct Addends {
  std::vector<Addend> all;
  std::shared_ptr<const Contraction> sum;  ///< null for mid and out
};

Addend operand(const Question& q, const std::string& id, int right) {
  const bounds::IntervalTensor& x = q.value(id);
  return {id.substr(id.rfind('.') + 1),
          [x = std::make_shared<const bounds::IntervalTensor>(x)](std::size_t g) {
            return bounds::FunctionValue{x->center[g], x->radius[g], 0.0};
          },
          right};
}

/// Collects what an expression adds, operands of the value's shape and biases of its last dims;
/// returns false if it does anything else.
bool collect(const Question& q, const Expression& e, std::vector<Addend>& all) {
  if (e.kind == Expression::Kind::call)
    return e.op == ModelOp::add && collect(q, e.args[0], all) && collect(q, e.args[1], all);
  if (const TextLine* const line = q.step().line(e.text)) return collect(q, line->expression, all);
  if (const TextWeight* const weight = q.step().weight(e.text)) {
    const auto bias = q.weight(q.step().weight_id(*weight));
    all.push_back({q.step().file(e.text), [bias](std::size_t g) {
                     const auto v = static_cast<double>(bias->data[g % bias->data.size()]);
                     return bounds::FunctionValue{v, 0.0, 0.0};
                   }});
    return q.step().lines().back().letters.ends_with(weight->letters);
  }
  const std::optional<std::string> id = q.step().operand(e.text);
  if (!id || q.value(*id).shape != q.shape()) return false;
  all.push_back(operand(q, *id, 1));
  return true;
}

/// Returns the id of what a later line adds to the value; nullopt if none does.
std::optional<std::string> residual_of(const Question& q) {
  const Graph& graph = q.step().graph();
  for (const TextLine& line : graph.lines().text().section(TextSection::layer).lines) {
    const Expression& e = line.expression;
    if (!is_call(e, ModelOp::add)) continue;
    for (const std::size_t i : {0U, 1U})
      if (e.args[i].text == q.name() && e.args[1 - i].kind == Expression::Kind::name &&
          graph.model().weight(e.args[1 - i].text) == nullptr)
        return graph.lines().id_of(q.place().pass, q.place().layer, e.args[1 - i].text);
  }
  if (is_block_term(q.name(), q.config()))
    return q.replay().operands(q.id_of(shardproof::result_of(TextSection::layer)))[0];
  return std::nullopt;
}

Addends addends_of(const Question& q) {
  Addends a;
  const Expression& own = q.step().lines().back().expression;
  if (is_call(own, ModelOp::add) && collect(q, own, a.all)) return a;
  a.all.clear();
  a.sum = contraction_of(q);
  if (a.sum == nullptr || a.sum->terms[0].operand == "ids") return a;
  for (std::size_t t = 0; t < a.sum->terms.size(); ++t)
    a.all.push_back(
        {a.sum->terms[t].operand + "·" + a.sum->terms[t].matrix,
         [&q, sum = a.sum, t, one = std::vector<int>(a.sum->terms[t].width, 0)](std::size_t g) {
           bounds::FunctionValue v = sum->partial_sum(g, t, one, 0, q.declared());
           return sum->scales.empty() ? v : times(v, sum->scales[g % sum->columns]);
         }});
  for (std::size_t b = 0; b < a.sum->biases.size(); ++b)
    a.all.push_back(
        {a.sum->biases[b].name,
         [sum = a.sum, b](std::size_t g) {
           return bounds::FunctionValue{sum->biases[b].values[g % sum->columns], 0.0, 0.0};
         },
         1, static_cast<int>(b)});
  if (const std::optional<std::string> id = residual_of(q); id && q.value(*id).shape == q.shape())
    a.all.push_back(operand(q, *id, 0));
  return a;
}

/// Returns the sets of axes with n chips, over which something may have been added once per chip; a
/// single empty set if there are none.
std::vector<Axes> axes_of(const Question& q, int n) {
  std::vector<Axes> all;
  for (const Axes& set : q.sets())
    if (q.torus().size(set) == n) all.push_back(set);
  if (all.empty()) all.emplace_back();
  return all;
}

/// Returns whether the dump declares operands whose sum goes over these axes.
Site site_of(const Question& q, const Addends& a, const Axes& set) {
  std::vector<std::pair<std::string, std::string>> summed{{"attn", "H"}, {"hidden", "F"}};
  if (q.name() == "mid") summed.pop_back();
  if (a.sum != nullptr) {
    summed.clear();
    for (const Contraction::Term& t : a.sum->terms) summed.emplace_back(t.operand, t.letters);
  }
  for (const auto& [operand, letters] : summed)
    for (const char letter : letters)
      if (const auto axes = q.declared_axes(operand, letter); axes && axes->sorted() == set)
        return Site::declared;
  return Site::unknown;
}

/// Returns the value with each addend counted as often as `counts` says.
bounds::FunctionValue counted(const Addends& a, const std::vector<int>& counts, std::size_t g,
                              const bounds::DeclaredArithmetic& by, NumberFormat kept) {
  bounds::FunctionValue v;
  if (a.sum == nullptr) {
    // A single addition of two values is rounded only as the value itself.
    for (std::size_t i = 0; i < a.all.size(); ++i) {
      const bounds::FunctionValue x = a.all[i].at(g);
      if (counts[i] == 0) continue;
      const bounds::FunctionValue more = counts[i] == 1 ? x : times(x, counts[i]);
      v = {v.center + more.center, v.radius + more.radius, 0.0};
    }
    // Every extra addition rounds an intermediate result.
    const double unit = std::max(by.operations.unit, bounds::unit_of(kept));
    int extra = 0;
    for (const int count : counts) extra += std::max(std::abs(count) - 1, 0);
    v.radius += extra * unit * (std::abs(v.center) + v.radius);
    for (std::size_t i = 0; i < a.all.size() && extra > 0; ++i)
      v.radius += std::abs(counts[i]) * extra * unit * std::abs(a.all[i].at(g).center);
    return v;
  }
  Contraction::Counts of;
  const std::size_t terms = a.sum->terms.size();
  static const std::vector<int> none;
  std::vector<std::vector<int>> zeros(terms);
  for (std::size_t t = 0; t < terms; ++t) {
    zeros[t].assign(a.sum->terms[t].width, 0);
    of.of_blocks.push_back({counts[t]});
    of.block.push_back(&zeros[t]);
  }
  for (std::size_t i = terms; i < a.all.size(); ++i)
    if (a.all[i].bias >= 0) of.of_biases.push_back(counts[i]);
  v = a.sum->at(g, of, by);
  for (std::size_t i = terms; i < a.all.size(); ++i)
    if (a.all[i].bias < 0 && counts[i] != 0) {
      v = plus(v, times(a.all[i].at(g), counts[i]), by);
      v.radius += std::abs(counts[i]) * by.operations.unit *
                  (std::abs(v.center) + std::abs(counts[i] * a.all[i].at(g).center));
    }
  return v;
}

/// How often each addend counts, chip by chip.
using Counted = std::vector<std::vector<int>>;

/// Tries a value whose addends count so; `sets`: over which something may have been added.
void try_counts(const Question& q, Search& search, const Row& row,
                const std::shared_ptr<const Addends>& a, const Counted& counts,
                const std::string& detail, int parameters, const std::vector<Axes>& sets) {
  // If only the sum is stored, it alone is rounded as the value is.
  std::vector<NumberFormat> formats{q.declared().unstored()};
  if (q.format() != formats[0]) formats.push_back(q.format());
  for (const NumberFormat kept : formats)
    for (const Axes& set : sets)
      search.consider({.fault = row.fault,
                       .detail = detail,
                       .parameters = parameters,
                       .axes = set.to_string(),
                       .at =
                           [&q, a, counts, kept](int chip, std::size_t local) {
                             return counted(*a, counts[at(chip)], q.global(chip, local),
                                            q.declared(), kept);
                           },
                       .site = site_of(q, *a, set),
                       .fitted = true});
}

std::string counted_words(const Addend& addend, const std::string& times) {
  return fmt::format("{} is added {} times, not {}", addend.name, times, addend.right);
}

/// Tries each addend left out, and as often as there are chips, of a value that the dump lacks:
/// its differences do not show.
void try_each_count(const Question& q, Search& search, const Row& row,
                    const std::shared_ptr<const Addends>& a) {
  std::set<int> numbers{0};
  for (const Axes& set : q.sets()) numbers.insert(q.torus().size(set));
  std::vector<int> right;
  for (const Addend& addend : a->all) right.push_back(addend.right);
  for (std::size_t i = 0; i < right.size(); ++i)
    for (const int n : numbers) {
      // A multiple of the only product is left to scales and sums.
      const bool alone = a->sum != nullptr && a->sum->terms.size() == 1 && i == 0;
      if (right[i] == 0 || n == right[i] || (alone && n > 0)) continue;
      std::vector<int> other = right;
      other[i] = n;
      try_counts(q, search, row, a, Counted(at(q.chips()), other),
                 counted_words(a->all[i], std::to_string(n)), 1, axes_of(q, n));
    }
}

}  // namespace

void try_addends(const Question& q, Search& search, const Row& row) {
  const auto a = std::make_shared<const Addends>(addends_of(q));
  if (a->all.empty()) return;
  if (!q.replay().dumped(q.id()) && q.right()) return try_each_count(q, search, row, a);
  if (q.right()) return;
  Counted counts;
  for (int chip = 0; chip < q.chips(); ++chip) {
    std::vector<int> of;
    for (const Addend& addend : a->all) of.push_back(addend.right);
    if (!q.right(chip)) {
      const auto more =
          fitted_counts(q, {chip}, a->all.size(), 64, [&](std::size_t g, std::vector<double>& all) {
            for (const Addend& addend : a->all) all.push_back(addend.at(g).center);
            return 1.0;
          });
      if (!more) return;
      for (std::size_t i = 0; i < of.size(); ++i) of[i] += (*more)[i];
    }
    counts.push_back(std::move(of));
  }
  std::string detail;
  int parameters = 0;
  std::vector<Axes> sets{Axes()};
  for (std::size_t i = 0; i < a->all.size(); ++i) {
    std::vector<int> of;
    for (int chip = 0; chip < q.chips(); ++chip)
      if (!q.right(chip)) of.push_back(counts[at(chip)][i]);
    const auto [least, most] = std::minmax_element(of.begin(), of.end());
    if (*least == a->all[i].right && *most == *least) continue;
    ++parameters;
    const std::string times =
        *least == *most ? fmt::format("{}", *least) : fmt::format("{} to {}", *least, *most);
    detail += (detail.empty() ? "" : "; ") + counted_words(a->all[i], times);
    if (*least == *most && *most > 1) sets = axes_of(q, *most);
  }
  if (parameters == 0) return;
  // A multiple of the only product is left to scales and sums.
  if (a->sum != nullptr && a->sum->terms.size() == 1)
    for (int chip = 0; chip < q.chips(); ++chip)
      if (counts[at(chip)][0] != 1) return;
  try_counts(q, search, row, a, counts, detail, parameters, sets);
}

}  // namespace shardproof::diagnosis
