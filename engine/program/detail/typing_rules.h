#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/collectives/detail/op_rules.h"
#include "engine/program/typing.h"
#include "weights/base/error.h"

namespace shardproof::typing {

using Types = std::vector<Type>;

/// An operand printed with its number type: "int32 BL".
struct Full {
  const Type& type;
};

}  // namespace shardproof::typing

template <>
struct fmt::formatter<shardproof::typing::Full> : fmt::formatter<std::string_view> {
  auto format(const shardproof::typing::Full& full, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(
        (full.type.integer ? "int32 " : "f32 ") + full.type.layout.to_string(), context);
  }
};

namespace shardproof::typing {

/// The operands of one op being typed, and how violations of its rules are reported.
class Rules : public OpRules {
 public:
  Rules(const Op& op, const Types& args) : OpRules(to_string(op.kind)), op_(op), args_(args) {}

  const Type& arg(std::size_t i) const { return args_[i]; }
  const Layout& text(std::size_t i) const { return args_[i].layout; }
  Full full(std::size_t i) const { return {arg(i)}; }

  /// Constraint 1 of ops that do not take partial sums.
  void complete() const {
    for (std::size_t i = 0; i < args_.size(); ++i) {
      const int integers = op_row(op_.kind).integer_operand;
      const bool integer = integers == static_cast<int>(i) || integers == OpRow::kAll;
      require(!args_[i].layout.is_partial(), 1,
              "operand {} is {}; only collectives, slice, last and views take partial sums",
              op_.args[i], text(i));
      require(!args_[i].integer || integer, 1, "operand {} is int32 {}; f32 is expected",
              op_.args[i], text(i));
    }
  }

  void letters(int n, std::size_t i, std::string_view want) const {
    const auto& dims = arg(i).layout.dims();
    const auto is = [](const Layout::Dim& dim, char letter) { return dim.letter == letter; };
    require(std::equal(dims.begin(), dims.end(), want.begin(), want.end(), is), n,
            "operand {} is {}; dims {} are expected", op_.args[i], text(i), want);
  }

  void unsharded(int n, std::size_t i, std::string_view which) const {
    OpRules::unsharded(n, arg(i).layout, which);
  }

  /// Requires that the indicators of `where`, the last operands, have some of a value's letters,
  /// sharded as they are.
  void indicators(int n, const Type& of) const {
    for (std::size_t i = op_.operands(); i < args_.size(); ++i) indicator(n, of, args_[i]);
  }
  void indicator(int n, const Type& of, const Type& w) const {
    require(!w.integer, n, "the indicator is int32 {}; f32 is expected", w.layout);
    for (const Layout::Dim& dim : w.layout.dims()) {
      const auto at = of.layout.find(dim.letter);
      require(at.has_value(), n, "the indicator {} has {}, which {} lacks", w.layout, dim.letter,
              of.layout);
      require(dim.axes == of.layout.dims()[*at].axes, n, "the indicator {} has {} where {} has {}",
              w.layout, named(dim.letter, dim.axes), of.layout,
              named(dim.letter, of.layout.dims()[*at].axes));
      require(w.shape[*w.layout.find(dim.letter)] == of.shape[*at], n,
              "the indicator has {}={} where {} has {}={}", dim.letter,
              w.shape[*w.layout.find(dim.letter)], of.layout, dim.letter, of.shape[*at]);
    }
  }

  /// Requires that the shared letters of two operands have the same subscripts and extents.
  void aligned(int n, std::size_t i, std::size_t j) const {
    for (const Layout::Dim& dim : arg(i).layout.dims()) {
      const auto at = arg(j).layout.find(dim.letter);
      if (!at) continue;
      const Axes other = arg(j).layout.dims()[*at].axes;
      require(dim.axes == other, n,
              "{} has {} where {} has {}; a shared dim must be sharded the same way, axis by axis",
              text(i), named(dim.letter, dim.axes), text(j), named(dim.letter, other));
      const std::int64_t a = arg(i).shape[*arg(i).layout.find(dim.letter)];
      const std::int64_t b = arg(j).shape[*at];
      require(a == b, n, "{} has {}={} where {} has {}={}", text(i), dim.letter, a, text(j),
              dim.letter, b);
    }
  }

 private:
  const Op& op_;
  const Types& args_;
};

// The typing rules of each op, from operand types to result types (docs/typing.md), once the rules
// of the table of ops hold; those of collectives are in engine/collectives/collective_types.h.
Types einsum(const Rules& rules, const Op& op);
Types embed_lookup(const Rules& rules, const Type& ids, const Type& table);

Types same_layouts(const Rules& rules, const Type& a, const Type& b);
Types broadcast(const Rules& rules, const Types& args);
Types norm(const Rules& rules, const Types& args);
Types rope(const Rules& rules, const Type& t);
Types append(const Rules& rules, const Type& cache, const Type& t);
Types attend(const Rules& rules, const Type& q, const Type& k, bool slopes);
Types attend_prefix(const Rules& rules, bool slopes);
Types with_prefix(const Rules& rules, const Type& prefixes, const Type& cache);
Types local_argmax(const Rules& rules, const Type& z, const Torus& torus);
Types argmax(const Rules& rules, const Type& value);
Types weigh(const Rules& rules, const Type& z);
/// top_k and top_p; their rounds sum `words` words in all.
Types search(const Rules& rules, const Type& e, const Axes& axes, std::int64_t words);
Types masses(const Rules& rules, const Type& e, const Torus& torus);
Types draw(const Rules& rules, const Type& e, const Type& masses, const Torus& torus);

Types map(const Rules& rules, const Op& op);
/// max, stored_sum, mean.
Types local_reduction(const Rules& rules, const Op& op);
Types sum(const Rules& rules, const Op& op);
Types top(const Rules& rules, const Op& op);
Types turn(const Rules& rules, const Op& op);
Types gather(const Rules& rules, const Type& index, const Type& table);

}  // namespace shardproof::typing
