// Replay: products with matrices, and how they are cut over chips.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "golden/bounds/value/reduction.h"
#include "golden/bounds/value/replay.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

/// Returns, for each contracted index of an operand with this layout, its block over `axes`: the
/// chips' coordinates on these axes, row-major in the order of `axes`.
std::vector<int> chips_of(const Layout& layout, const std::string& letters, const Shape& extents,
                          const Axes& axes, const Torus& torus) {
  std::vector<int> chips(at(element_count(extents)));
  for (std::size_t k = 0; k < chips.size(); ++k) {
    auto rest = static_cast<std::int64_t>(k);
    std::map<Axis, int> coordinates;
    for (std::size_t d = letters.size(); d-- > 0; rest /= extents[d]) {
      const Axes of = layout.axes(letters[d]);
      const std::int64_t index = rest % extents[d];
      auto block = static_cast<int>(index / (extents[d] / torus.size(of)));
      std::vector<Axis> order(of.begin(), of.end());
      for (std::size_t a = order.size(); a-- > 0; block /= torus.size(order[a]))
        coordinates[order[a]] = block % torus.size(order[a]);
    }
    for (const Axis a : axes) chips[k] = chips[k] * torus.size(a) + coordinates[a];
  }
  return chips;
}

}  // namespace

int Replay::Product::chips() const {
  int n = 1;
  for (const int extent : extents) n *= extent;
  return n;
}

Replay::Grouping::Grouping(const std::vector<int>& of_axes, unsigned some) {
  std::size_t all = 1;
  for (std::size_t d = 0; d < of_axes.size(); ++d) {
    all *= at(of_axes[d]);
    if ((some >> d & 1U) == 0) continue;
    extents.push_back(of_axes[d]);
    chips *= at(of_axes[d]);
  }
  for (std::size_t chip = 0; chip < all; ++chip) {
    std::size_t rest = chip, own = 0, stride = 1;
    for (std::size_t d = of_axes.size(); d-- > 0; rest /= at(of_axes[d]))
      if ((some >> d & 1U) != 0) {
        own += rest % at(of_axes[d]) * stride;
        stride *= at(of_axes[d]);
      }
    place.push_back(own);
  }
}

Sums Replay::Grouping::group(const Sums& sums, std::size_t terms) const {
  std::vector<Total> parts(chips * terms);
  for (std::size_t chip = 0; chip < place.size(); ++chip)
    for (std::size_t t = 0; t < terms; ++t)
      parts[place[chip] * terms + t].add(sums[chip * terms + t]);
  Sums of;
  for (const Total& part : parts) of.push_back(part.sum());
  return of;
}

/// Returns the axes that cut an operand's contracted dims, in the order x, y, z; nullopt if its
/// layout is not declared.
std::optional<Axes> Replay::axes_that_cut(const Place& operand, const std::string& letters) const {
  const auto found = layouts_.find(id_of(operand));
  if (!torus_ || found == layouts_.end()) return std::nullopt;
  Axes of;
  for (const char letter : letters)
    for (const Axis a : found->second.axes(letter))
      if (torus_->size(a) > 1) of = of.with(a);
  return of.sorted();
}

/// Assigns products to chips, if all terms are cut over the same axes.
void Replay::cut(const Place& p, Product& product, const DeclaredArithmetic& by) const {
  const Composite& of = composite(p.name);
  std::optional<Axes> over;
  bool same = true;
  for (std::size_t t = 0; t < of.operands.size(); ++t) {
    const std::optional<Axes> axes = axes_that_cut(operand_of(p, t), of.contracted[t]);
    same = same && axes && (!over || *over == *axes);
    over = axes;
  }
  if (!same || !over || over->empty()) return;
  std::int64_t longest = 0;
  for (std::size_t t = 0; t < of.operands.size(); ++t) {
    const Layout& layout = layouts_.at(id_of(operand_of(p, t)));
    Shape extents;
    for (const char letter : of.contracted[t]) {
      extents.push_back(shape_of(std::string(1, letter), config_)[0]);
      if (extents.back() % torus_->size(layout.axes(letter)) != 0) return;
    }
    product.terms[t].chip = chips_of(layout, of.contracted[t], extents, *over, *torus_);
    longest += static_cast<std::int64_t>(product.terms[t].width) / torus_->size(*over);
  }
  product.axes = *over;
  for (const Axis a : *over) product.extents.push_back(torus_->size(a));
  for (unsigned some = 0; some < 1U << product.extents.size(); ++some)
    product.groupings.emplace_back(product.extents, some);
  product.depth = {longest + product.chips() - 1 + by.folded, false};
}

Replay::Product Replay::product_of(const Place& p, const DeclaredArithmetic& by) {
  const Composite& of = composite(p.name);
  Product product;
  const bool logits = is_logits(p);
  for (std::size_t t = 0; t < of.operands.size(); ++t) {
    const IntervalTensor& x = operand(operand_of(p, t));
    const std::shared_ptr<const Tensor> w = matrix(p.layer, of.weights[t]);
    const std::size_t rows = at(x.shape[0] * x.shape[1]);
    product.terms.push_back({&x, &w->data, x.size() / std::max<std::size_t>(rows, 1), logits});
    product.columns = w->data.size() / product.terms.back().width;
    product.rows.resize(rows);
    product.matrices.push_back(w);
  }
  std::iota(product.rows.begin(), product.rows.end(), std::size_t{0});
  const Shape& x = product.terms[0].x->shape;
  if (logits) product.rows = rows_of_logits(pass(p.pass), at(x[1]));
  product.shape =
      logits ? Shape{x[0], config_.V} : shape_of(value_row(p.name)->dims, config_, {x[0], x[1], 0});
  cut(p, product, by);
  return product;
}

void Replay::split(Product& product, const DeclaredArithmetic& by, bool of_chips) const {
  product.of_chips = of_chips && product.chips() > 1;
  const std::size_t terms = product.terms.size();
  product.split_terms = terms > 1 && narrow_storage(by.values) ? static_cast<int>(terms) : 1;
  for (std::size_t t = 0; t < terms; ++t) {
    std::vector<int>& chip = product.terms[t].chip;
    if (!product.of_chips) chip.clear();
    if (product.split_terms == 1) continue;
    if (chip.empty()) chip.assign(product.terms[t].width, 0);
    for (int& c : chip) c = c * product.split_terms + static_cast<int>(t);
  }
}

Number Replay::partial(const Product& product, std::span<const Sum> terms,
                       const DeclaredArithmetic& by, Rounds rounds) const {
  const Number whole = bound(total({terms.begin(), terms.end()}), by);
  if (product.split_terms == 1) return whole;
  const Operations operations(by);
  const auto term = [&](std::size_t t) {
    return rounded_if(bound(terms[t], by), rounds, by.values);
  };
  return hull(whole, operations.plus(term(0), term(1)));
}

/// Returns S of elements; if partial sums are sent with fewer digits, as the hull over the
/// reductions left open.
Lanes Replay::reduce_sums(const Product& product, std::span<const Sums> of_columns,
                          const DeclaredArithmetic& by, const Epilogue& epilogue) const {
  DeclaredArithmetic unsent = by;
  unsent.wire_roundings = 0;
  const bool sent = by.wire_roundings > 0;
  const auto terms = static_cast<std::size_t>(product.split_terms);
  const auto part = [&](const Sums& sums, std::size_t chip) {
    return partial(product, std::span(sums).subspan(chip * terms, terms), unsent, Rounds::some);
  };
  const auto followed = [&](const Number& partial, std::size_t column, bool first) {
    return epilogue ? epilogue(partial, column, first) : partial;
  };
  Lanes whole;
  for (std::size_t c = 0; c < of_columns.size(); ++c) {
    const Sums& sums = of_columns[c];
    if (sent && !product.of_chips) {
      whole.set(c, bound(total(sums), by));
      continue;
    }
    const Number v = bound(total(sums), unsent, product.depth);
    if (product.of_chips)
      whole.set(c, followed(v, c, true));
    else
      whole.set(c, terms == 1 ? v : hull(v, part(sums, 0)));
  }
  if (!product.of_chips) return whole;
  LaneHull all_ways;
  all_ways.include(whole);
  // The operands may have been gathered over some of the axes before.
  for (std::size_t some = 1; some < product.groupings.size(); ++some) {
    const Grouping& grouping = product.groupings[some];
    Partials partials{grouping.extents, std::vector<Lanes>(grouping.chips)};
    for (std::size_t c = 0; c < of_columns.size(); ++c) {
      const Sums grouped = grouping.group(of_columns[c], terms);
      for (std::size_t chip = 0; chip < grouping.chips; ++chip)
        partials.numbers[chip].set(c, followed(part(grouped, chip), c, chip == 0));
    }
    all_ways.include(reduced(partials, by, sent ? by.wire : by.values));
  }
  return all_ways.lanes();
}

IntervalTensor Replay::project(const Making& m, Stage stage) {
  return std::move(project(m, stage, {m.way})[0]);
}

std::vector<IntervalTensor> Replay::project(const Making& m, Stage stage,
                                            const std::vector<Way>& ways) {
  const Place& p = m.at;
  const Composite& of = composite(p.name);
  Product product = product_of(p, m.by);
  // If sums are kept with fewer digits than what is sent, no order is known.
  split(product, m.by,
        m.by.reduction != Reduction::any && !narrow_storage(m.by.sums) &&
            (m.by.wire_roundings > 0 || narrow_storage(m.by.values)));
  const bool logits = is_logits(p);
  const bool of_codes = !logits && !of.scale.empty();
  const IntervalTensor scales = of_codes ? weight(p.layer, of.scale) : IntervalTensor();
  const auto logit_scale = static_cast<double>(logits ? scale_of_logits(config_) : 1.0F);
  std::vector<IntervalTensor> biases;
  for (const std::string& bias : of.biases)
    if (stage == Stage::finished) biases.push_back(weight(p.layer, bias));
  std::vector<IntervalTensor> by_way(ways.size(), IntervalTensor(product.shape));
  std::vector<Rounds> rounds;
  for (const Way& way : ways) {
    rounds.push_back(way.rounds("s"));
    // Engines may store logits although the specification does not, before a scale or bias too.
    if (logits && stage == Stage::finished) rounds.back() = Rounds::some;
  }
  const Operations by(m.by);
  // A scale or bias follows S, so S is a value of its own.
  const bool scaled = stage != Stage::raw && (of_codes || logits);
  each_sum(
      product.terms, product.rows, product.columns, product.sums(), SumsNeeded::of(m.by), *threads_,
      [&](std::size_t row, std::size_t first, std::span<const Sums> sums) {
        const auto scale = [&](std::size_t c) {
          return !scaled ? 1.0 : logits ? logit_scale : scales.center[first + c];
        };
        const Lanes totals = reduce_sums(product, sums, m.by);
        // A chip may scale its partial sum before it is sent, and the first chip may add the
        // biases.
        std::optional<Lanes> sent;
        if (product.of_chips && (scaled || !biases.empty()))
          sent = reduce_sums(product, sums, m.by, [&](Number part, std::size_t c, bool is_first) {
            if (scaled) part = by.times(part, {scale(c), 0.0, 0.0});
            for (const IntervalTensor& bias : biases)
              if (is_first) part = by.plus(part, bias.number(first + c));
            return part;
          });
        for (std::size_t c = 0; c < sums.size(); ++c)
          for (std::size_t w = 0; w < ways.size(); ++w) {
            Number v = totals.number(c);
            const auto follow = [&] { v = rounded_if(as_value(v, m.by), rounds[w], m.by.values); };
            if (scaled) {
              follow();
              v = by.times(v, {scale(c), 0.0, 0.0});
            }
            for (const IntervalTensor& bias : biases) {
              follow();
              v = by.plus(v, bias.number(first + c));
            }
            if (sent) v = hull(v, sent->number(c));
            by_way[w].set(row * product.columns + first + c, v);
          }
      });
  if (logits && stage == Stage::finished && narrow_storage(m.by.values))
    for (IntervalTensor& y : by_way)
      for (std::size_t i = 0; i < y.size(); ++i)
        y.set(i, rounded_if(y.number(i), Rounds::some, m.by.values));
  return by_way;
}

std::optional<std::vector<IntervalTensor>> Replay::expected_partials(const std::string& id,
                                                                     const Axes& axes, bool raw) {
  const Place p = place_of(id);
  const Composite& of = composite(p.name);
  if (of.kind != CompositeKind::product) return std::nullopt;
  const bool scaled = !of.scale.empty() || (is_logits(p) && scale_of_logits(config_) != 1.0F);
  if (!raw && (scaled || !of.biases.empty())) return std::nullopt;
  DeclaredArithmetic by = arithmetic(p);
  Product product = product_of(p, by);
  unsigned some = 0;
  int place = 0, found = 0;
  for (const Axis a : product.axes) {
    if (axes.has(a)) some |= 1U << place, ++found;
    ++place;
  }
  if (some == 0 || found != axes.size()) return std::nullopt;
  split(product, by, true);
  const auto terms = static_cast<std::size_t>(product.split_terms);
  by.wire_roundings = 0;
  std::vector<IntervalTensor> parts(at(torus_->size(axes)), IntervalTensor(product.shape));
  each_sum(product.terms, product.rows, product.columns, product.sums(), SumsNeeded::of(by),
           *threads_, [&](std::size_t row, std::size_t first, std::span<const Sums> sums) {
             for (std::size_t c = 0; c < sums.size(); ++c) {
               const Sums grouped = product.groupings[some].group(sums[c], terms);
               for (std::size_t chip = 0; chip < parts.size(); ++chip)
                 parts[chip].set(row * product.columns + first + c,
                                 partial(product, std::span(grouped).subspan(chip * terms, terms),
                                         by, Rounds::some));
             }
           });
  return parts;
}

std::optional<std::vector<std::pair<double, double>>> Replay::products(const std::string& id,
                                                                       std::size_t element) {
  const Place p = place_of(id);
  if (composite(p.name).kind != CompositeKind::product) return std::nullopt;
  const Product product = product_of(p, declared(p));
  const std::size_t row = product.rows.at(element / product.columns);
  const std::size_t column = element % product.columns;
  std::vector<std::pair<double, double>> factors;
  for (const MatrixTerm& term : product.terms)
    for (std::size_t k = 0; k < term.width; ++k) {
      const Number a = term.x->number(row * term.width + k);
      if (a.worst != 0) return std::nullopt;
      factors.emplace_back(
          a.center,
          static_cast<double>(
              (*term.matrix)[term.table ? column * term.width + k : k * product.columns + column]));
    }
  return factors;
}

std::optional<IntervalTensor> Replay::expected_raw(const std::string& id) {
  const Place p = place_of(id);
  const ValueRow* const row = value_row(p.name);
  if (row == nullptr || !row->contraction) return std::nullopt;
  const DeclaredArithmetic by = arithmetic(p);
  const Making m{p, by, way_of(p, by)};
  switch (composite(p.name).kind) {
    case CompositeKind::lookup:
      return embed(m, Stage::raw);
    case CompositeKind::score:
      return scores(m, Stage::raw);
    case CompositeKind::mean:
      return mean(m, Stage::raw);
    case CompositeKind::product:
      return project(m, Stage::raw);
    default:
      return compute(m);  // a denominator: nothing follows the sum
  }
}

std::optional<IntervalTensor> Replay::expected_scaled(const std::string& id) {
  const Place p = place_of(id);
  const DeclaredArithmetic by = arithmetic(p);
  const Making m{p, by, way_of(p, by)};
  const Composite& of = composite(p.name);
  if (of.kind != CompositeKind::product || (!is_logits(p) && of.scale.empty())) return std::nullopt;
  return project(m, Stage::scaled);
}

}  // namespace shardproof::bounds
