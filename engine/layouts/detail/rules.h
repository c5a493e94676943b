#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layouts/layer.h"
#include "engine/layouts/partition.h"

namespace shardproof {

/// The layouts of a contraction: of each term's operand, of the product, and of the steps that the
/// product passes through up to its destination.
struct ContractionLayouts {
  std::vector<Layout> operands;
  Layout product;
  std::vector<LayoutStep> steps;
  std::string use;  ///< the use that the last step is for: "attend"
  Path first;       ///< path from the product to the first step
};

/// The layouts of a layer's values, from a table and the rules of docs/layouts.md. Throws what
/// partition() throws.
class TableRules {
 public:
  TableRules(const LayoutTable& table, const std::vector<LogicalOp>& ops, const Extents& extents,
             const Torus& torus);

  Layout residual, queries, keys, cache;
  std::optional<Layout> prefix;  ///< of the prefixes' caches, if the extents have prefixes

  const LayoutLine& required(std::string_view value) const;
  /// The layouts of a weight, from its resident layout to the layout it is used in.
  LayoutLine weight(const std::string& name) const;
  /// The layouts of a contraction. `rows` holds the axes of B and L of the stream; for `up`, `gate`
  /// is the layout of the gate's result.
  ContractionLayouts contraction(const LogicalOp& op, const Layout& rows, const Layout* gate) const;
  /// The cheapest path. Throws an Error that names `line` if there is none.
  Path path(const std::string& value, const Layout& from, const LayoutStep& to,
            const Line& line) const;
  /// The line that an Error names if a value cannot reach its destination.
  Line line_of(const std::string& value) const;

 private:
  Error refused(std::string_view label, const Line& line, std::string_view why) const;
  Layout shortened(const Layout& layout, char letter = 'K') const;
  void require_prefixes(const LayoutLine& line) const;
  Layout operand(const LogicalOp& op, std::size_t term, const Layout& rows, const Layout& weight,
                 const Line& line) const;
  Layout product(const LogicalOp& op, std::size_t term, const Layout& a, const Layout& b,
                 const Line& line) const;
  LayoutStep destination(const LogicalOp& op, const ContractionLayouts& made,
                         const Layout* gate) const;
  /// The line of attend for its keys or values, by the number of the operand; null if it has none.
  const LayoutLine* of_attend(std::size_t operand) const;

  /// The layer's op of this kind, of which it has one: attend, activate.
  const LogicalOp& only(LogicalOp::Kind kind) const;

  const LayoutTable& table_;
  const std::vector<LogicalOp>& ops_;
  const Extents& extents_;
  const Torus& torus_;
};

}  // namespace shardproof
