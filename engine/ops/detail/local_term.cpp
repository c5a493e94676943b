#include "engine/ops/detail/local_term.h"

#include <algorithm>

namespace shardproof {
namespace {

using Offsets = std::vector<std::int64_t>;

std::int64_t stride_of(const Shape& shape, std::size_t dim) {
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < shape.size(); ++d) stride *= shape[d];
  return stride;
}

/// Offsets in `of` (letters with shape) of the combined index over `group`, whose extents are
/// read from `of`, or from `beside`.
Offsets offsets_of_group(const std::string& group, const std::string& of, const Shape& shape,
                         const std::string& beside, const Shape& other) {
  Offsets result{0};
  for (char c : group) {
    const std::size_t at = of.find(c);
    const bool has = at != std::string::npos;
    const std::int64_t stride = has ? stride_of(shape, at) : 0;
    const std::int64_t extent = has ? shape[at] : other[beside.find(c)];
    Offsets wider;
    wider.reserve(result.size() * static_cast<std::size_t>(extent));
    for (std::int64_t base : result)
      for (std::int64_t i = 0; i < extent; ++i) wider.push_back(base + i * stride);
    result = std::move(wider);
  }
  return result;
}

/// Returns true if rows and columns at these offsets form a row-major matrix without gaps.
bool lie_as_matrix(const Offsets& rows, const Offsets& columns) {
  const auto evenly = [](const Offsets& offsets, std::int64_t apart) {
    std::int64_t at = -apart;
    return std::all_of(offsets.begin(), offsets.end(),
                       [&](std::int64_t offset) { return offset == (at += apart); });
  };
  return evenly(rows, std::ssize(columns)) && evenly(columns, 1);
}

}  // namespace

ResultLetters::ResultLetters(const EinsumSpec& spec) {
  for (const char c : spec.terms[0].result) {
    bool in_a = false, in_b = false;
    for (const EinsumSpec::Term& term : spec.terms) {
      in_a = in_a || term.a.find(c) != std::string::npos;
      in_b = in_b || term.b.find(c) != std::string::npos;
    }
    (in_a && in_b ? batch : in_a ? m : n) += c;
  }
}

LocalTerm::LocalTerm(const EinsumSpec::Term& term, const ResultLetters& letters, const Shape& a,
                     const Shape& b) {
  const auto& [batch, m, n] = letters;
  const std::string k = EinsumSpec::contracted(term);
  for (char c : k) k_extents_.emplace_back(c, a[term.a.find(c)]);
  a_batch_ = offsets_of_group(batch, term.a, a, term.b, b);
  b_batch_ = offsets_of_group(batch, term.b, b, term.a, a);
  a_m_ = offsets_of_group(m, term.a, a, term.a, a);
  a_k_ = offsets_of_group(k, term.a, a, term.a, a);
  b_k_ = offsets_of_group(k, term.b, b, term.a, a);
  b_n_ = offsets_of_group(n, term.b, b, term.b, b);
  const auto add_place = [&](const std::string& group) {
    for (char c : group) {
      const std::size_t at = term.b.find(c);
      b_place_.insert(b_place_.end(), {b[at], stride_of(b, at)});
    }
  };
  add_place(k);
  b_place_.push_back(0);
  add_place(n);
  see_how_it_lies();
}

LocalTerm LocalTerm::looped(const Ring& ring, std::int64_t K, std::int64_t chip) const {
  LocalTerm term = *this;
  const std::vector<std::int64_t> order = looped_order(ring, K, chip);
  for (std::size_t i = 0; i < order.size(); ++i) {
    term.a_k_[i] = a_k_[static_cast<std::size_t>(order[i])];
    term.b_k_[i] = b_k_[static_cast<std::size_t>(order[i])];
  }
  term.see_how_it_lies();
  return term;
}

/// The indices of the contracted elements in row-major order, chunk by chunk. Empty where the
/// ring's dim is not contracted: its chunks are never added to one another.
std::vector<std::int64_t> LocalTerm::looped_order(const Ring& ring, std::int64_t K,
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

void LocalTerm::see_how_it_lies() {
  a_lies_ = lie_as_matrix(a_m_, a_k_);
  b_lies_ = lie_as_matrix(b_k_, b_n_);
}

}  // namespace shardproof
