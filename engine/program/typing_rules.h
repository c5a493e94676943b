#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/program/typing.h"
#include "weights/error.h"

namespace shardproof::typing {

using Types = std::vector<Type>;

/// "H_zyx", or "H" where there are no axes.
inline std::string named(char letter, const Axes& axes) {
  return Layout({{letter, axes}}, Axes()).to_string();
}
/// One op being typed: its operands, and the way its rules are reported.
class Rules {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  Rules(const Op& op, const Types& args) : op_(op), args_(args) {}

  /// Constraint number `n` of this op; `why` is built only if it is broken.
  template <class... T>
  void require(bool holds, int n, fmt::format_string<T...> why, T&&... values) const {
    if (!holds)
      throw Error(fmt::format("{}_c{}", to_string(op_.kind), n),
                  fmt::format(why, std::forward<T>(values)...));
  }

  const Type& arg(std::size_t i) const { return args_[i]; }
  std::string text(std::size_t i) const { return args_[i].layout.to_string(); }
  std::string full(std::size_t i) const { return (arg(i).integer ? "int32 " : "f32 ") + text(i); }

  /// Constraint 1 of every op but collectives, slice, last and the views; `integer` is the operand
  /// that may be int32, if the op has one.
  void complete(std::size_t integer = kNone) const {
    for (std::size_t i = 0; i < args_.size(); ++i) {
      require(!args_[i].layout.is_partial(), 1,
              "operand {} is {}; only collectives, slice, last and views take a partial operand",
              op_.args[i], text(i));
      require(!args_[i].integer || i == integer, 1, "operand {} is int32 {}; f32 is wanted",
              op_.args[i], text(i));
    }
  }

  std::size_t dim(int n, char letter) const {
    const auto at = arg(0).layout.find(letter);
    require(at.has_value(), n, "{} has no dim {}", text(0), letter);
    return *at;
  }

  void some_axes(int n) const {
    require(!op_.axes.empty(), n, "no axes are given for {}", text(0));
  }

  void letters(int n, std::size_t i, std::string_view want) const {
    require(arg(i).layout.letters() == want, n, "operand {} is {}; dims {} are wanted", op_.args[i],
            text(i), want);
  }

  void unsharded(int n, std::size_t i, std::string_view which) const {
    for (char c : which)
      require(arg(i).layout.axes(c).empty(), n, "dim {} of {} must not be sharded", c, text(i));
  }

  /// The shared letters of two operands have the same subscripts and extents.
  void aligned(int n, std::size_t i, std::size_t j) const {
    for (const Layout::Dim& dim : arg(i).layout.dims()) {
      const auto at = arg(j).layout.find(dim.letter);
      if (!at) continue;
      const Axes other = arg(j).layout.dims()[*at].axes;
      require(dim.axes == other, n, "{} has {} where {} has {}", text(i),
              named(dim.letter, dim.axes), text(j), named(dim.letter, other));
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

// The rules of each op, operand types in, result types out (docs/typing.md).
Types all_gather(const Rules& rules, const Op& op, const Type& t);
Types reduce_scatter(const Rules& rules, const Op& op, const Type& t);
Types all_reduce(const Rules& rules, const Op& op, const Type& t);
Types all_to_all(const Rules& rules, const Op& op, const Type& t);
Types permute_axes(const Rules& rules, const Op& op, const Type& t);
Types slice(const Rules& rules, const Op& op, const Type& t);
Types last(const Rules& rules, const Op&, const Type& t);
Types split_dim(const Rules& rules, const Op& op, const Type& t, const Torus& torus);
Types merge_dim(const Rules& rules, const Op& op, const Type& t, const Torus& torus);

Types einsum(const Rules& rules, const Op& op);
Types embed_lookup(const Rules& rules, const Type& ids, const Type& table);

Types same_layouts(const Rules& rules, const Type& a, const Type& b);
Types unchanged(const Rules& rules, const Type& t);
Types broadcast(const Rules& rules, const Types& args);
Types norm(const Rules& rules, const Types& args);
Types rope(const Rules& rules, const Type& t);
Types append(const Rules& rules, const Type& cache, const Type& t);
Types attend(const Rules& rules, const Type& q, const Type& k);
Types local_argmax(const Rules& rules, const Type& z, const Torus& torus);
Types argmax(const Rules& rules, const Type& value);

}  // namespace shardproof::typing
