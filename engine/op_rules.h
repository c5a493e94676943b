#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "engine/layout.h"
#include "weights/error.h"

namespace shardproof::typing {

/// "H_zyx", or "H" where there are no axes.
inline std::string named(char letter, const Axes& axes) {
  return Layout({{letter, axes}}, Axes()).to_string();
}

/// The typing rules of one op (docs/typing.md), as they are reported.
class OpRules {
 public:
  explicit OpRules(std::string_view op) : op_(op) {}

  /// Constraint number `n` of this op; `why` is built only if it is broken.
  template <class... T>
  void require(bool holds, int n, fmt::format_string<T...> why, T&&... values) const {
    if (!holds)
      throw Error(fmt::format("{}_c{}", op_, n), fmt::format(why, std::forward<T>(values)...));
  }

  /// The place of a dim that the operand must have.
  std::size_t dim(int n, const Layout& layout, char letter) const {
    const auto at = layout.find(letter);
    require(at.has_value(), n, "{} has no dim {}", layout.to_string(), letter);
    return *at;
  }

  void some_axes(int n, const Axes& axes, const Layout& layout) const {
    require(!axes.empty(), n, "no axes are given for {}", layout.to_string());
  }

  /// Of the dims `which`, those that the operand has are not sharded.
  void unsharded(int n, const Layout& layout, std::string_view which) const {
    for (const Layout::Dim& dim : layout.dims())
      require(dim.axes.empty() || which.find(dim.letter) == std::string_view::npos, n,
              "dim {} of {} must not be sharded", dim.letter, layout.to_string());
  }

 private:
  std::string_view op_;
};

}  // namespace shardproof::typing
