#include "golden/trace/claim/arithmetic_declaration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "golden/bounds/number/rounding.h"
#include "weights/base/detail/words.h"

namespace shardproof::dump {
namespace {

constexpr int kMostUlp = 1 << 20, kMostWire = 1 << 14, kMostFolded = 1 << 10, kMostLanes = 1 << 16;
constexpr int kMostDepth = std::numeric_limits<int>::max();

/// The text of attribute `name`.
struct Text {
  std::string_view name, text;
  bool of_value = false;  ///< false: of the file

  [[noreturn]] void reject(std::string_view why) const { reject_attribute(name, text, why); }
  /// Returns the table's entry for the text; rejects words that the table lacks.
  template <class Table>
  auto word(const Table& table) const {
    std::vector<std::string_view> legal;
    for (const auto& [word, value] : table) {
      if (word == text) return value;
      legal.push_back(word);
    }
    reject(fmt::format("legal: {}", fmt::join(legal, ", ")));
  }
  /// Returns the text after "KEY:", or nullopt if it does not begin so.
  std::optional<std::string_view> after(std::string_view key) const {
    if (!text.starts_with(key) || text.substr(key.size(), 1) != ":") return std::nullopt;
    return text.substr(key.size() + 1);
  }
};

void read_format(const Text& of, Arithmetic& a) {
  struct Row {
    NumberFormat values, sums;
    bool exact;
  };
  const Row row = of.word(std::array<std::pair<std::string_view, Row>, 5>{
      {{"f32", {NumberFormat::f32, NumberFormat::f32, false}},
       {"f64", {NumberFormat::f64, NumberFormat::f64, false}},
       {"bf16", {NumberFormat::bf16, NumberFormat::f32, false}},
       {"f16", {NumberFormat::f16, NumberFormat::f32, false}},
       {"exact", {NumberFormat::f32, NumberFormat::f64, true}}}});
  a.bounds.values = row.values;
  a.bounds.sums = row.sums;
  a.exact = row.exact;
  a.said = true;
}

/// For a file: accumulators of products with the layers' matrices; for a value: of its sum.
void read_sums(const Text& of, Arithmetic& a) {
  const NumberFormat sums = of.word(std::array<std::pair<std::string_view, NumberFormat>, 3>{
      {{"f32", NumberFormat::f32}, {"bf16", NumberFormat::bf16}, {"f16", NumberFormat::f16}}});
  if (a.exact) of.reject("the exact regime's sums are exact");
  a.bounds.matrix_sums = sums;
  if (of.of_value) a.bounds.sums = sums;
}

void read_wire(const Text& of, Arithmetic& a) {
  a.bounds.wire = of.text == "f32"  ? NumberFormat::f32
                  : of.after("f16") ? NumberFormat::f16
                                    : NumberFormat::bf16;
  const auto count = of.after("bf16") ? of.after("bf16") : of.after("f16");
  a.bounds.wire_roundings =
      of.text == "f32" ? 0 : whole_number(of.name, count ? *count : of.text, 0, kMostWire);
}

void read_ulp(const Text& of, Arithmetic& a) {
  bounds::Ulp& ulp = a.bounds.ulp;
  const std::array<std::pair<std::string_view, double*>, 5> functions{{{"exp", &ulp.exp},
                                                                       {"erf", &ulp.erf},
                                                                       {"tanh", &ulp.tanh},
                                                                       {"sigmoid", &ulp.sigmoid},
                                                                       {"rsqrt", &ulp.rsqrt}}};
  if (of.text.find(':') == std::string_view::npos) {
    const int all = whole_number(of.name, of.text, 0, kMostUlp);
    for (const auto& [name, number] : functions) *number = all;
    return;
  }
  for (const std::string_view one : split(of.text, ",")) {
    const std::size_t colon = one.find(':');
    double* const number = Text{of.name, one.substr(0, colon)}.word(functions);
    if (colon == std::string_view::npos) of.reject("legal: N, or a list exp:4,erf:8");
    *number = whole_number(of.name, one.substr(colon + 1), 0, kMostUlp);
  }
}

void read_folded(const Text& of, Arithmetic& a) {
  a.bounds.folded = whole_number(of.name, of.text, 0, kMostFolded);
}

void read_rounding(const Text& of, Arithmetic& a) {
  bounds::require_rounding(of.text);
  a.bounds.rounding = of.text == "any" ? "" : std::string(of.text);
}

void read_reduction(const Text& of, Arithmetic& a) {
  using bounds::Reduction;
  a.bounds.reduction =
      of.word(std::array<std::pair<std::string_view, Reduction>, 5>{{{"named", Reduction::named},
                                                                     {"ring", Reduction::ring},
                                                                     {"tree", Reduction::tree},
                                                                     {"group", Reduction::group},
                                                                     {"any", Reduction::any}}});
}

void read_order(const Text& of, Arithmetic& a) {
  using bounds::Order;
  a.bounds.lanes = 0;
  if (const auto width = of.after("lanes")) {
    a.bounds.order = Order::lanes;
    a.bounds.lanes = whole_number(of.name, *width, 1, kMostLanes);
    return;
  }
  constexpr std::array<std::pair<std::string_view, Order>, 3> kWords{
      {{"any", Order::any}, {"natural", Order::natural}, {"lanes:W", Order::any}}};
  if (of.text == "lanes:W") of.reject("W is a whole number");
  a.bounds.order = of.word(kWords);
}

void read_depth(const Text& of, Arithmetic& a) {
  a.bounds.sum_depth = whole_number(of.name, of.text, 1, kMostDepth);
}

void read_adding(const Text& of, Arithmetic& a) {
  if (const auto numbers = of.after("truncating")) {
    const std::size_t comma = numbers->find(',');
    if (comma == std::string_view::npos) of.reject("legal: truncating:BLOCK,EXTRA, as 8,1");
    a.bounds.adding = {whole_number(of.name, numbers->substr(0, comma), 1, kMostLanes),
                       whole_number(of.name, numbers->substr(comma + 1), 0, 64)};
    return;
  }
  // The tensor cores of docs/bounds.md.
  a.bounds.adding = of.word(std::array<std::pair<std::string_view, bounds::Adding>, 4>{
      {{"nearest", {}}, {"v100", {4, 0}}, {"a100", {8, 1}}, {"h100", {16, 2}}}});
}

void read_confidence(const Text& of, Arithmetic& a) {
  a.bounds.confident = of.word(
      std::array<std::pair<std::string_view, bool>, 2>{{{"2^-41", true}, {"worst", false}}});
}

struct Key {
  std::string_view name;
  void (*read)(const Text&, Arithmetic&);
  bool of_value = true;  ///< allowed on a value, too
};
constexpr std::array kKeys{Key{"arithmetic", read_format},
                           Key{"sums", read_sums},
                           Key{"wire", read_wire},
                           Key{"ulp", read_ulp},
                           Key{"folded", read_folded},
                           Key{"rounding", read_rounding},
                           Key{"reduction", read_reduction},
                           Key{"order", read_order},
                           Key{"sum_depth", read_depth},
                           Key{"adding", read_adding},
                           Key{"confidence", read_confidence, false}};

/// On a value, `order` may also be a number, its place in the run.
bool says(const Key& key, std::string_view text, bool of_value) {
  if (!of_value) return true;
  const bool place = key.name == "order" && text.find_first_not_of("-0123456789") == text.npos;
  return key.of_value && !place;
}

void read(const dump::Attributes& attributes, bool of_value, Arithmetic& a) {
  for (const Key& key : kKeys)
    if (const auto said = attributes.find(key.name);
        said != attributes.end() && says(key, said->second, of_value))
      key.read({key.name, said->second, of_value}, a);
  const bounds::Ulp& ulp = a.bounds.ulp;
  a.bounds.operations = bounds::Arithmetic::of(
      bounds::narrow_storage(a.bounds.sums) ? NumberFormat::f32 : a.bounds.sums,
      std::max({ulp.exp, ulp.erf, ulp.tanh, ulp.sigmoid, ulp.rsqrt}));
}

}  // namespace

Arithmetic read_arithmetic(const dump::Attributes& file, NumberFormat act) {
  Arithmetic a;
  read(file, false, a);
  if (act == NumberFormat::f32) return a;
  if (a.bounds.values == NumberFormat::f16)
    reject_attribute("arithmetic", "f16", "the case keeps values as bf16 (act=bf16)");
  a.bounds.values = act;
  return a;
}

Arithmetic read_arithmetic(const dump::Attributes& value, Arithmetic of_trace) {
  read(value, true, of_trace);
  return of_trace;
}

bool says_arithmetic(const dump::Attributes& value) {
  return std::any_of(kKeys.begin(), kKeys.end(), [&](const Key& key) {
    const auto said = value.find(key.name);
    return said != value.end() && says(key, said->second, true);
  });
}

void reject_attribute(std::string_view name, std::string_view value, std::string_view why) {
  throw Error("dump_attribute", fmt::format("{}={:?}: {}", name, value.substr(0, 200), why));
}

int whole_number(std::string_view name, std::string_view value, int least, int most) {
  int number = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || at != end || number < least || number > most)
    reject_attribute(name, value,
                     fmt::format("a whole number from {} to {} is expected", least, most));
  return number;
}

}  // namespace shardproof::dump
