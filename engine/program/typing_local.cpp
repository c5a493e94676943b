// The local ops on complete operands.
#include <fmt/ranges.h>

#include "engine/program/typing_rules.h"

namespace shardproof::typing {

Types same_layouts(const Rules& rules, const Type& a, const Type& b) {
  rules.require(a == b, 2, "operands differ: {} [{}] and {} [{}]", a.layout.to_string(),
                fmt::join(a.shape, ","), b.layout.to_string(), fmt::join(b.shape, ","));
  return {a};
}

Types broadcast(const Rules& rules, const Types& args) {
  const Type& t = args[0];
  for (std::size_t i = 1; i < args.size(); ++i) {
    for (const Layout::Dim& dim : args[i].layout.dims())
      rules.require(t.layout.find(dim.letter).has_value(), 2, "{} has no dim {} of {}",
                    t.layout.to_string(), dim.letter, args[i].layout.to_string());
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
  rules.letters(2, 0, "BMKQ");
  rules.letters(2, 1, "BLKQ");
  rules.letters(2, 2, "BL");
  rules.require(rules.arg(2).integer, 2, "positions are int32 BL, not {}", rules.full(2));
  rules.unsharded(3, 0, "M");
  rules.unsharded(3, 1, "L");
  rules.aligned(4, 0, 1);
  rules.aligned(4, 1, 2);
  Type grown = cache;
  grown.shape[1] += t.shape[1];
  return {grown};
}

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
  rules.require(q.layout.axes('H').starts_with(k.layout.axes('K')), 6,
                "the kv heads' subscript of {} is not a prefix of the heads' of {}", rules.text(1),
                rules.text(0));
  rules.require(k.shape[2] > 0 && q.shape[2] % k.shape[2] == 0, 7, "H={} is not divisible by K={}",
                q.shape[2], k.shape[2]);
  const auto& dims = q.layout.dims();
  const Type row{
      Layout({dims[0], dims[1], dims[2]}, Axes()), {q.shape[0], q.shape[1], q.shape[2]}, false};
  const Type scores{Layout({dims[0], dims[1], dims[2], {'M', Axes()}}, Axes()),
                    {q.shape[0], q.shape[1], q.shape[2], k.shape[1]},
                    false};
  return {scores, row, scores, row, q};
}

Types local_argmax(const Rules& rules, const Type& z, const Torus& torus) {
  rules.letters(2, 0, "BV");
  const Layout layout({z.layout.dims()[0], {'C', z.layout.axes('V')}}, Axes());
  const Shape shape{z.shape[0], torus.size(z.layout.axes('V'))};
  return {{layout, shape, false}, {layout, shape, true}};
}

Types argmax(const Rules& rules, const Type& value) {
  rules.letters(2, 0, "BC");
  rules.letters(2, 1, "BC");
  rules.require(rules.arg(1).integer, 2, "indices are int32 BC, not {}", rules.full(1));
  rules.unsharded(3, 0, "C");
  rules.aligned(4, 0, 1);
  return {{Layout({value.layout.dims()[0]}, Axes()), {value.shape[0]}, true}};
}

}  // namespace shardproof::typing
