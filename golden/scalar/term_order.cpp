#include "golden/scalar/term_order.h"

#include <fmt/format.h>

#include <iterator>

#include "golden/scalar/ring_place.h"
#include "weights/base/error.h"

namespace shardproof::scalar {
namespace {

/// Returns the chunks of a looped dim, `n` indices each, or their halves, in the order in which
/// they reach chip j of a ring of K.
std::vector<Range> as_they_come(Loop loop, std::int64_t K, std::int64_t j, std::int64_t n) {
  std::vector<Range> order{{j * n, j * n + n}};
  const std::int64_t half = n - n / 2;
  std::int64_t left = (j + K - 1) % K;  // owner of the chunk that last came from the left
  std::int64_t right = (j + 1) % K;
  for (std::int64_t used = 1; used < K; left = (left + K - 1) % K, right = (right + 1) % K) {
    if (loop == Loop::both_half) {  // each chunk arrives in halves, from two sides
      order.push_back({left * n, left * n + half});
      order.push_back({right * n + half, right * n + n});
      ++used;
      continue;
    }
    order.push_back({left * n, left * n + n});
    ++used;
    if (loop == Loop::both_full && used < K) {
      order.push_back({right * n, right * n + n});
      ++used;
    }
  }
  return order;
}

}  // namespace

std::int64_t stride(const Value& t, char letter) {
  const auto at = t.layout.find(letter);
  if (!at) return 0;
  std::int64_t n = 1;
  for (std::size_t d = *at + 1; d < t.shape.size(); ++d) n *= t.shape[d];
  return n;
}

std::int64_t extent(const Value& t, char letter) { return t.shape[*t.layout.find(letter)]; }

OwnedTerms::OwnedTerms(const EinsumSpec::Term& term, const Value& of_a, const Value& of_b,
                       const Torus& torus, const Place& place, char looped,
                       const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    std::vector<std::int64_t> in_a{0}, in_b{0};
    for (char letter : term.a) {
      if (term.b.find(letter) == std::string::npos || term.result.find(letter) != std::string::npos)
        continue;
      std::int64_t block = 0;
      std::int64_t blocks = 1;
      for (Axis axis : of_a.layout.axes(letter)) {
        block = block * torus.size(axis) + place[axis];
        blocks *= torus.size(axis);
      }
      const std::int64_t length = extent(of_a, letter) / blocks;
      const std::int64_t from = letter == looped ? range.from : 0;
      const std::int64_t to = letter == looped ? range.to : length;
      std::vector<std::int64_t> next_a, next_b;
      for (std::size_t i = 0; i < in_a.size(); ++i)
        for (std::int64_t k = block * length + from; k < block * length + to; ++k) {
          next_a.push_back(in_a[i] + k * stride(of_a, letter));
          next_b.push_back(in_b[i] + k * stride(of_b, letter));
        }
      in_a = std::move(next_a);
      in_b = std::move(next_b);
    }
    a.insert(a.end(), in_a.begin(), in_a.end());
    b.insert(b.end(), in_b.begin(), in_b.end());
  }
  for (std::size_t i = 1; i < a.size(); ++i)
    a_side_by_side = a_side_by_side && a[i] == a[i - 1] + 1;
}

TermOrder::TermOrder(const Op& op, std::size_t t, const std::vector<const Value*>& args,
                     const Torus& torus, const Place& place) {
  const EinsumSpec::Term& term = op.spec.terms[t];
  const Value& a = *args[2 * t];
  const Value& b = *args[2 * t + 1];
  const Value* looped = nullptr;
  for (const std::size_t arg : op.looped)
    if (arg / 2 == t) looped = args[arg];
  if (looped == nullptr || looped->loop == Loop::none ||
      EinsumSpec::contracted(term).find(looped->ring_dim) == std::string::npos) {
    of_chip.emplace_back(term, a, b, torus, place);
    return;
  }
  ring = looped->ring;
  const std::int64_t K = torus.size(ring);
  const char dim = looped->ring_dim;
  const std::int64_t n = extent(a, dim) / torus.size(a.layout.axes(dim)) / K;
  for (std::int64_t j = 0; j < K; ++j)
    of_chip.emplace_back(term, a, b, torus, place, dim, as_they_come(looped->loop, K, j, n));
}

void require_placed(const Op& op, const std::vector<const Value*>& args, const Torus& torus) {
  for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
    const Value& a = *args[2 * t];
    const Value& b = *args[2 * t + 1];
    for (char letter : EinsumSpec::contracted(op.spec.terms[t])) {
      bool placed = a.layout.axes(letter) == b.layout.axes(letter);
      for (Axis axis : a.layout.axes(letter))
        placed = placed && (torus.size(axis) == 1 || op.results[0].layout.partial().has(axis));
      if (!placed)
        throw Error("scalar_c2",
                    fmt::format("{}: no order of {} is defined for {} and {}", op.to_string(),
                                letter, a.layout.to_string(), b.layout.to_string()));
    }
  }
}

}  // namespace shardproof::scalar
