#include "golden/bounds/sums.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "golden/bounds/running.h"
#include "golden/scalar/adding.h"
#include "golden/scalar/term_order.h"

namespace shardproof::bounds {
namespace {

using scalar::Owned;
using scalar::Place;
using scalar::Value;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// So many columns are summed side by side.
constexpr std::size_t kPanel = 16;

/// A result's elements as a matrix: rows by the dims of the left operands, columns by the right
/// ones'. Where some dim is of both, or the rows do not come first, every element is a row and a
/// column of its own.
struct Matrix {
  bool separable = true;
  std::int64_t rows = 1, columns = 1;

  Matrix(const EinsumSpec& spec, const Shape& shape) {
    std::size_t left = 0;  // leading dims that are of the left operands
    const auto& result = spec.terms[0].result;
    const auto of = [](const std::string& letters, char c) {
      return letters.find(c) != std::string::npos;
    };
    while (left < result.size() && of(spec.terms[0].a, result[left])) ++left;
    for (const EinsumSpec::Term& term : spec.terms)
      for (std::size_t d = 0; d < result.size(); ++d)
        separable = separable && of(term.a, result[d]) == (d < left) &&
                    of(term.b, result[d]) == (d >= left);
    for (std::size_t d = 0; d < shape.size(); ++d) (d < left ? rows : columns) *= shape[d];
  }
};

/// Where the operands of a term have the row or the column of a result's element.
std::int64_t offset(const Value& operand, const std::string& result, const Shape& shape,
                    std::int64_t element) {
  std::int64_t sum = 0;
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d])
    sum += element % shape[d] * scalar::stride(operand, result[d]);
  return sum;
}

/// Rows, or columns, whose chips are at one place, by that place.
using Groups = std::map<std::array<std::int64_t, 3>, std::vector<std::int64_t>>;

/// The chains of one place on the result's partial axes.
class Chains {
 public:
  Chains(const Op& op, const std::vector<const Value*>& args, const scalar::Setting& setting,
         const Place& place, const Shape& shape)
      : op_(op),
        args_(args),
        torus_(setting.torus),
        shape_(shape),
        step_(setting.acc_bf16 ? Step::bf16() : Step::f32()),
        to_(at(element_count(shape))) {
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      orders_.emplace_back(op, t, args, setting.torus, place);
      looped_ = looped_ || !orders_.back().ring.empty();
    }
  }

  std::vector<Interval> run() {
    const Matrix m(op_.spec, shape_);
    if (!m.separable) {
      for (std::int64_t i = 0; i < std::ssize(to_); ++i) run(place_of(i), {i}, {0});
      return std::move(to_);
    }
    Groups rows, columns;
    for (std::int64_t r = 0; r < m.rows; ++r)
      rows[place_of(r * m.columns).at_array()].push_back(r * m.columns);
    for (std::int64_t c = 0; c < m.columns; ++c) columns[place_of(c).at_array()].push_back(c);
    for (const auto& [row_place, of_rows] : rows)
      for (const auto& [column_place, of_columns] : columns) {
        Chip chip;
        for (std::size_t a = 0; a < 3; ++a) chip.place.at[a] = row_place[a] + column_place[a];
        run(chip, of_rows, of_columns);
      }
    return std::move(to_);
  }

 private:
  struct Chip {
    Place place;
    std::array<std::int64_t, 3> at_array() const { return {place.at[0], place.at[1], place.at[2]}; }
  };

  /// Who computes an element, where that matters.
  Chip place_of(std::int64_t element) const {
    if (!looped_) return {};
    return {scalar::holder(op_.results[0].layout, shape_, torus_, element)};
  }

  void run(const Chip& chip, const std::vector<std::int64_t>& rows,
           const std::vector<std::int64_t>& columns) {
    std::vector<const Owned*> owned;
    std::size_t n = 0;
    for (const scalar::TermOrder& order : orders_) {
      owned.push_back(&order.of_chip[at(scalar::block_over(order.ring, torus_, chip.place))]);
      n += owned.back()->a.size();
    }
    const std::size_t panels = (columns.size() + kPanel - 1) / kPanel;
    std::vector<float> right(panels * n * kPanel, 0.0F), left(n);
    const auto of_term = [&](std::size_t operand, std::int64_t element) {
      return args_[operand]->whole().data() +
             offset(*args_[operand], op_.spec.terms[operand / 2].result, shape_, element);
    };
    // A row and a column of one element are the same element where they are not separable.
    const bool single = rows.size() == 1 && columns.size() == 1;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      float* to = right.data() + c / kPanel * n * kPanel + c % kPanel;
      for (std::size_t t = 0; t < owned.size(); ++t) {
        const float* const from = of_term(2 * t + 1, single ? rows[0] + columns[0] : columns[c]);
        for (const std::int64_t b : owned[t]->b) *to = from[b], to += kPanel;
      }
    }
    for (const std::int64_t row : rows) {
      std::size_t k = 0;
      for (std::size_t t = 0; t < owned.size(); ++t) {
        const float* const from = of_term(2 * t, row);
        for (const std::int64_t a : owned[t]->a) left[k++] = from[a];
      }
      for (std::size_t p = 0; p < panels; ++p) {
        panel(left, right.data() + p * n * kPanel);
        for (std::size_t c = 0; c < kPanel && p * kPanel + c < columns.size(); ++c)
          to_[at(row + columns[p * kPanel + c])] =
              interval_of({sums_[c], errors_[c]}, static_cast<double>(n));
      }
    }
  }

  /// The chains of one row and kPanel columns.
  void panel(const std::vector<float>& left, const float* right) {
    double sums[kPanel] = {}, errors[kPanel] = {};
    const Step step = step_;
    for (const float factor : left) {
      const auto a = static_cast<double>(factor);
      for (std::size_t c = 0; c < kPanel; ++c) {
        errors[c] = step.rounded(sums[c], errors[c]);
        sums[c] += a * static_cast<double>(right[c]);
      }
      right += kPanel;
    }
    std::copy(sums, sums + kPanel, sums_);
    std::copy(errors, errors + kPanel, errors_);
  }

  const Op& op_;
  const std::vector<const Value*>& args_;
  const Torus& torus_;
  const Shape& shape_;
  Step step_;
  std::vector<scalar::TermOrder> orders_;
  bool looped_ = false;
  double sums_[kPanel], errors_[kPanel];
  std::vector<Interval> to_;
};

}  // namespace

Bounds bounds_of_contraction(const Op& op, const std::vector<const Value*>& args,
                             const scalar::Setting& setting) {
  Shape shape;
  for (char letter : op.spec.terms[0].result)
    shape.push_back(scalar::extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
  scalar::require_placed(op, args, setting.torus);
  Bounds bounds{{}, setting.acc_bf16 ? Format::bf16 : Format::f32};
  scalar::for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    bounds.parts.push_back(Chains(op, args, setting, place, shape).run());
  });
  return bounds;
}

Bounds bounds_of_reduction(const Op& op, const Value& t, const scalar::Setting& setting) {
  const Torus& torus = setting.torus;
  const std::int64_t K = torus.size(op.axes);
  const Loop way = scalar::way_round(op, setting);
  const bool sent = setting.wire_bf16 && K > 1;
  const bool rounded = sent && op.kind == OpKind::all_reduce;  // when it goes round
  const scalar::Adding<Growing, GrowingSums> adding{{setting.acc_bf16, sent && way != Loop::none}};
  Bounds bounds{{}, K > 1 && (setting.acc_bf16 || rounded) ? Format::bf16 : Format::f32};
  scalar::for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    const auto members = scalar::members(op, t, torus, place);
    std::vector<Interval>& part = bounds.parts.emplace_back(members[0]->size());
    std::vector<Growing> terms(members.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (std::size_t m = 0; m < terms.size(); ++m) {
        const float term = (*members[m])[i];
        terms[m] = {{static_cast<double>(sent && way == Loop::none ? round_to_bf16(term) : term)}};
      }
      const scalar::InRing ring =
          way == Loop::none ? scalar::InRing{}
                            : scalar::in_ring(op, t.shape, torus, K, static_cast<std::int64_t>(i));
      part[i] = interval_of(adding.sum(terms, way, setting.schedule, ring));
    }
  });
  return bounds;
}

}  // namespace shardproof::bounds
