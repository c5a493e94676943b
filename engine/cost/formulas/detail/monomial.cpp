#include "engine/cost/formulas/detail/monomial.h"

#include <algorithm>
#include <cstddef>

namespace shardproof::cost {
namespace {

double power(double base, int exponent) {
  double product = 1.0;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

Monomial extent_of_dim(const Layout::Dim& dim, std::int64_t extent, const Torus& torus,
                       const Pass& like) {
  Monomial m;
  m.divisor = torus.size(dim.axes);
  if (dim.letter == 'B')
    m.B = 1;
  else if (dim.letter == 'L')
    m.L = 1;
  else if (dim.letter == 'M')  // L is at least 1, so that the caches before and after differ
    (extent == like.M ? m.M : m.grown) = 1;
  else
    m.factor = static_cast<double>(extent);
  return m;
}

}  // namespace

Monomial Monomial::times(double by) const {
  Monomial product = *this;
  product.factor *= by;
  return product;
}

Monomial Monomial::times(const Monomial& other) const {
  return {factor * other.factor, divisor * other.divisor, B + other.B,      L + other.L,
          M + other.M,           grown + other.grown,     seen + other.seen};
}

Monomial Monomial::masked() const {
  Monomial left = *this;
  left.L -= 1;
  left.grown -= 1;
  left.seen += 1;
  return left;
}

Monomial Monomial::of_one_position() const {
  Monomial one = *this;
  one.L = 0;
  return one;
}

double Monomial::at(const Pass& pass, double pairs) const {
  const auto rows = static_cast<double>(pass.B), tokens = static_cast<double>(pass.L),
             cached = static_cast<double>(pass.M);
  return power(rows, B) * power(tokens, L) * power(cached, M) * power(cached + tokens, grown) *
         power(pairs, seen) * factor / divisor;
}

void Polynomial::add(const Monomial& term) {
  const auto same =
      std::find_if(terms_.begin(), terms_.end(), [&](const Monomial& t) { return t.alike(term); });
  if (same == terms_.end())
    terms_.push_back(term);
  else
    same->factor += term.factor;
}

double Polynomial::at(const Pass& pass) const {
  double sum = 0.0;
  for (const Monomial& term : terms_) sum += term.at(pass);
  return sum;
}

Monomial dim_extent(const Type& type, char letter, const Torus& torus, const Pass& like) {
  const std::size_t at = type.layout.find(letter).value();
  return extent_of_dim(type.layout.dims()[at], type.shape[at], torus, like);
}

Monomial local_elements(const Type& type, const Torus& torus, const Pass& like) {
  Monomial elements;
  for (std::size_t i = 0; i < type.layout.rank(); ++i)
    elements = elements.times(extent_of_dim(type.layout.dims()[i], type.shape[i], torus, like));
  return elements;
}

}  // namespace shardproof::cost
