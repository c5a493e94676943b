#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layouts/detail/text_layouts.h"
#include "engine/layouts/writer.h"
#include "weights/base/error.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// The case that programs of a text's model are written for.
struct TextSetting {
  const ModelConfig& config;
  const TextModel& model;
  const TextLayouts& layouts;
  const Extents& extents;
  const Torus& torus;
};

/// Values of the embedding's program that layers and the head may read.
struct EmbeddingValues {
  std::map<std::string, Layout> layouts;
  std::map<std::string, std::vector<std::string>> indicators;  ///< of what exists in places only
};

/// Writes the program of one section of a text, line by line of its flat form. Throws what
/// text_programs() throws.
class TextSectionWriter {
 public:
  TextSectionWriter(const TextSetting& setting, const std::string& program,
                    EmbeddingValues of_embedding);

  /// Adds the stream between layers as the value `in`, an input with this role.
  void stream(const std::string& role);
  /// Writes the lines of a section that a layer has.
  void write(TextSection section, std::int64_t layer);
  /// Returns the value in a layout: a copy, or the cheapest path from one.
  WrittenValue bring(const std::string& name, const Layout& to);
  /// Returns a cache of the rows' own slots.
  WrittenValue own_cache(const std::string& name) const { return caches_.at(name); }
  /// Returns the copy of a value that was made last.
  WrittenValue current(const std::string& name);
  /// Returns the names of the indicators that a value has: it exists where none of them is 0.
  std::vector<std::string> indicators_of(const std::string& name) const;
  /// Writes the last position of each row's logits and returns its name.
  std::string last_logits();
  Program finish(const std::vector<std::string>& outputs) const { return w_.finish(outputs); }

 private:
  void line(const TextLine& line);
  void map(const TextLine& line);
  void einsum(const TextLine& line);
  /// Shards what a further term contracts over the axes over which the first is partial, if its
  /// extent allows it: all terms are one sum.
  void shard_contracted(const Layout& product, const ContractionTerm& term, Layout& a,
                        Layout& b) const;
  /// A product of elements, of operands that may be int32.
  void product_of_elements(const TextLine& line);
  void sum(const TextLine& line);
  void max(const TextLine& line);
  void local_reduction(const TextLine& line);
  void top(const TextLine& line);
  void gather(const TextLine& line);
  void append(const TextLine& line);
  void turn(const TextLine& line);
  void split(const TextLine& line);
  void merge(const TextLine& line);
  /// Leaves the axes of dims, which are seen as one, as far as a block of them is a block of that
  /// one; returns its axes.
  Axes whole_blocks(std::vector<Layout::Dim>& parts) const;

  /// Keeps a complete value, and leads it through the table's line, if it has one.
  void keep(const TextLine& line, const WrittenValue& value);
  /// Leads a contraction's result through the table's line, and on until it is complete.
  WrittenValue complete(const TextLine& line, WrittenValue value, const Layout& home);
  /// Leads a value to a layout, or along the way there until it is no partial sum.
  WrittenValue lead(const std::string& name, WrittenValue value, const Layout& to,
                    bool until_complete = false);
  /// Returns the cheapest path of a value. Throws Error("layouts_c4", ...) if there is none.
  Path path(const std::string& name, const Layout& from, const Layout& to) const;
  /// Returns where a contraction takes an operand that is no matrix, beside `matrix` or another.
  Layout operand_layout(const TextLine& line, std::size_t operand, const Layout* matrix);
  /// Returns the layout of one term's result. Throws Error("layouts_c6", ...) if an axis is used
  /// twice.
  Layout product_layout(const TextLine& line, std::size_t term, const Layout& a,
                        const Layout& b) const;
  Error refused(const TextLine& line, const std::string& why) const;

  bool is_word(const std::string& name) const { return model_.flat().is_number(name); }
  std::string letters_of(const std::string& name) const;
  /// Returns a weight's input in a layout; of a matrix the layout that its line of the table ends
  /// in.
  WrittenValue weight(const TextWeight& weight, const Layout& layout);
  WrittenValue matrix(const TextWeight& weight);
  bool is_matrix(const std::string& name) const;
  static bool is_integer(const std::string& name) {
    return name == "ids" || name == "pos" || name == "slot";
  }
  /// Returns where an operand is reduced: where it is; of heads, of caches and weights, where their
  /// letters say.
  Layout here(const std::string& name);
  /// Brings an operand to where it is reduced, with some of its letters unsharded.
  WrittenValue bring_whole(const std::string& name, std::string_view letters);
  /// Returns the layout in which a pointwise line is computed.
  Layout layout_of_map(const TextLine& line, const std::vector<std::string>& operands);
  /// Returns the indicators of a value's own and of its operands: it exists where none is 0.
  std::vector<std::string> indicators_of(const TextLine& line,
                                         const std::vector<std::string>& operands) const;
  /// Gives a moved value the indicators of its operand. Throws Error("layouts_c12", ...) if one has
  /// letters that the line lacks.
  void carry_indicators(const TextLine& line, const std::string& operand);
  /// Returns " where see and near", by the names that indicators have in the program.
  std::string where(const std::vector<std::string>& indicators, const Layout& layout);
  /// Returns the expression with the program's names for values, in this layout.
  Expression in_program(const Expression& e, const Layout& layout);
  std::string constants(const Expression& e, const Layout& layout);

  const TextSetting& setting_;
  const TextModel& model_;
  const TextLayouts& layouts_;
  ProgramWriter w_;
  EmbeddingValues of_embedding_;
  std::map<std::string, std::vector<WrittenValue>> copies_;
  std::map<std::string, WrittenValue> caches_;
  std::map<std::string, std::string> letters_;                  // of the section's values
  std::map<std::string, std::vector<std::string>> indicators_;  // of what does not exist everywhere
  std::map<std::string, const Expression*> differences_;        // of lines that are sub(a, b)
};

}  // namespace shardproof
