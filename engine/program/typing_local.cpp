// Typing of the local ops on complete operands.
#include <fmt/ranges.h>

#include "engine/program/detail/typing_rules.h"

namespace shardproof::typing {

Types same_layouts(const Rules& rules, const Type& a, const Type& b) {
  rules.require(a == b, 2, "operands differ: {} [{}] and {} [{}]", a.layout,
                fmt::join(a.shape, ","), b.layout, fmt::join(b.shape, ","));
  return {a};
}

Types broadcast(const Rules& rules, const Types& args) {
  const Type& t = args[0];
  for (std::size_t i = 1; i < args.size(); ++i) {
    for (const Layout::Dim& dim : args[i].layout.dims())
      rules.require(t.layout.find(dim.letter).has_value(), 2, "{} has no dim {} of {}", t.layout,
                    dim.letter, args[i].layout);
    rules.aligned(3, 0, i);
  }
  return {t};
}

Types norm(const Rules& rules, const Types& args) {
  const Type& x = args[0];
  const std::string letters = x.layout.letters();
  rules.require(!letters.empty() && letters.back() == 'E', 2, "E is not the last dim of {}",
                rules.text(0));
  rules.letters(2, 1, std::string_view(letters).substr(0, letters.size() - 1));
  for (std::size_t i = 2; i < args.size(); ++i) rules.letters(2, i, "E");
  for (std::size_t i = 1; i < args.size(); ++i) rules.aligned(3, 0, i);
  return {x};
}

Types rope(const Rules& rules, const Type& t) {
  const std::string letters = t.layout.letters();
  rules.require(letters == "BLHQ" || letters == "BLKQ", 2, "{} is neither BLHQ nor BLKQ",
                rules.text(0));
  rules.require(rules.arg(1).integer, 2, "positions are int32 BL, not {}", rules.full(1));
  rules.letters(2, 1, "BL");
  rules.unsharded(3, 0, "Q");
  rules.aligned(4, 0, 1);
  for (std::size_t table : {std::size_t{2}, std::size_t{3}}) {
    rules.letters(2, table, "PJ");
    rules.unsharded(3, table, "PJ");
    rules.require(2 * rules.arg(table).shape[1] <= t.shape[3], 4,
                  "the table rotates {} channels of Q={}", 2 * rules.arg(table).shape[1],
                  t.shape[3]);
  }
  rules.require(rules.arg(2).shape == rules.arg(3).shape, 4,
                "cos and sin differ: P={} J={} and P={} J={}", rules.arg(2).shape[0],
                rules.arg(2).shape[1], rules.arg(3).shape[0], rules.arg(3).shape[1]);
  return {t};
}

Types append(const Rules& rules, const Type& cache, const Type& t) {
  std::string letters = t.layout.letters();
  const auto length = letters.find('L');
  rules.require(t.layout.find('B') && length != std::string::npos && !t.layout.find('M'), 2,
                "{} has not B and L, or has M", rules.text(1));
  letters[length] = 'M';
  rules.letters(2, 0, letters);
  rules.letters(2, 2, "BL");
  rules.require(rules.arg(2).integer, 2, "positions are int32 BL, not {}", rules.full(2));
  rules.unsharded(3, 0, "M");
  rules.unsharded(3, 1, "L");
  rules.aligned(4, 0, 1);
  rules.aligned(4, 1, 2);
  Type grown = cache;
  grown.shape[length] += t.shape[length];
  return {grown};
}

namespace {

/// Requires that a chip has the kv heads of its query heads.
void kv_heads(const Rules& rules, int prefix, int divides, const Type& q, const Type& k) {
  rules.require(q.layout.axes('H').starts_with(k.layout.axes('K')), prefix,
                "the kv heads' subscript of {} is not a prefix of the heads' of {}", rules.text(1),
                rules.text(0));
  rules.require(k.shape[2] > 0 && q.shape[2] % k.shape[2] == 0, divides,
                "H={} is not divisible by K={}", q.shape[2], k.shape[2]);
}

/// Types of score, max, exp, denom and attn over `keys` keys.
Types of_attention(const Type& q, std::int64_t keys) {
  const auto& dims = q.layout.dims();
  const Type row{
      Layout({dims[0], dims[1], dims[2]}, Axes()), {q.shape[0], q.shape[1], q.shape[2]}, false};
  const Type scores{Layout({dims[0], dims[1], dims[2], {'M', Axes()}}, Axes()),
                    {q.shape[0], q.shape[1], q.shape[2], keys},
                    false};
  return {scores, row, scores, row, q};
}

}  // namespace

Types attend(const Rules& rules, const Type& q, const Type& k, bool slopes) {
  rules.letters(2, 0, "BLHQ");
  rules.letters(2, 1, "BMKQ");
  rules.letters(2, 3, "BL");
  rules.require(rules.arg(3).integer, 2, "positions are int32 BL, not {}", rules.full(3));
  rules.require(rules.arg(2) == k, 3, "the caches differ: {} and {}", rules.text(1), rules.text(2));
  rules.unsharded(4, 0, "Q");
  rules.unsharded(4, 1, "MQ");
  rules.aligned(5, 0, 1);
  rules.aligned(5, 0, 3);
  if (slopes) {
    rules.letters(2, 4, "H");
    rules.aligned(5, 0, 4);
  }
  kv_heads(rules, 6, 7, q, k);
  return of_attention(q, k.shape[1]);
}

Types attend_prefix(const Rules& rules, bool slopes) {
  const Type& q = rules.arg(0);
  const Type& k = rules.arg(1);
  const Type& of_prefix = rules.arg(3);
  rules.letters(2, 0, "BLHQ");
  rules.letters(2, 1, "BMKQ");
  rules.letters(2, 3, "NTKQ");
  rules.letters(2, 5, "BL");
  rules.require(rules.arg(5).integer, 2, "positions are int32 BL, not {}", rules.full(5));
  if (slopes) rules.letters(2, 6, "H");
  rules.require(rules.arg(2) == k, 3, "the caches differ: {} and {}", rules.text(1), rules.text(2));
  rules.require(rules.arg(4) == of_prefix, 3, "the prefixes' caches differ: {} and {}",
                rules.text(3), rules.text(4));
  rules.unsharded(4, 0, "Q");
  rules.unsharded(4, 1, "MQ");
  rules.unsharded(4, 3, "TQ");
  rules.aligned(5, 0, 1);
  rules.aligned(5, 0, 5);
  rules.aligned(5, 1, 3);
  if (slopes) rules.aligned(5, 0, 6);
  kv_heads(rules, 6, 7, q, k);
  // With these rules a chip has the prefixes that its rows continue.
  rules.require(q.layout.axes('B').starts_with(of_prefix.layout.axes('N')), 8,
                "the prefixes' subscript of {} is not a prefix of the batch's of {}", rules.text(3),
                rules.text(0));
  rules.require(of_prefix.shape[0] > 0 && of_prefix.shape[0] <= q.shape[0], 9,
                "N={} prefixes for B={} rows; there are from 1 to B", of_prefix.shape[0],
                q.shape[0]);
  return of_attention(q, of_prefix.shape[1] + k.shape[1]);
}

Types with_prefix(const Rules& rules, const Type& prefixes, const Type& cache) {
  std::string letters = cache.layout.letters();
  const auto row = letters.find('B'), slot = letters.find('M');
  rules.require(row != std::string::npos && slot != std::string::npos, 2, "{} has not B and M",
                rules.text(1));
  letters[row] = 'N', letters[slot] = 'T';
  rules.letters(2, 0, letters);
  rules.unsharded(3, 0, "T");
  rules.unsharded(3, 1, "M");
  rules.aligned(4, 0, 1);
  const std::int64_t N = prefixes.shape[row], B = cache.shape[row];
  rules.require(cache.layout.axes('B').starts_with(prefixes.layout.axes('N')), 5,
                "the prefixes' subscript of {} is not a prefix of the batch's of {}", rules.text(0),
                rules.text(1));
  rules.require(N > 0 && N <= B, 6, "N={} prefixes for B={} rows; there are from 1 to B", N, B);
  Type whole = cache;
  whole.shape[slot] += prefixes.shape[slot];
  return {whole};
}

}  // namespace shardproof::typing
