// Typing of contractions and the table lookup: the ops that yield partial sums.
#include <algorithm>

#include "engine/program/detail/typing_rules.h"

namespace shardproof::typing {

/// Types one term of a contraction: contracted axes become partialsum.
static Type einsum_term(const Rules& rules, const EinsumSpec::Term& term, std::size_t a,
                        std::size_t b) {
  rules.letters(2, a, term.a);
  rules.letters(2, b, term.b);
  rules.aligned(3, a, b);
  const Type& ta = rules.arg(a);
  const Type& tb = rules.arg(b);
  for (char c : term.result)
    rules.require(ta.layout.find(c) || tb.layout.find(c), 4,
                  "{} of the result is in neither operand", c);
  const std::string summed = EinsumSpec::contracted(term);
  for (char c : term.a + term.b)
    rules.require(term.result.find(c) != std::string::npos || summed.find(c) != std::string::npos,
                  4, "{} is in one operand only and not in the result", c);
  std::vector<Layout::Dim> dims;
  Shape shape;
  Axes used;
  const auto use = [&](const Axes& axes) {
    for (Axis axis : axes) {
      rules.require(!used.has(axis), 5, "axis {} would shard two dims of the product of {} and {}",
                    to_char(axis), ta.layout, tb.layout);
      used = used.with(axis);
    }
  };
  for (char c : term.result) {
    const Type& t = term.a.find(c) != std::string::npos ? ta : tb;
    dims.push_back({c, t.layout.axes(c)});
    shape.push_back(t.shape[*t.layout.find(c)]);
    use(dims.back().axes);
  }
  Axes partial;
  for (char c : summed) {
    use(ta.layout.axes(c));
    partial = partial.with(ta.layout.axes(c));
  }
  return {Layout(std::move(dims), partial), std::move(shape), false};
}

Types einsum(const Rules& rules, const Op& op) {
  const Type first = einsum_term(rules, op.spec.terms[0], 0, 1);
  for (std::size_t t = 1; t < op.spec.terms.size(); ++t) {
    const Type other = einsum_term(rules, op.spec.terms[t], 2 * t, 2 * t + 1);
    rules.require(other == first, 6, "one term gives {}, another {}", first.layout, other.layout);
  }
  rules.indicators(7, first);
  return {first};
}

Types embed_lookup(const Rules& rules, const Type& ids, const Type& table) {
  rules.letters(2, 1, "VE");
  rules.require(ids.integer && ids.layout.letters() == "BL", 2, "ids are int32 BL, not {}",
                rules.full(0));
  rules.require(!ids.layout.used().has_any(table.layout.used()), 3,
                "an axis shards both the ids {} and the table {}", rules.text(0), rules.text(1));
  std::vector<Layout::Dim> dims = ids.layout.dims();
  dims.push_back(table.layout.dims()[1]);
  return {{Layout(std::move(dims), table.layout.axes('V')),
           {ids.shape[0], ids.shape[1], table.shape[1]},
           false}};
}

}  // namespace shardproof::typing
