#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layouts/layer.h"
#include "engine/layouts/partition.h"

namespace shardproof {

/// The layouts of a contraction: of the operands and weights of each term, of the product, and
/// those that the product passes through until it is where it is wanted.
struct ContractionLayouts {
  std::vector<Layout> operands;
  Layout product;
  std::vector<LayoutStep> steps;
  std::string use;  ///< what the last of the steps is for: "attend"
  Path first;       ///< to the first of them
};

/// What a table says of a layer's values, by the rules of docs/layouts.md. Throws what partition()
/// throws.
class TableRules {
 public:
  TableRules(const LayoutTable& table, const Extents& extents, const Torus& torus,
             BrokenRule broken);

  Layout residual, queries, keys, cache;
  std::optional<Layout> prefix;  ///< of the prefixes' caches, where the extents have prefixes

  const LayoutLine& required(std::string_view value) const;
  /// The layouts of a weight: its resident layout, ..., that of its use.
  LayoutLine weight(const std::string& name) const;
  /// Those of a contraction where the stream's rows are `rows` (its B and L) and, of `up`, where
  /// the gate has gone to `gate`.
  ContractionLayouts contraction(const LogicalOp& op, const Layout& rows, const Layout* gate) const;
  /// The cheapest path, or a refusal that blames the line.
  Path path(const std::string& value, const Layout& from, const LayoutStep& to,
            const Line& line) const;
  /// The line to blame where a value cannot go where it is wanted.
  Line line_of(const std::string& value) const;

 private:
  Error refused(std::string_view label, const Line& line, std::string_view why) const;
  Layout shortened(const Layout& layout, char letter = 'K') const;
  void require_prefixes(const LayoutLine& line) const;
  Layout operand(const LogicalOp& op, std::size_t term, const Layout& rows, const Layout& weight,
                 const Line& line) const;
  Layout product(const LogicalOp& op, std::size_t term, const Layout& a, const Layout& b,
                 const Line& line) const;
  LayoutStep destination(const std::string& result, const ContractionLayouts& made,
                         const Layout* gate) const;

  const LayoutTable& table_;
  const Extents& extents_;
  const Torus& torus_;
  BrokenRule broken_;
};

}  // namespace shardproof
