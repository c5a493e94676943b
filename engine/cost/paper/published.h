#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// The numbers that the paper publishes, as engine/cost/paper/published.txt has them. What is
/// missing in that text, or has another form than it says there, throws std::logic_error.

/// The text, compiled in.
std::string_view published_text();

/// A number as printed, or as read from a figure's curve with as many digits.
struct Printed {
  std::string_view text;  ///< "0.29", "43000"

  double value() const;
  int decimals() const;
  /// Half a unit of the last digit: the largest distance of a number that rounds to the text.
  double half_unit() const;
};

/// The settings that a number is published for, by name: "chips=64 B=512".
class Settings {
 public:
  void set(std::string_view name, std::string value);
  /// Sets what `other` has.
  void set(const Settings& other);
  bool has(std::string_view name) const { return values_.contains(name); }
  /// `ffn` is the first part of the strategy: "ws2d" of "ws2d:heads".
  std::string text(std::string_view name) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::int64_t count(std::string_view name, std::int64_t otherwise) const;

  /// The model as it was run, its heads padded.
  ModelConfig model() const;
  /// Returns released_torus(chips) if no torus is given.
  Torus torus() const;
  Strategy strategy() const;
  NumberFormat weights() const;
  /// Returns the middle one of several decode steps: the time of a step is linear in the number of
  /// cached positions.
  Pass pass() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};
/// The context of what names no other.
inline constexpr std::int64_t kMeasuredContext = 2048;

/// One column of Table 2 (PaLM 540B) or Table 3 (PaLM 62B).
struct MeasuredPass {
  std::string name;  ///< "540B low-latency prefill"
  Settings settings;
};
const std::vector<MeasuredPass>& tables_2_and_3();

/// Returns the torus of a slice of `chips` chips in the released code (partitioning.py). Throws
/// Error("published_c1", ...) if the code does not name that number.
Torus released_torus(std::int64_t chips);

/// A quantity that the model computes, and what is divided or added to it.
struct Formula {
  std::string quantity;
  Settings settings;
  std::string join;             ///< "over" or "plus" if there is a second one
  std::vector<Formula> second;  ///< at most one
};
struct PublishedRow {
  std::string what, published, verdict;  ///< "over batch, batch 128", "43000", "within 2 %"
  Formula ours;
};
/// Why rows whose `what` ends so may differ if ours is `ours`; whatever ours is, if that is empty.
struct Reason {
  std::string end, ours, text;
};
struct PublishedNote {
  std::string text;  ///< with a place {:...} for each number
  std::vector<Formula> numbers;
};
/// One figure or table.
struct PublishedSection {
  std::string name, title;
  std::vector<PublishedRow> rows;
  std::vector<Reason> reasons;
  std::vector<PublishedNote> notes;
};
const std::vector<PublishedSection>& published_sections();

}  // namespace shardproof::cost
