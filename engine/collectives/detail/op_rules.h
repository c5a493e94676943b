#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "engine/layout/layout.h"
#include "weights/base/error.h"

template <>
struct fmt::formatter<shardproof::Layout> : fmt::formatter<std::string_view> {
  auto format(const shardproof::Layout& layout, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(layout.to_string(), context);
  }
};

template <>
struct fmt::formatter<shardproof::Axes> : fmt::formatter<std::string_view> {
  auto format(const shardproof::Axes& axes, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(axes.to_string(), context);
  }
};

namespace shardproof::typing {

/// A dim as printed in messages: "H_zyx", or "H" without axes.
struct Named {
  char letter;
  Axes axes;
};
inline Named named(char letter, const Axes& axes) { return {letter, axes}; }

}  // namespace shardproof::typing

template <>
struct fmt::formatter<shardproof::typing::Named> : fmt::formatter<std::string_view> {
  auto format(const shardproof::typing::Named& dim, fmt::format_context& context) const {
    const shardproof::Layout one({{dim.letter, dim.axes}}, {});
    return fmt::formatter<std::string_view>::format(one.to_string(), context);
  }
};

namespace shardproof::typing {

/// Reports violations of the typing rules of one op (docs/typing.md).
class OpRules {
 public:
  explicit OpRules(std::string_view op) : op_(op) {}

  /// Throws constraint number `n` of this op unless `holds`. Layouts, axes and dims are passed
  /// unformatted: every step of every run checks these rules, and they rarely fail.
  template <class... T>
  void require(bool holds, int n, fmt::format_string<T...> why, T&&... values) const {
    if (!holds)
      throw Error(fmt::format("{}_c{}", op_, n), fmt::format(why, std::forward<T>(values)...));
  }

  /// Returns the index of a dim; throws constraint `n` if the operand does not have it.
  std::size_t dim(int n, const Layout& layout, char letter) const {
    const auto at = layout.find(letter);
    require(at.has_value(), n, "{} has no dim {}", layout, letter);
    return *at;
  }

  void some_axes(int n, const Axes& axes, const Layout& layout) const {
    require(!axes.empty(), n, "no axes are given for {}", layout);
  }

  /// Requires that the operand's dims among `which` are not sharded.
  void unsharded(int n, const Layout& layout, std::string_view which) const {
    for (const Layout::Dim& dim : layout.dims())
      require(dim.axes.empty() || which.find(dim.letter) == std::string_view::npos, n,
              "dim {} of {} must not be sharded", dim.letter, layout);
  }

 private:
  std::string_view op_;
};

}  // namespace shardproof::typing
