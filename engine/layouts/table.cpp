#include "engine/layouts/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/program/rethrow.h"
#include "weights/base/detail/text_file.h"
#include "weights/base/detail/word_table.h"
#include "weights/base/detail/words.h"
#include "weights/model/model_config.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

constexpr std::string_view kDoc = " (docs/layouts.md)";
constexpr std::string_view kTable = "layouts ";
// Names a table can give layouts, beside values and weights.
constexpr std::string_view kWeights = "weights", kAttend = "attend", kPrefix = "prefix";
// Far above what a person writes; bounds the work on a file from elsewhere.
constexpr std::size_t kMostName = 40, kMostSteps = 16, kMostTables = 1000;

/// Returns true if the line `weights` applies to the weight.
bool of_weights(const WeightRow& row) { return row.per_layer && row.kind == WeightKind::matrix; }

/// The dim letters of all weights that `weights` applies to.
std::string_view matrix_dims() {
  static const std::string letters = [] {
    std::string all;
    for (const WeightRow& row : all_weights())
      if (of_weights(row)) all += row.dims;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return letters;
}

const LayoutValue* find_value(std::string_view name) { return row_named(layout_values(), name); }

/// The value, then the values whose lines apply to it, in order of precedence.
std::vector<std::string_view> lineage(std::string_view name) {
  std::vector<std::string_view> names;
  for (const LayoutValue* value = find_value(name); value != nullptr;
       value = find_value(value->same_as))
    names.push_back(value->name);
  if (names.empty()) names.push_back(name);  // of a text
  return names;
}

Error no_matrix_has(char letter) {
  return Error("layouts_c3",
               fmt::format("no W matrix has dim {}; they have {}", letter, matrix_dims()));
}

/// Throws if no model of keys has what a line gives a layout.
void require_of_keys(const LayoutLine& line) {
  if (find_value(line.value) == nullptr) {
    std::vector<std::string> legal;
    for (const LayoutValue& value : layout_values()) legal.emplace_back(value.name);
    const std::string near = nearest(line.value, legal);
    throw Error("layouts_c1", fmt::format("no layer has a value '{}'{} legal: {}", line.value,
                                          near.empty() ? ";" : ", did you mean " + near + "?",
                                          fmt::join(legal, " ")));
  }
  for (const LayoutStep& step : line.steps)
    for (const Layout::Dim& dim : step.sharded)
      if (matrix_dims().find(dim.letter) == std::string_view::npos) throw no_matrix_has(dim.letter);
}

/// Reads one line of a table.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Error malformed(std::string_view why) const {
    constexpr std::size_t kMost = 100;
    return Error("layouts_c0", fmt::format("'{}{}': {}", text_.substr(0, kMost),
                                           text_.size() > kMost ? "..." : "", why));
  }

  LayoutTable table() const {
    const std::string_view rest = trim(text_.substr(std::min(kTable.size(), text_.size())));
    const std::string_view name = rest.substr(0, rest.find_first_of(" \t"));
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':' || c == '-' || c == '_' ||
             c == '.';
    };
    if (name.empty() || name.size() > kMostName || !std::all_of(name.begin(), name.end(), legal))
      throw malformed(
          fmt::format("'{}' is not a valid name of a table: at most {} lower-case letters, "
                      "digits, :-_.",
                      name.substr(0, kMostName + 1), kMostName));
    LayoutTable table;
    table.name = name;
    table.description = trim(rest.substr(name.size()));
    return table;
  }

  /// One LayoutLine for each value and use that the text names.
  std::vector<LayoutLine> lines() const {
    const auto colon = text_.find(':');
    if (colon == std::string_view::npos)
      throw malformed("write VALUE : LAYOUT -> LAYOUT, or layouts NAME");
    const auto named = split(text_.substr(0, colon), " for ");
    const auto steps = split(text_.substr(colon + 1), "->");
    const auto counted = [&](std::size_t count, std::size_t most, std::string_view what) {
      if (count > most) throw malformed(fmt::format("a line has at most {} {}", most, what));
    };
    counted(steps.size(), kMostSteps, "layouts");
    if (named.size() > 2) throw malformed("write VALUE for USE : LAYOUT");
    std::vector<std::string_view> uses{""};
    if (named.size() == 2) uses = split(named[1], ",");
    const auto values = split(named[0], ",");
    counted(values.size(), layout_values().size(), "values");
    counted(uses.size(), layout_values().size(), "uses");
    std::vector<LayoutLine> all;
    for (std::string_view name : values)
      for (std::string_view use : uses) {
        const LayoutValue value = value_of(name);
        if (named.size() == 2) require_use(value, use);
        LayoutLine line{std::string(name), std::string(use), {}, {}};
        for (std::string_view step : steps) line.steps.push_back(read(value, use, step));
        if (name == kAttend && line.steps.size() > 1)
          throw malformed("attend is computed in one layout; q and k have those before it");
        if (name == kPrefix) require_place(line);
        all.push_back(std::move(line));
      }
    return all;
  }

 private:
  /// The caches of prefixes have one layout: no arrow of the layer leads there.
  void require_place(const LayoutLine& line) const {
    const LayoutStep& first = line.steps[0];
    if (line.steps.size() > 1 || first.strict || first.loop)
      throw malformed("prefix is the one layout of the prefixes' caches, without notes");
  }

  /// Returns the value of a name; one that no model of keys has may be a text's, of any dims.
  LayoutValue value_of(std::string_view name) const {
    if (const LayoutValue* value = find_value(name)) return *value;
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (name.empty() || name.size() > kMostName || !std::all_of(name.begin(), name.end(), legal))
      throw malformed(fmt::format("'{}' is not a name of a value: at most {} letters, digits and _",
                                  name.substr(0, kMostName + 1), kMostName));
    return {.name = name, .dims = {}, .same_as = {}, .uses = {}, .product = true};
  }

  static void require_use(const LayoutValue& value, std::string_view use) {
    const auto legal = split(value.uses, " ");
    if (use.empty() || std::find(legal.begin(), legal.end(), use) == legal.end())
      throw Error(
          "layouts_c1",
          value.uses.empty()
              ? fmt::format("'{} for {}': {} has no uses of its own", value.name, use, value.name)
              : fmt::format("'{} for {}': no such use; legal: {}", value.name, use, value.uses));
  }

  /// Parses "loop one-way".
  static Loop loop_of(std::string_view note) {
    constexpr std::string_view kLoop = "loop ";
    try {
      if (note.starts_with(kLoop)) return parse_loop(trim(note.substr(kLoop.size())));
    } catch (const Error&) {  // not a loop: reported below
    }
    throw Error(
        "layouts_c1",
        fmt::format("'{}' is not a valid note; legal: strict, loop one-way, loop both-full, "
                    "loop both-half, loop none",
                    note));
  }

  static Layout layout_of(const LayoutValue& value, std::string_view text) {
    try {
      return Layout::parse(text);
    } catch (const Error& error) {
      rethrow_about(error, fmt::format("{}: ", value.name),
                    "; write dim letters with distinct axes x, y, z after them, as in BLE_xzy");
    }
  }

  LayoutStep read(const LayoutValue& value, std::string_view use, std::string_view text) const {
    LayoutStep step;
    const auto bracket = text.find('[');
    if (bracket != std::string_view::npos) {
      if (text.back() != ']') throw malformed("a note follows a layout, in [ ]");
      for (std::string_view note :
           split(text.substr(bracket + 1, text.size() - bracket - 2), ",")) {
        const bool strict = note == "strict";
        if (strict ? step.strict : step.loop.has_value())
          throw Error("layouts_c1", fmt::format("'{}': {} is noted twice on one layout", note,
                                                strict ? "strict" : "loop"));
        if (strict)
          step.strict = true;
        else
          step.loop = loop_of(note);
      }
      text = trim(text.substr(0, bracket));
    }
    if (value.name == kWeights) {
      std::string letters;
      for (std::string_view word : split(text, " ")) {
        if (word.empty()) continue;
        const Layout one = layout_of(value, word);
        if (one.rank() != 1 || one.is_partial())
          throw malformed("write the letters of W matrices one by one, as in 'E_x F_zy H_zy'");
        const Layout::Dim& dim = one.dims()[0];
        if (letters.find(dim.letter) != std::string::npos)
          throw Error("layouts_c2", fmt::format("weights: {} is defined twice", dim.letter));
        if (dim.letter == 'B' || dim.letter == 'L' || dim.letter == 'M')
          throw no_matrix_has(dim.letter);
        letters += dim.letter;
        step.sharded.push_back(dim);
      }
      if (letters.empty()) throw malformed("a layout is missing");
    } else {
      if (text.empty()) throw malformed("a layout is missing");
      step.layout = layout_of(value, text);
      const std::string_view dims =
          use.empty() || value.name != kAttend ? value.dims : value_row(use)->dims;
      if (!dims.empty() && step.layout.letters() != dims)
        throw Error("layouts_c3", fmt::format("{0} is {1}; {0}{2}{3} has dims {4}", value.name,
                                              text, use.empty() ? "" : " for ", use, dims));
    }
    if (step.layout.is_partial() && (!value.product || step.layout.is_partial_max()))
      throw Error("layouts_c3",
                  fmt::format("{} is {}; only products are partial sums", value.name, text));
    return step;
  }

  std::string_view text_;
};

}  // namespace

const std::vector<LayoutValue>& layout_values() {
  static const std::vector<LayoutValue> all = [] {
    std::vector<LayoutValue> values;
    const auto add = [&](std::string_view name, std::string_view same_as, std::string_view uses) {
      const ValueRow& row = *value_row(name);
      // attend returns complete values; the results of other contractions may be partial sums.
      values.push_back({name, row.dims, same_as, uses, row.contraction && name != "attn"});
    };
    add("in", "", "");
    add("norm", "", "q k v gate up");
    values.push_back({kWeights, matrix_dims(), "", "", false});
    for (const WeightRow& row : all_weights())
      if (of_weights(row)) values.push_back({row.name, row.dims, "", "", false});
    add("q", "", "");
    add("k", "", "");
    add("v", "k", "");
    values.push_back({kAttend, value_row("attn")->dims, "", "k v", false});
    static const std::string of_prefixes = dims_of({Role::Kind::prefix, "k_cache"});
    values.push_back({kPrefix, of_prefixes, "", "", false});
    add("attn", "", "block_out attn_out");
    add("mid", "in", "");
    add("norm2", "norm", "gate up");
    add("gate", "", "");
    add("up", "gate", "");
    add("hidden", "", "block_out ffn_out");
    add("block_out", "", "");
    add("attn_out", "block_out", "");
    add("ffn_out", "block_out", "");
    return values;
  }();
  return all;
}

const LayoutLine* LayoutTable::find(std::string_view value, std::string_view use) const {
  for (std::string_view v : lineage(value))
    for (std::string_view u : use.empty() ? std::vector<std::string_view>{""} : lineage(use))
      for (const LayoutLine& one : lines)
        if (one.value == v && one.use == u) return &one;
  return nullptr;
}

std::string LayoutTable::where(const Line& at) const {
  if (source.file.empty()) return name + ": ";
  return at.number == 0 ? source.file + ": " : fmt::format("{} line {}: ", source.file, at.number);
}

void require_values_of_keys(const LayoutTable& table) {
  for (const LayoutLine& line : table.lines) try {
      require_of_keys(line);
    } catch (const Error& error) {
      rethrow_about(error, table.where(line.line), kDoc);
    }
}

std::vector<LayoutTable> parse_layouts(std::string_view text, std::string_view file) {
  std::vector<LayoutTable> tables;
  int number = 0;
  const auto read = [&](std::string_view line) {
    const Reader reader(line);
    if (line.starts_with(kTable) || line == "layouts") {
      LayoutTable table = reader.table();
      for (const LayoutTable& other : tables)
        if (other.name == table.name)
          throw Error("layouts_c2", fmt::format("{} is defined twice, before in line {}",
                                                table.name, other.line.number));
      if (tables.size() == kMostTables)
        throw Error("layouts_c0", fmt::format("a file has at most {} tables", kMostTables));
      table.line = {number};
      table.source.file = file;
      tables.push_back(std::move(table));
      return;
    }
    if (tables.empty()) throw reader.malformed("a table begins with layouts NAME");
    for (LayoutLine& one : reader.lines()) {
      for (const LayoutLine& other : tables.back().lines)
        if (other.value == one.value && other.use == one.use)
          throw Error("layouts_c2",
                      fmt::format("{}{}{} is defined twice, before in line {}", one.value,
                                  one.use.empty() ? "" : " for ", one.use, other.line.number));
      one.line = {number};
      tables.back().lines.push_back(std::move(one));
    }
  };
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '\t', ' ');
  for (std::string_view line : split(plain, "\n")) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      read(line);
    } catch (const Error& error) {
      rethrow_about(error,
                    file.empty() ? fmt::format("line {}: ", number)
                                 : fmt::format("{} line {}: ", file, number),
                    kDoc);
    }
  }
  return tables;
}

std::string print_layouts(const LayoutTable& table) {
  std::string text = "layouts " + table.name;
  if (!table.description.empty()) text += "  " + table.description;
  text += "\n";
  for (const LayoutLine& line : table.lines) {
    text += line.value + (line.use.empty() ? "" : " for " + line.use) + " :";
    for (const LayoutStep& step : line.steps) {
      std::string layout = step.layout.to_string();
      if (line.value == kWeights) {  // one word per letter
        layout.clear();
        for (const Layout::Dim& dim : step.sharded)
          layout += (layout.empty() ? "" : " ") + Layout({dim}, Axes()).to_string();
      }
      std::vector<std::string> notes;
      if (step.strict) notes.emplace_back("strict");
      if (step.loop) notes.push_back(fmt::format("loop {}", to_string(*step.loop)));
      text += fmt::format("{}{}", &step == line.steps.data() ? " " : " -> ", layout);
      if (!notes.empty()) text += fmt::format(" [{}]", fmt::join(notes, ", "));
    }
    text += "\n";
  }
  return text;
}

LayoutTable without_batch(LayoutTable table) {
  std::erase_if(table.lines, [](const LayoutLine& line) { return line.value == kPrefix; });
  for (LayoutLine& line : table.lines)
    for (LayoutStep& step : line.steps) {
      if (const auto batch = step.layout.find('B')) step.layout = step.layout.with_axes(*batch, {});
      // The arrow that a note is on may no longer exist.
      step.strict = false;
      if (step.loop != Loop::none) step.loop.reset();
    }
  return table;
}

std::vector<LayoutTable> load_layouts(const std::string& path) {
  std::vector<LayoutTable> tables = parse_layouts(
      read_text(path, {"layouts_f1", "layouts_f3", std::size_t{1} << 20, "file of tables", kDoc}),
      path);
  if (tables.empty())
    throw Error("layouts_f2",
                fmt::format("{} holds no table; shardproof explain ws2d:batch --layouts prints one "
                            "to begin with{}",
                            path, kDoc));
  return tables;
}

}  // namespace shardproof
