#include "engine/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>

#include "engine/chip_groups.h"
#include "engine/field_product.h"
#include "engine/numeric/compensated_sum.h"
#include "engine/numeric/contract.h"
#include "engine/numeric/rounding_test.h"
#include "engine/numeric/tile_sum.h"
#include "weights/error.h"

namespace shardproof {
namespace {

using Offsets = std::vector<std::int64_t>;

/// One term's local index arithmetic: where in a and b the letters of a group lie, the group's
/// combined index being row-major. Batch letters are in a, b and the result; m in a, n in b.
class LocalTerm {
 public:
  LocalTerm(const EinsumSpec::Term& term, const Shape& a, const Shape& b) {
    std::string batch, m, n;
    for (char c : term.result) {
      const bool in_a = term.a.find(c) != std::string::npos;
      const bool in_b = term.b.find(c) != std::string::npos;
      (in_a && in_b ? batch : in_a ? m : n) += c;
    }
    const std::string k = EinsumSpec::contracted(term);
    for (char c : k) k_extents_.emplace_back(c, a[term.a.find(c)]);
    a_batch_ = offsets(batch, term.a, a, term.a, a);
    b_batch_ = offsets(batch, term.b, b, term.a, a);
    a_m_ = offsets(m, term.a, a, term.a, a);
    a_k_ = offsets(k, term.a, a, term.a, a);
    b_k_ = offsets(k, term.b, b, term.a, a);
    b_n_ = offsets(n, term.b, b, term.b, b);
    see_how_it_lies();
  }

  /// The same with the contracted elements in the order of a ring of K, as they reach chip `chip`.
  LocalTerm looped(const Ring& ring, std::int64_t K, std::int64_t chip) const {
    LocalTerm term = *this;
    const std::vector<std::int64_t> order = looped_order(ring, K, chip);
    for (std::size_t i = 0; i < order.size(); ++i) {
      term.a_k_[i] = a_k_[static_cast<std::size_t>(order[i])];
      term.b_k_[i] = b_k_[static_cast<std::size_t>(order[i])];
    }
    term.see_how_it_lies();
    return term;
  }

  std::int64_t batch() const { return size(a_batch_); }
  std::int64_t M() const { return size(a_m_); }
  std::int64_t N() const { return size(b_n_); }
  std::int64_t K() const { return size(a_k_); }

  /// Whether rows of a and all of b lie as matrices, so that tiles of rows need no copy.
  bool by_rows() const { return batch() == 1 && a_lies_ && b_lies_; }
  /// Rows of a as [M,K] and of b as [K,N] for one batch index, copied only if they lie otherwise.
  template <class T>
  const T* a_matrix(const T* a, std::int64_t batch, std::vector<T>& copy) const {
    return matrix(a + a_batch_[static_cast<std::size_t>(batch)], a_m_, a_k_, a_lies_, copy);
  }
  template <class T>
  const T* b_matrix(const T* b, std::int64_t batch, std::vector<T>& copy) const {
    return matrix(b + b_batch_[static_cast<std::size_t>(batch)], b_k_, b_n_, b_lies_, copy);
  }

  template <class Sum>
  void add_terms(const float* a, const float* b, std::int64_t batch, std::int64_t m, std::int64_t n,
                 Sum& sum) const {
    const float* row =
        a + a_batch_[static_cast<std::size_t>(batch)] + a_m_[static_cast<std::size_t>(m)];
    const float* column =
        b + b_batch_[static_cast<std::size_t>(batch)] + b_n_[static_cast<std::size_t>(n)];
    for (std::int64_t offset : b_k_) __builtin_prefetch(column + offset);  // each its own line
    for (std::size_t k = 0; k < a_k_.size(); ++k) sum.add_product(row[a_k_[k]], column[b_k_[k]]);
  }

 private:
  static std::int64_t size(const Offsets& offsets) {
    return static_cast<std::int64_t>(offsets.size());
  }

  /// The places of the contracted elements in row-major order, chunk by chunk; none where the
  /// ring's dim is not contracted, whose chunks are never added to one another.
  std::vector<std::int64_t> looped_order(const Ring& ring, std::int64_t K,
                                         std::int64_t chip) const {
    std::int64_t outer = 1, extent = 0, inner = 1;
    for (const auto& [letter, n] : k_extents_) {
      if (letter == ring.dim)
        extent = n;
      else
        (extent == 0 ? outer : inner) *= n;
    }
    std::vector<std::int64_t> order;
    const std::int64_t n = extent / K;
    for (const RingChunk& one : gathered_chunks(ring.loop, K, chip)) {
      const std::int64_t half = one.chunk * n + first_half(n);
      const std::int64_t begin = one.part == ChunkPart::second_half ? half : one.chunk * n;
      const std::int64_t end = one.part == ChunkPart::first_half ? half : (one.chunk + 1) * n;
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t k = 0; k < inner; ++k) order.push_back((o * extent + i) * inner + k);
    }
    return order;
  }

  /// Offsets in `of` (letters with shape) of the combined index over `group`, whose extents are
  /// read from `extents_of`.
  static Offsets offsets(const std::string& group, const std::string& of, const Shape& shape,
                         const std::string& extents_of, const Shape& extents) {
    Offsets result{0};
    for (char c : group) {
      const std::size_t at = of.find(c);
      std::int64_t stride = 1;
      for (std::size_t d = at + 1; d < shape.size(); ++d) stride *= shape[d];
      const std::int64_t extent = extents[extents_of.find(c)];
      Offsets wider;
      wider.reserve(result.size() * static_cast<std::size_t>(extent));
      for (std::int64_t base : result)
        for (std::int64_t i = 0; i < extent; ++i) wider.push_back(base + i * stride);
      result = std::move(wider);
    }
    return result;
  }

  void see_how_it_lies() {
    a_lies_ = contiguous(a_m_, a_k_);
    b_lies_ = contiguous(b_k_, b_n_);
  }

  /// Whether rows and columns at these places are a matrix that lies row-major and without gaps.
  static bool contiguous(const Offsets& rows, const Offsets& columns) {
    const auto evenly = [](const Offsets& offsets, std::int64_t apart) {
      std::int64_t at = -apart;
      return std::all_of(offsets.begin(), offsets.end(),
                         [&](std::int64_t offset) { return offset == (at += apart); });
    };
    return evenly(rows, size(columns)) && evenly(columns, 1);
  }

  template <class T>
  static const T* matrix(const T* data, const Offsets& rows, const Offsets& columns, bool lies,
                         std::vector<T>& copy) {
    if (lies) return data;
    copy.resize(rows.size() * columns.size());
    auto out = copy.begin();
    for (std::int64_t row : rows)
      for (std::int64_t column : columns) *out++ = data[row + column];
    return copy.data();
  }

  Offsets a_batch_, b_batch_, a_m_, a_k_, b_k_, b_n_;
  bool a_lies_ = false, b_lies_ = false;                  ///< as the matrices that are asked for
  std::vector<std::pair<char, std::int64_t>> k_extents_;  ///< of the contracted letters
};

/// The contraction as executed: index arithmetic and every chip's operands.
class Contraction : public PartialSource, public Summands {
 public:
  Contraction(const EinsumSpec& spec, std::vector<std::pair<SharedValue, SharedValue>> operands,
              std::vector<Ring> rings)
      : operands_(std::move(operands)), rings_(std::move(rings)) {
    for (std::size_t t = 0; t < spec.terms.size(); ++t)
      terms_.emplace_back(spec.terms[t], operands_[t].first->local(), operands_[t].second->local());
  }

  /// From now on the norms of a matrix b that `holders` chips or more hold in common are made once.
  /// Of f32 operands.
  void keep_norms(int holders) {
    norms_.clear();
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      norms_.emplace_back();
      if (terms_[t].batch() != 1) continue;
      const ChipArrays<float>& held = operands_[t].second->f32();
      std::map<const void*, int> of_buffer;
      for (std::size_t chip = 0; chip < held.size(); ++chip) ++of_buffer[held.identity(chip)];
      for (const auto& [buffer, chips] : of_buffer)
        if (chips >= holders) norms_[t][buffer] = std::make_unique<ColumnNorms>();
    }
  }

  std::int64_t count() const { return terms_[0].batch() * terms_[0].M() * terms_[0].N(); }

  /// One chip's result shard in the exact regime.
  Products products(int chip) const {
    Products all;
    for_each_batch<Term>(terms_, chip, [&](std::int64_t, const std::vector<Term>& matrices) {
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
    return all;
  }

  /// Whether tiles of the result can be made one by one at no more than the whole costs.
  bool by_rows() const {
    return std::all_of(terms_.begin(), terms_.end(),
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
  Buffer<float> chains(int chip, FloatType acc) const {
    Buffer<float> all(static_cast<std::size_t>(count()));
    const std::int64_t M = terms_[0].M();
    const std::int64_t N = terms_[0].N();
    const std::vector<LocalTerm> looped = in_ring_order(chip);
    const auto one = acc == FloatType::bf16 ? bf16_chain : chain;
    for_each_batch<Term>(looped.empty() ? terms_ : looped, chip,
                         [&](std::int64_t batch, const std::vector<Term>& matrices) {
                           one(M, N, matrices, all.data() + batch * M * N);
                         });
    return all;
  }

  /// One chip's result shard in the field regime, where sums have no order but the chunks of a ring
  /// may yet be the wrong ones.
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
    return all;
  }

  void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const override {
    add_all_terms(chip, index, sum);
  }
  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    add_all_terms(chip, index, sum);
  }

 private:
  template <class Sum>
  void add_all_terms(int chip, std::int64_t index, Sum& sum) const {
    const std::int64_t n = index % terms_[0].N();
    const std::int64_t m = index / terms_[0].N() % terms_[0].M();
    const std::int64_t batch = index / terms_[0].N() / terms_[0].M();
    for (std::size_t t = 0; t < terms_.size(); ++t)
      terms_[t].add_terms(a(t, chip), b(t, chip), batch, m, n, sum);
  }

  /// The terms with their contracted elements in the order of their rings; none without rings.
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

  /// Calls body(batch, matrices) with the terms' matrices for each batch index. Matrices is Term,
  /// or FieldTerm.
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
      if constexpr (std::is_same_v<Matrices, Term>)
        for (std::size_t t = 0; t < norms_.size(); ++t) matrices[t].norms = norms_of(t, chip);
      body(batch, matrices);
    }
  }

  ColumnNorms* norms_of(std::size_t term, int chip) const {
    const void* const buffer =
        operands_[term].second->f32().identity(static_cast<std::size_t>(chip));
    const auto at = norms_[term].find(buffer);
    return at == norms_[term].end() ? nullptr : at->second.get();
  }

  const float* a(std::size_t term, int chip) const {
    return operands_[term].first->f32()[static_cast<std::size_t>(chip)].data();
  }
  const float* b(std::size_t term, int chip) const {
    return operands_[term].second->f32()[static_cast<std::size_t>(chip)].data();
  }

  std::vector<std::pair<SharedValue, SharedValue>> operands_;
  std::vector<LocalTerm> terms_;
  /// Of each term by the buffer of b; none where they are not shared.
  std::vector<std::map<const void*, std::unique_ptr<ColumnNorms>>> norms_;
  std::vector<Ring> rings_;
};

}  // namespace

EinsumSpec EinsumSpec::parse(std::string_view text) {
  const auto malformed = [&] {
    return Error("einsum_c0",
                 fmt::format("'{}' is not a valid einsum; write BLE,EF->BLF, several terms "
                             "joined by ' + '",
                             text));
  };
  EinsumSpec spec;
  std::string_view rest = text;
  for (;;) {
    const auto plus = rest.find(" + ");
    const std::string_view part = rest.substr(0, plus);
    const auto comma = part.find(',');
    const auto arrow = part.find("->");
    if (comma == std::string_view::npos || arrow == std::string_view::npos || arrow < comma)
      throw malformed();
    Term term{std::string(part.substr(0, comma)),
              std::string(part.substr(comma + 1, arrow - comma - 1)),
              std::string(part.substr(arrow + 2))};
    for (const std::string* letters : {&term.a, &term.b, &term.result})
      for (std::size_t i = 0; i < letters->size(); ++i)
        if ((*letters)[i] < 'A' || (*letters)[i] > 'Z' || letters->find((*letters)[i]) != i)
          throw malformed();
    if (term.a.empty() || term.b.empty()) throw malformed();
    spec.terms.push_back(std::move(term));
    if (plus == std::string_view::npos) return spec;
    rest = rest.substr(plus + 3);
  }
}

std::string EinsumSpec::to_string() const {
  std::string text;
  for (const Term& term : terms)
    text += (text.empty() ? "" : " + ") + term.a + "," + term.b + "->" + term.result;
  return text;
}

std::string EinsumSpec::contracted(const Term& term) {
  std::string letters;
  for (char c : term.a)
    if (term.b.find(c) != std::string::npos && term.result.find(c) == std::string::npos)
      letters += c;
  return letters;
}

Sharded einsum(const EinsumSpec& spec,
               const std::vector<std::pair<SharedValue, SharedValue>>& terms, const Layout& layout,
               const Shape& shape, Threads& threads, Regime regime, FloatType acc,
               const std::vector<Ring>& rings, PartialValues values) {
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
  if (layout.is_partial() && values == PartialValues::may_be_unmade && source->by_rows()) {
    source->keep_norms(1);  // every tile asks for them
    Partial partial;
    partial.values = empty_by<Buffer<double>>(groups, chips);
    partial.bounds.resize(chips);
    partial.origins.resize(chips);
    partial.source = source;
    partial.unmade = std::move(source);
    return {torus, layout, shape, std::move(partial)};
  }
  if (threads.shares()) source->keep_norms(2);
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
