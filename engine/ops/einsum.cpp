#include "engine/ops/einsum.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "engine/collectives/chip_groups.h"
#include "engine/numeric/contract.h"
#include "engine/numeric/detail/compensated_sum.h"
#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/detail/tile_sum.h"
#include "engine/ops/detail/local_term.h"
#include "engine/ops/detail/places.h"
#include "engine/ops/field_product.h"

namespace shardproof {
namespace {

/// The contraction as executed: index arithmetic and every chip's operands.
class Contraction : public PartialSource, public PartialTiles {
 public:
  Contraction(const EinsumSpec& spec, std::vector<std::pair<SharedValue, SharedValue>> operands,
              std::vector<Ring> rings)
      : operands_(std::move(operands)), rings_(std::move(rings)) {
    const ResultLetters letters(spec);
    for (std::size_t t = 0; t < spec.terms.size(); ++t)
      terms_.emplace_back(spec.terms[t], letters, operands_[t].first->local(),
                          operands_[t].second->local());
    find_order(spec.terms[0], letters);
  }

  std::int64_t count() const { return terms_[0].batch() * terms_[0].M() * terms_[0].N(); }

  /// One chip's result shard in the exact regime.
  Products products(int chip) const {
    Products all;
    for_each_batch<Term>(terms_, chip, [&](std::int64_t, std::vector<Term>& matrices) {
      for (std::size_t t = 0; t < matrices.size(); ++t) matrices[t].norms = norms_of(t, chip);
      Products one = contract(terms_[0].M(), terms_[0].N(), matrices);
      if (all.values.empty()) {
        all = std::move(one);
        return;
      }
      if (!one.bounds.empty()) {
        all.bounds.resize(all.values.size(), 0.0F);
        all.bounds.insert(all.bounds.end(), one.bounds.begin(), one.bounds.end());
      }
      all.values.insert(all.values.end(), one.values.begin(), one.values.end());
    });
    if (!all.bounds.empty()) all.bounds.resize(all.values.size(), 0.0F);
    all.values = in_order(std::move(all.values));
    if (!all.bounds.empty()) all.bounds = in_order(std::move(all.bounds));
    return all;
  }

  /// Returns true if the result can be computed tile by tile at no more than the cost of the whole.
  bool by_rows() const {
    return order_.empty() && std::all_of(terms_.begin(), terms_.end(),
                                         [](const LocalTerm& term) { return term.by_rows(); });
  }
  std::int64_t row() const override { return terms_[0].N(); }
  void add_to(TileSum& sum, int chip, std::int64_t begin) const override {
    const std::int64_t first = begin / row();
    std::vector<Term> rows;
    for (std::size_t t = 0; t < terms_.size(); ++t)
      rows.push_back(
          {a(t, chip) + first * terms_[t].K(), b(t, chip), terms_[t].K(), norms_of(t, chip)});
    const Products products = contract(sum.size() / row(), row(), rows);
    sum.add(0, sum.size(), products.values.data(),
            products.bounds.empty() ? nullptr : products.bounds.data());
  }
  float exact_sum(const std::vector<Element>& elements) const override {
    return settled([&](auto& sum) {
      for (const Element& element : elements) add_all_terms(element.chip, element.index, sum);
    });
  }

  /// One chip's result shard in the f32 regime.
  Buffer<float> chains(int chip, NumberFormat acc) const {
    Buffer<float> all(static_cast<std::size_t>(count()));
    const std::int64_t M = terms_[0].M();
    const std::int64_t N = terms_[0].N();
    const std::vector<LocalTerm> looped = in_ring_order(chip);
    const auto one = acc == NumberFormat::bf16 ? bf16_chain : chain;
    for_each_batch<Term>(looped.empty() ? terms_ : looped, chip,
                         [&](std::int64_t batch, const std::vector<Term>& matrices) {
                           one(M, N, matrices, all.data() + batch * M * N);
                         });
    return in_order(std::move(all));
  }

  /// One chip's result shard in the field regime. Field sums do not depend on order, but the chunks
  /// of a ring may be the wrong ones.
  Buffer<FieldElement> field_sums(int chip) const {
    Buffer<FieldElement> all(static_cast<std::size_t>(count()));
    const std::int64_t M = terms_[0].M();
    const std::int64_t N = terms_[0].N();
    const Field& field = *operands_[0].first->field().field;
    const std::vector<LocalTerm> looped = in_ring_order(chip);
    for_each_batch<FieldTerm>(looped.empty() ? terms_ : looped, chip,
                              [&](std::int64_t batch, const std::vector<FieldTerm>& matrices) {
                                field_contract(field, M, N, matrices, all.data() + batch * M * N);
                              });
    return in_order(std::move(all));
  }

  void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const override {
    add_all_terms(chip, index, sum);
  }
  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    add_all_terms(chip, index, sum);
  }

 private:
  /// Finds where the result's elements lie in the products, whose dims are those that all operands
  /// share, then a's, then b's.
  void find_order(const EinsumSpec::Term& term, const ResultLetters& groups) {
    const std::string made = groups.batch + groups.m + groups.n;
    if (made == term.result) return;
    const auto shape_of = [&](const std::string& letters) {
      Shape shape;
      for (const char c : letters) {
        const bool in_a = term.a.find(c) != std::string::npos;
        const Shape& local = in_a ? operands_[0].first->local() : operands_[0].second->local();
        shape.push_back(local[(in_a ? term.a : term.b).find(c)]);
      }
      return shape;
    };
    order_ = places_in(term.result, shape_of(term.result), made, shape_of(made));
  }

  /// Brings the products of a chip into the result's order.
  template <class T>
  Buffer<T> in_order(Buffer<T> made) const {
    if (order_.empty()) return made;
    Buffer<T> ordered(made.size());
    for (std::size_t i = 0; i < order_.size(); ++i)
      ordered[i] = made[static_cast<std::size_t>(order_[i])];
    return ordered;
  }

  template <class Sum>
  void add_all_terms(int chip, std::int64_t index, Sum& sum) const {
    if (!order_.empty()) index = order_[static_cast<std::size_t>(index)];
    const std::int64_t n = index % terms_[0].N();
    const std::int64_t m = index / terms_[0].N() % terms_[0].M();
    const std::int64_t batch = index / terms_[0].N() / terms_[0].M();
    for (std::size_t t = 0; t < terms_.size(); ++t)
      terms_[t].add_terms(a(t, chip), b(t, chip), batch, m, n, sum);
  }

  /// The terms with their contracted elements in ring order; empty without rings.
  std::vector<LocalTerm> in_ring_order(int chip) const {
    if (rings_.empty()) return {};
    std::vector<LocalTerm> terms = terms_;
    const Torus& torus = operands_.front().first->torus();
    for (std::size_t t = 0; t < rings_.size(); ++t)
      if (rings_[t].loop != Loop::none)
        terms[t] = terms_[t].looped(rings_[t], torus.size(rings_[t].axes),
                                    torus.block(chip, rings_[t].axes));
    return terms;
  }

  /// Calls body(batch, matrices) with the terms' matrices for each batch index. Matrices is Term or
  /// FieldTerm.
  template <class Matrices, class Body>
  void for_each_batch(const std::vector<LocalTerm>& terms, int chip, Body&& body) const {
    using Number = std::remove_cvref_t<decltype(*Matrices::a)>;
    const auto at = [chip](const SharedValue& operand) {
      if constexpr (std::is_same_v<Number, float>)
        return operand->f32()[static_cast<std::size_t>(chip)].data();
      else
        return operand->field().values[static_cast<std::size_t>(chip)].data();
    };
    std::vector<std::vector<Number>> copies(2 * terms.size());
    std::vector<Matrices> matrices(terms.size());
    for (std::int64_t batch = 0; batch < terms[0].batch(); ++batch) {
      for (std::size_t t = 0; t < terms.size(); ++t)
        matrices[t] = {terms[t].a_matrix(at(operands_[t].first), batch, copies[2 * t]),
                       terms[t].b_matrix(at(operands_[t].second), batch, copies[2 * t + 1]),
                       terms[t].K()};
      body(batch, matrices);
    }
  }

  /// The column norms of a matrix b that fills its buffer, cached with the buffer.
  ColumnNorms* norms_of(std::size_t term, int chip) const {
    if (terms_[term].batch() != 1) return nullptr;
    return &operands_[term].second->f32()[static_cast<std::size_t>(chip)].norms(
        terms_[term].b_place());
  }

  const float* a(std::size_t term, int chip) const {
    return operands_[term].first->f32()[static_cast<std::size_t>(chip)].data();
  }
  const float* b(std::size_t term, int chip) const {
    return operands_[term].second->f32()[static_cast<std::size_t>(chip)].data();
  }

  std::vector<std::pair<SharedValue, SharedValue>> operands_;
  std::vector<LocalTerm> terms_;
  std::vector<Ring> rings_;
  std::vector<std::int64_t>
      order_;  ///< of the result's elements among the products; empty: as made
};

}  // namespace

Sharded einsum(const EinsumSpec& spec,
               const std::vector<std::pair<SharedValue, SharedValue>>& terms, const Layout& layout,
               const Shape& shape, Threads& threads, Regime regime, NumberFormat acc,
               const std::vector<Ring>& rings, PartialSums values) {
  const Torus& torus = terms.front().first->torus();
  const auto chips = static_cast<std::size_t>(torus.chips());
  auto source = std::make_shared<Contraction>(spec, terms, rings);
  ChipGroups groups(torus, threads);
  for (const auto& [a, b] : terms) {
    groups.split(*a);
    groups.split(*b);
  }
  // Exact sums do not depend on the order in which chunks reach a chip.
  if (regime == Regime::f32 || terms.front().first->holds_field())
    for (const Ring& ring : rings)
      if (ring.loop != Loop::none)
        groups.split([&](int chip) { return torus.block(chip, ring.axes); });
  if (terms.front().first->holds_field()) {
    ChipArrays<FieldElement> sums(chips);
    groups.for_each(threads, [&](std::int64_t chip) {
      sums[static_cast<std::size_t>(chip)] = source->field_sums(static_cast<int>(chip));
    });
    groups.share(sums);
    return {
        torus, layout, shape,
        FieldShards{std::move(sums), terms.front().first->field().field, FieldSort::number, {}}};
  }
  if (regime == Regime::f32) {
    ChipArrays<float> chains(chips);
    groups.for_each(threads, [&](std::int64_t chip) {
      chains[static_cast<std::size_t>(chip)] = source->chains(static_cast<int>(chip), acc);
    });
    groups.share(chains);
    return {torus, layout, shape, std::move(chains)};
  }
  if (layout.is_partial() && values == PartialSums::allow_lazy && source->by_rows()) {
    Partial partial;
    partial.values = empty_by<Buffer<double>>(groups, chips);
    partial.bounds.resize(chips);
    partial.origins.resize(chips);
    partial.source = source;
    partial.lazy = std::move(source);
    return {torus, layout, shape, std::move(partial)};
  }
  if (layout.is_partial()) {
    Partial partial;
    partial.values.resize(chips);
    partial.bounds.resize(chips);
    partial.origins.resize(chips);
    groups.for_each(threads, [&](std::int64_t chip) {
      Products products = source->products(static_cast<int>(chip));
      partial.values[static_cast<std::size_t>(chip)] = std::move(products.values);
      if (!products.bounds.empty())
        partial.bounds[static_cast<std::size_t>(chip)] = std::move(products.bounds);
    });
    groups.share(partial.values);
    groups.share(partial.bounds);
    partial.source = std::move(source);
    return {torus, layout, shape, std::move(partial)};
  }
  ChipArrays<float> rounded(chips);
  groups.for_each(threads, [&](std::int64_t chip) {
    const Products products = source->products(static_cast<int>(chip));
    auto& buffer = rounded[static_cast<std::size_t>(chip)];
    buffer.resize(products.values.size());
    const auto n = static_cast<std::int64_t>(buffer.size());
    if (products.bounds.empty()) {
      for (std::size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = static_cast<float>(products.values[i]);
      return;
    }
    decide_each(
        products.values.data(), products.bounds.data(), n, buffer.data(), [&](std::int64_t i) {
          return settled([&](auto& sum) { source->add_terms(static_cast<int>(chip), i, sum); });
        });
  });
  groups.share(rounded);
  return {torus, layout, shape, std::move(rounded)};
}

}  // namespace shardproof
